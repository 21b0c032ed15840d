use super::workflow_fixture::{WorkflowHub, steps};
use octo_model::Kind;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Ends the process at the `n`th write of a run; returns the run's id.
async fn crash_at_write(bench: &WorkflowHub, n: i64) -> String {
    bench.runs.0.writes_left.store(n, Ordering::SeqCst);
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "running", "{reply}");
    reply["run_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_step_that_was_cut_off_is_asked_about_and_can_be_redone_or_skipped() {
    const FLOW: &str = "steps:\n- {id: a, tool: append, with: {line: a}}\n- {id: b, tool: append, with: {line: b}}\n- {id: c, tool: append, with: {line: c}}\n";
    for (word, lines) in [("redo", ["a", "b", "b", "c"].as_slice()), ("skip", &["a", "b", "c"])] {
        let bench = WorkflowHub::new(FLOW);
        // a started, a done, b started, and b's end is lost.
        let id = crash_at_write(&bench, 3).await;
        let later = bench.restarted();
        let reply = later.run(json!({"run_id": id})).await.unwrap();
        assert_eq!(
            (&reply["status"], &reply["error"]["step"]),
            (&json!("interrupted"), &json!("b")),
            "{reply}"
        );
        assert_eq!(reply["error"]["kind"], "conflict");
        assert!(reply["error"]["hint"].as_str().unwrap().contains("skip [\"b\"]"), "{reply}");
        assert_eq!(steps(&reply), ["a done", "b interrupted"]);
        // Looking changes nothing.
        let seen = later.run(json!({"run_id": id})).await.unwrap();
        assert_eq!(seen["status"], "interrupted");
        let reply = later.run(json!({"run_id": id, word: ["b"]})).await.unwrap();
        assert_eq!(reply["status"], "done", "{reply}");
        assert_eq!(later.lines(), lines);
        let trace = later.file(&format!("artifacts/{id}/run.json"));
        let outcomes: Vec<&Value> = trace["steps"][1]["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| &attempt["outcome"])
            .collect();
        let wanted: &[&str] =
            if word == "redo" { &["interrupted", "redo", "done"] } else { &["interrupted", "skipped"] };
        assert_eq!(outcomes, wanted, "{trace}");
    }
}

#[tokio::test]
async fn what_only_reads_or_is_the_same_twice_goes_on_by_itself() {
    for (tool, repeat) in [("look", "never"), ("put", "never"), ("append", "allowed")] {
        let bench = WorkflowHub::new(&format!(
            "steps:\n- {{id: a, tool: {tool}, with: {{line: a}}, repeat: {repeat}}}\n- {{id: b, tool: append, with: {{line: b}}}}\n"
        ));
        let id = crash_at_write(&bench, 1).await;
        let reply = bench.restarted().run(json!({"run_id": id})).await.unwrap();
        assert_eq!(reply["status"], "done", "{tool}: {reply}");
        assert_eq!(reply["steps"][0]["attempts"], 2);
        assert_eq!(bench.lines().last().unwrap(), "b");
    }
}

#[tokio::test]
async fn a_step_that_was_cut_off_is_a_failure_that_can_be_caught() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a}, on_error: continue}\n- {id: b, if: exists(steps.a.error), tool: append, with: {line: '{{ steps.a.error.kind }} {{ steps.a.status }}'}}\n",
    );
    let id = crash_at_write(&bench, 1).await;
    let reply = bench.restarted().run(json!({"run_id": id})).await.unwrap();
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(steps(&reply), ["a interrupted", "b done"]);
    assert_eq!(bench.lines(), ["a", "conflict interrupted"]);
}

#[tokio::test]
async fn a_run_goes_on_with_the_text_it_began_with() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: put, with: {line: a}}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    let id = crash_at_write(&bench, 2).await;
    bench.write("flow.yaml", "version: 1\nname: other\nsteps: [{id: x, tool: append, with: {line: x}}]\n");
    let reply = bench.restarted().run(json!({"run_id": id})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "b".to_owned()]),
        "{reply}"
    );
    let error = bench
        .call_tool("ada", "", "workflow_run", json!({"path": "b.yaml", "run_id": id}), Default::default())
        .await;
    assert!(error.unwrap_err().hint.unwrap().contains("flow.yaml"));
}

#[tokio::test]
async fn decisions_are_refused_where_there_is_nothing_to_decide() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: g, steps: [{id: a, tool: append, with: {line: a}}, {id: b, tool: append, with: {line: b, fails: 1, kind: denied}}]}\n",
    );
    let error = bench.run(json!({"redo": ["a"]})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    let id = bench.begin().await["run_id"].clone();
    for (asked, kind) in [
        (json!({"run_id": id, "redo": ["b", "a"]}), Kind::Conflict),
        (json!({"run_id": id, "redo": ["b"], "skip": ["b"]}), Kind::Invalid),
        (json!({"run_id": id, "redo": ["a"]}), Kind::Conflict),
        (json!({"run_id": id, "skip": ["nobody"]}), Kind::Invalid),
        (json!({"run_id": id, "redo": ["g"]}), Kind::Invalid),
        (json!({"run_id": id, "redo": ["b[0]"]}), Kind::Invalid),
    ] {
        assert_eq!(bench.run(asked.clone()).await.unwrap_err().kind, kind, "{asked}");
    }
    let reply = bench.run(json!({"run_id": id, "redo": ["b"]})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "b".to_owned()]),
        "{reply}"
    );
    let error = bench.run(json!({"run_id": id, "redo": ["b"]})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Conflict);
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_run_which_can_go_on_later() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a}}\n- {id: b, tool: look, with: {line: b, ms: 3000}}\n- {id: c, tool: append, with: {line: c}}\n",
    );
    let cancel = CancellationToken::new();
    let late = cancel.clone();
    let deeds = std::sync::Arc::clone(&bench.tool_log);
    tokio::spawn(async move {
        wait_until(|| deeds.calls.lock().unwrap().contains_key("b")).await;
        late.cancel();
    });
    let begun = Instant::now();
    let error =
        bench.call_tool("ada", "", "workflow_run", json!({"path": "flow.yaml"}), cancel).await.unwrap_err();
    assert!(error.kind == Kind::Cancelled && begun.elapsed() < Duration::from_secs(2), "{error}");
    let id = "w_0";
    let caller = octo_model::Caller::named("ada");
    wait_until(|| {
        let run = futures_util::FutureExt::now_or_never(bench.flows.get_run(&caller, id)).unwrap().unwrap();
        run.status == octo_ports::RunStatus::Cancelled && !run.is_leased
    })
    .await;
    assert_eq!(bench.run(json!({"run_id": id})).await.unwrap()["status"], "cancelled");
    let reply = bench.run(json!({"run_id": id, "resume": true})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "c".to_owned()]),
        "{reply}"
    );
}

