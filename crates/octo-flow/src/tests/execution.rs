use super::workflow_fixture::{WorkflowHub, steps};
use octo_model::Kind;
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn steps_run_in_order_with_inputs_from_parameters_and_earlier_outputs() {
    let bench = WorkflowHub::new(
        "params: {who: {required: true}, times: {type: integer, default: 2}}
steps:
- {id: a, tool: look, with: {line: 'hello {{ params.who }}'}}
- {id: b, tool: append, with: {line: '{{ steps.a.output.line }} {{ params.times }}'}}
outputs: {line: '{{ steps.b.output.line }}', count: '{{ steps.b.output.count }}', all: ['{{ params.times }}']}
",
    );
    let reply = bench.run(json!({"params": {"who": "Ada"}})).await.unwrap();
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(reply["outputs"], json!({"line": "hello Ada 2", "count": 1, "all": [2]}));
    assert_eq!(steps(&reply), ["a done", "b done"]);
    assert_eq!(bench.lines(), ["hello Ada 2"]);
    let folder = reply["artifacts"].as_str().unwrap();
    assert_eq!(bench.file(&format!("{folder}/outputs.json")), reply["outputs"]);
    assert_eq!(bench.file(&format!("{folder}/steps/b.json"))["line"], "hello Ada 2");
    let trace = bench.file(&format!("{folder}/run.json"));
    assert_eq!((&trace["status"], &trace["params"]), (&json!("done"), &json!(["who", "times"])));
    let attempt = &trace["steps"][1]["attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["arguments"]), (&json!("done"), &json!(["line"])));
    assert!(!trace.to_string().contains("Ada"), "arguments are not told: {trace}");
}

#[tokio::test]
async fn every_step_is_a_call_of_the_callers_own_that_leads_to_the_outer_one() {
    let bench = WorkflowHub::new("steps:\n- {id: a, tool: append, with: {line: x}}\n");
    let reply = bench.begin().await;
    let opened = bench.stores.opened.lock().unwrap();
    let (outer, inner) = (&opened[0], &opened[1]);
    assert_eq!((outer.name.as_str(), inner.name.as_str()), ("workflow_run", "append"));
    assert_eq!(
        (&inner.principal, inner.frontend, &inner.profile),
        (&outer.principal, outer.frontend, &outer.profile)
    );
    assert!(inner.trace.as_deref().unwrap().contains(&outer.id.to_string()), "{:?}", inner.trace);
    let trace = bench.file(&format!("{}/run.json", reply["artifacts"].as_str().unwrap()));
    assert_eq!(trace["steps"][0]["attempts"][0]["call"], inner.id.to_string());
}

#[tokio::test]
async fn conditions_skip_and_errors_are_data() {
    let bench = WorkflowHub::new(
        "steps:
- {id: a, tool: append, with: {line: a, fails: 9, kind: not_found}, on_error: continue}
- {id: b, if: exists(steps.a.error), tool: append, with: {line: '{{ steps.a.error.kind }}'}}
- {id: c, if: steps.a.status == 'done', tool: append, with: {line: c}}
- id: d
  tool: append
  with: {line: d, fails: 9, kind: conflict}
  on_error: {steps: [{id: mend, tool: append, with: {line: 'mend {{ steps.d.error.message }}'}}]}
- {id: e, tool: append, with: {line: '{{ steps.c.status }} {{ steps.d.status }} {{ steps.mend.status }}'}}
outputs: {c: '{{ default(steps.c.output.line, 0) }}'}
",
    );
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(bench.lines(), ["not_found", "mend Attempt 1 fails.", "skipped failed done"]);
    assert_eq!(steps(&reply), ["a failed", "b done", "c skipped", "d failed", "mend done", "e done"]);
    assert_eq!(reply["outputs"], json!({"c": 0}));
}

#[tokio::test]
async fn a_failure_ends_the_run_with_the_step_that_failed() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: g, steps: [{id: a, tool: append, with: {line: a, fails: 9, kind: denied}}]}\n- {id: b, tool: append, with: {line: b}}\n",
    );
    let reply = bench.begin().await;
    assert_eq!((&reply["status"], &reply["error"]["step"]), (&json!("failed"), &json!("a")));
    assert_eq!((&reply["error"]["kind"], &reply["error"]["hint"]), (&json!("denied"), &json!("Wait.")));
    assert_eq!(steps(&reply), ["a failed", "g failed"]);
    assert!(bench.lines().is_empty());
    let stopped = WorkflowHub::new(
        "steps:\n- {id: a, tool: look, with: {line: x}}\n- {id: stop, if: \"steps.a.output.line == 'x'\", fail: 'No: {{ steps.a.output.line }}'}\n",
    );
    let reply = stopped.begin().await;
    assert_eq!((&reply["status"], &reply["error"]["message"]), (&json!("failed"), &json!("No: x")));
}

