use super::workflow_fixture::{WorkflowHub, steps};
use octo_model::Kind;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_profile_shows_its_workflows_no_more_than_its_clients() {
    let bench = WorkflowHub::new("steps:\n- {id: a, tool: append, with: {line: a}}\n");
    let ask = |tool: &'static str| {
        bench.call_tool("ada", "few", tool, json!({"path": "flow.yaml"}), CancellationToken::new())
    };
    let checked = ask("workflow_validate").await.unwrap();
    assert_eq!(checked["errors"][0]["message"], "Tool not found: `append`.", "{checked}");
    assert_eq!(ask("workflow_run").await.unwrap_err().kind, Kind::Invalid);
    bench.write("flow.yaml", "version: 1\nname: t\nsteps:\n- {id: a, tool: look, with: {line: a}}\n");
    assert_eq!(ask("workflow_run").await.unwrap()["status"], "done");
}

#[tokio::test]
async fn someone_elses_run_is_not_found() {
    let bench = WorkflowHub::new("steps:\n- {id: a, tool: append, with: {line: a}}\n");
    let id = bench.begin().await["run_id"].clone();
    let asked = json!({"path": "flow.yaml", "run_id": id});
    let error = bench
        .call_tool("bob", "", "workflow_run", asked.clone(), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    let own = bench.call_tool("ada", "", "workflow_run", asked, CancellationToken::new()).await.unwrap();
    assert_eq!(own["status"], "done");
}

#[tokio::test]
async fn outputs_are_whole_and_bounded() {
    let bench = WorkflowHub::new(
        "params: {bytes: {type: integer, required: true}}
steps:
- {id: a, tool: look, with: {line: a, bytes: '{{ params.bytes }}'}}
outputs: {length: '{{ length(steps.a.output.line) }}'}
",
    );
    // The hub truncates replies at 20,000 bytes; a step gets all of it.
    let reply = bench.run(json!({"params": {"bytes": 50_000}})).await.unwrap();
    assert_eq!(reply["outputs"], json!({"length": 50_001}), "{}", reply["error"]);
    let reply = bench.run(json!({"params": {"bytes": 5_000_000}})).await.unwrap();
    assert_eq!((&reply["status"], &reply["error"]["kind"]), (&json!("failed"), &json!("too_large")));
}

#[tokio::test]
async fn workflows_that_call_each_other_do_not_go_on_for_ever() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a}}\n- {id: again, tool: workflow_run, with: {path: flow.yaml}}\n",
    );
    let reply = bench.begin().await;
    // The outermost sees the failure of the nested run as data; every level has run once.
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(bench.lines().len(), 4);
}

#[tokio::test]
async fn without_a_place_for_artifacts_the_run_is_done_all_the_same() {
    let bench = WorkflowHub::new("steps:\n- {id: a, tool: append, with: {line: a}}\n").read_only();
    let reply = bench.begin().await;
    assert_eq!((&reply["status"], &reply["artifacts"]), (&json!("done"), &json!(null)), "{reply}");
    assert!(reply["warnings"][0].as_str().unwrap().contains("artifacts could not be written"), "{reply}");
}

#[tokio::test]
async fn a_long_list_is_refused_and_an_item_too_many_as_well() {
    let bench = WorkflowHub::new(
        "params: {all: {type: array, required: true}}\nsteps:\n- {id: a, for_each: params.all, tool: look, with: {line: a}}\n",
    );
    let reply = bench.run(json!({"params": {"all": vec![1; 1001]}})).await.unwrap();
    assert_eq!(reply["status"], "failed");
    assert!(reply["error"]["message"].as_str().unwrap().contains("1001 items"), "{reply}");
    assert_eq!(steps(&reply), ["a failed"]);
    let reply = bench.run(json!({"params": {"all": []}})).await.unwrap();
    assert_eq!(reply["status"], "done");
}

#[tokio::test]
async fn one_caller_leaves_runs_for_others() {
    const MAX_RUNS: usize = 768;
    let bench = Arc::new(WorkflowHub::new("steps:\n- {id: a, tool: append, with: {line: a, ms: 600000}}\n"));
    let mut runs = JoinSet::new();
    for _ in 0..MAX_RUNS + 2 {
        let bench = Arc::clone(&bench);
        runs.spawn(async move { bench.run(json!({})).await });
    }
    for _ in 0..2 {
        let refused = tokio::time::timeout(Duration::from_secs(20), runs.join_next()).await;
        let error = refused.expect("nothing is refused").unwrap().unwrap().unwrap_err();
        assert_eq!(
            (error.kind, &*error.message),
            (Kind::RateLimited, "Too many workflow runs are in progress.")
        );
    }
    bench.write("flow.yaml", "version: 1\nname: t\nsteps:\n- {id: a, tool: look, with: {line: a}}\n");
    let asked = json!({"path": "flow.yaml"});
    let other = bench.call_tool("bob", "", "workflow_run", asked, CancellationToken::new()).await.unwrap();
    assert_eq!(other["status"], "done");
    // Those of callers that are gone are cancelled.
    drop(runs);
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = bench.run(json!({})).await {
        assert!(error.kind == Kind::RateLimited && Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