#[tokio::test]
async fn a_call_waits_for_a_run_of_another_process() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, ms: 300}}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    let waits = async {
        wait_until(|| bench.tool_log.calls.lock().unwrap().contains_key("a")).await;
        bench.restarted().run(json!({"run_id": "w_0"})).await.unwrap()
    };
    let (begun, reply) = tokio::join!(bench.begin(), waits);
    assert_eq!((&begun["status"], &reply["status"]), (&json!("done"), &json!("done")), "{reply}");
    assert_eq!(bench.lines(), ["a", "b"]);
}

#[tokio::test]
async fn a_run_outlives_the_call_that_began_it() {
    let mut bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, ms: 700}}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    bench.timeout = Some(Duration::from_millis(300));
    let reply = bench.begin().await;
    assert_eq!((&reply["status"], &reply["outputs"]), (&json!("running"), &json!({})), "{reply}");
    bench.timeout = None;
    let busy = bench.run(json!({"run_id": reply["run_id"], "resume": true})).await.unwrap_err();
    assert_eq!(busy.kind, Kind::Conflict);
    let reply = bench.run(json!({"run_id": reply["run_id"]})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "b".to_owned()]),
        "{reply}"
    );
}

#[tokio::test]
async fn who_only_asks_does_not_cancel() {
    let mut bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, ms: 600}}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    bench.timeout = Some(Duration::from_millis(200));
    let id = bench.begin().await["run_id"].clone();
    bench.timeout = None;
    let cancel = CancellationToken::new();
    let asked = bench.call_tool(
        "ada",
        "",
        "workflow_run",
        json!({"path": "flow.yaml", "run_id": id}),
        cancel.clone(),
    );
    let (asked, ()) = tokio::join!(asked, async { cancel.cancel() });
    assert_eq!(asked.unwrap_err().kind, Kind::Cancelled);
    let reply = bench.run(json!({"run_id": id})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "b".to_owned()]),
        "{reply}"
    );
}

#[tokio::test]
async fn a_hub_that_ends_finishes_the_step_it_is_in() {
    let mut bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, ms: 300}}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    bench.timeout = Some(Duration::from_millis(100));
    let id = bench.begin().await["run_id"].clone();
    bench.flows.shutdown().await;
    assert_eq!(bench.lines(), ["a"]);
    let reply = bench.restarted().run(json!({"run_id": id})).await.unwrap();
    assert_eq!(
        (&reply["status"], bench.lines()),
        (&json!("done"), vec!["a".to_owned(), "b".to_owned()]),
        "{reply}"
    );
}

/// Waits for a condition, with a timeout.
async fn wait_until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it never came to that");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_run_that_was_cut_off_can_be_found() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a}}\n- {id: b, tool: append, with: {line: b}}\n- {id: c, tool: append, with: {line: c}}\n",
    );
    // a started, a done, b started, and b's end is lost.
    let id = crash_at_write(&bench, 3).await;
    assert_eq!(bench.file(&format!("artifacts/{id}/run.json"))["status"], "running");
    let later = bench.restarted();
    let list = async |caller: &str, asked: Value| {
        later.call_tool(caller, "", "workflow_runs", asked, CancellationToken::new()).await.unwrap()["runs"]
            .clone()
    };
    let found = list("ada", json!({"path": "flow.yaml", "status": "interrupted"})).await;
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let expected = (json!(id), json!("flow.yaml"), json!("interrupted"), json!("b"));
    let first = &found[0];
    assert_eq!(
        (first["run_id"].clone(), first["path"].clone(), first["status"].clone(), first["next_step"].clone()),
        expected
    );
    assert_eq!(list("bob", json!({})).await, json!([]));
    assert_eq!(list("ada", json!({"path": "other.yaml"})).await, json!([]));
    let second = later.begin().await;
    assert_eq!(second["interrupted_runs"][0]["run_id"], json!(id), "{second}");
    let all = list("ada", json!({})).await;
    assert_eq!((&all[0]["run_id"], &all[0]["status"]), (&second["run_id"], &json!("done")));
    assert!(all[0].get("next_step").is_none(), "{all}");
    later.run(json!({"run_id": id, "skip": ["b"]})).await.unwrap();
    assert!(later.begin().await.get("interrupted_runs").is_none());
}