#[tokio::test]
async fn branches_run_side_by_side_and_all_of_them_are_seen_after() {
    let bench = WorkflowHub::new(
        "steps:
- id: p
  parallel:
  - [{id: a, tool: append, with: {line: a, ms: 60}}, {id: a2, tool: append, with: {line: a2}}]
  - [{id: b, tool: append, with: {line: b, ms: 60}}]
  - [{id: c, tool: append, with: {line: c, ms: 60}}]
- {id: z, tool: append, with: {line: '{{ steps.a2.output.line }}{{ steps.b.output.line }}{{ steps.p.output.c.line }}'}}
",
    );
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(bench.tool_log.max_concurrent.load(Ordering::SeqCst), 3);
    assert_eq!(bench.lines().last().unwrap(), "a2bc");
}

#[tokio::test]
async fn a_failing_branch_lets_calls_beside_it_finish_and_begins_no_more() {
    let bench = WorkflowHub::new(
        "steps:
- id: p
  parallel:
  - [{id: a, tool: append, with: {line: a, ms: 10, fails: 9, kind: invalid}}]
  - [{id: b, tool: append, with: {line: b, ms: 120}}, {id: b2, tool: append, with: {line: b2}}]
",
    );
    let reply = bench.begin().await;
    assert_eq!((&reply["status"], &reply["error"]["step"]), (&json!("failed"), &json!("a")), "{reply}");
    assert_eq!(bench.lines(), ["b"]);
}

#[tokio::test]
async fn loops_keep_the_order_of_their_items_and_their_bound() {
    let bench = WorkflowHub::new(
        "params: {all: {type: array, default: [5, 4, 3, 2, 1, 0]}}
steps:
- id: each
  for_each: params.all
  as: n
  concurrency: 3
  tool: append
  with: {line: '{{ n }}@{{ index }}', ms: '{{ n }}'}
- id: group
  for_each: ['x', 'n{{ params.all[1] }}']
  steps:
  - {id: in1, tool: look, with: {line: '{{ item }}'}}
  - {id: in2, if: index == 0, tool: append, with: {line: '{{ steps.in1.output.line }}!'}}
outputs: {lines: '{{ steps.each.output[*].line }}', group: '{{ steps.group.output }}'}
",
    );
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(reply["outputs"]["lines"], json!(["5@0", "4@1", "3@2", "2@3", "1@4", "0@5"]));
    assert_eq!(bench.tool_log.max_concurrent.load(Ordering::SeqCst), 3);
    let group = reply["outputs"]["group"].as_array().unwrap();
    assert_eq!(
        (&group[0]["in2"]["line"], &group[1]["in1"]["line"], &group[1]["in2"]),
        (&json!("x!"), &json!("n4"), &json!(null))
    );
    assert!(steps(&reply).contains(&"in2[1] skipped".to_owned()), "{:?}", steps(&reply));
}

#[tokio::test]
async fn a_failing_item_is_caught_by_itself() {
    let bench = WorkflowHub::new(
        "steps:
- id: each
  for_each: [{n: 0}, {n: 9}, {n: 0}]
  tool: append
  with: {line: 'n{{ index }}', fails: '{{ item.n }}', kind: invalid}
  on_error: {steps: [{id: mend, tool: append, with: {line: 'mend {{ index }} {{ steps.each.error.kind }}'}}]}
outputs: {all: '{{ steps.each.output }}'}
",
    );
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(bench.lines(), ["n0", "mend 1 invalid", "n2"]);
    assert_eq!(reply["outputs"]["all"][1], json!(null));
    assert_eq!(reply["outputs"]["all"][2]["line"], "n2");
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_may_have_had_its_effect_is_not() {
    for (tool, kind, repeat, tries) in [
        ("append", "unavailable", "never", 3),
        ("append", "lost", "never", 1),
        ("append", "lost", "allowed", 3),
        ("look", "lost", "never", 3),
        ("append", "timeout", "never", 1),
        ("append", "timeout", "allowed", 3),
        ("put", "timeout", "never", 3),
        ("look", "timeout", "never", 3),
        ("append", "invalid", "allowed", 1),
    ] {
        let bench = WorkflowHub::new(&format!(
            "steps:\n- {{id: a, tool: {tool}, with: {{line: a, fails: 2, kind: {kind}}}, retry: {{times: 4, delay_seconds: 0.001}}, repeat: {repeat}}}\n"
        ));
        let reply = bench.begin().await;
        let done = if tries == 3 { "done" } else { "failed" };
        let step = &reply["steps"][0];
        assert_eq!(
            (&step["status"], &step["attempts"]),
            (&json!(done), &json!(tries)),
            "{tool} {kind} {repeat}: {reply}"
        );
    }
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, fails: 9}, retry: {times: 2, delay_seconds: 0}}\n",
    );
    let reply = bench.begin().await;
    assert_eq!((&reply["status"], &reply["steps"][0]["attempts"]), (&json!("failed"), &json!(3)));
}

#[tokio::test]
async fn a_step_has_its_own_time() {
    let bench = WorkflowHub::new(
        "steps:\n- {id: a, tool: append, with: {line: a, ms: 5000}, timeout_seconds: 0.05, on_error: continue}\n- {id: b, if: exists(steps.a.error), tool: append, with: {line: '{{ steps.a.error.kind }}'}}\n",
    );
    let reply = bench.begin().await;
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(bench.lines(), ["timeout"]);
}

#[tokio::test]
async fn a_workflow_with_mistakes_does_not_begin() {
    let bench = WorkflowHub::new("steps:\n- {id: a, tool: append, with: {lien: x}}\n");
    let error = bench.run(json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    assert!(
        error
            .message
            .contains("line 4: steps[0].with.lien: append has no parameter `lien`. Did you mean `line`?"),
        "{error}"
    );
    let bench = WorkflowHub::new(
        "params: {n: {type: integer, required: true}}\nsteps:\n- {id: a, tool: append, with: {line: 'x{{ params.n }}'}}\n",
    );
    for params in [json!({}), json!({"n": "x"}), json!({"n": 1, "m": 2})] {
        let error = bench.run(json!({"params": params})).await.unwrap_err();
        assert!(error.kind == Kind::Invalid && error.text().contains("n (integer, required)"), "{error}");
    }
    assert!(bench.lines().is_empty());
}

#[tokio::test]
async fn the_check_as_a_tool_tells_lines_and_what_would_be_called() {
    let bench = WorkflowHub::new(
        "params: {n: {type: integer, default: 1}}\nsteps:\n- {id: a, tool: append, with: {line: 'x{{ params.n }}'}}\n- {id: b, tool: workflow_run, with: {path: other.yaml}}\n",
    );
    bench.write("bad.yaml", "version: 1\nname: t\nsteps:\n- id: a\n  tool: apend\n");
    let ask = |path: &str| {
        bench.call_tool("ada", "", "workflow_validate", json!({"path": path}), Default::default())
    };
    let good = ask("flow.yaml").await.unwrap();
    assert_eq!((&good["valid"], &good["name"]), (&json!(true), &json!("test")), "{good}");
    assert_eq!(
        good["tools"][0],
        json!({"name": "append", "effect": "writes", "repeatable": false, "steps": ["a"]})
    );
    assert_eq!(
        (&good["tools"][1]["effect"], &good["params"]["properties"]["n"]["type"]),
        (&json!("destroys"), &json!("integer"))
    );
    let bad = ask("bad.yaml").await.unwrap();
    assert_eq!(bad["valid"], false);
    assert_eq!(
        bad["errors"][0],
        json!({"line": 5, "column": 3, "path": "steps[0].tool", "message": "Tool not found: `apend`.", "hint": "Did you mean `append`?"})
    );
    assert_eq!(ask("none.yaml").await.unwrap_err().kind, Kind::NotFound);
}
