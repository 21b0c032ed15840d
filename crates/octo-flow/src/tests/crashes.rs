//! A run that crashes at every single write in turn: every effect happens exactly once in the end.

use super::workflow_fixture::{WorkflowHub, steps};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

const FLOW: &str = "params: {names: {type: array, default: [x, y, z]}}
steps:
- {id: one, tool: append, with: {line: one}}
- id: beside
  parallel:
  - - {id: left, tool: append, with: {line: left}}
    - {id: left2, tool: append, with: {line: left2, fails: 1}, retry: {times: 3, delay_seconds: 0}}
  - - {id: right, tool: append, with: {line: right}}
    - {id: right2, if: steps.right.status == 'done', tool: append, with: {line: right2}}
- {id: each, for_each: params.names, concurrency: 2, tool: append, with: {line: 'each {{ item }}'}}
- id: caught
  tool: append
  with: {line: caught, fails: 99, kind: not_found}
  on_error: {steps: [{id: mend, tool: append, with: {line: mend}}]}
- id: group
  for_each: ['1', '2']
  steps:
  - {id: inner, tool: look, with: {line: '{{ item }}'}}
  - {id: inner2, tool: append, with: {line: 'inner {{ steps.inner.output.line }}'}}
- {id: never, if: steps.one.status == 'failed', tool: append, with: {line: never}}
- {id: last, tool: append, with: {line: last}}
outputs: {n: '{{ length(steps.each.output) }}'}
";

const LINES: [&str; 12] = [
    "each x", "each y", "each z", "inner 1", "inner 2", "last", "left", "left2", "mend", "one", "right",
    "right2",
];

/// Resumes until the run is done; for each interrupted step checks whether its line exists.
async fn resume_until_done(bench: &WorkflowHub, id: &str) -> Value {
    for _ in 0..40 {
        let mut reply = bench.run(json!({"run_id": id})).await.unwrap();
        if reply["status"] == "interrupted" {
            let (mut redo, mut skip) = (Vec::new(), Vec::new());
            for step in steps(&reply).iter().filter_map(|step| step.strip_suffix(" interrupted")) {
                // Groups need no decision.
                let line = match step {
                    "beside" | "each" | "group" => continue,
                    "each[0]" => "each x".to_owned(),
                    "each[1]" => "each y".to_owned(),
                    "each[2]" => "each z".to_owned(),
                    "inner2[0]" => "inner 1".to_owned(),
                    "inner2[1]" => "inner 2".to_owned(),
                    other if other.contains('[') => continue,
                    other => other.to_owned(),
                };
                if bench.lines().contains(&line) { &mut skip } else { &mut redo }.push(step.to_owned());
            }
            reply = bench.run(json!({"run_id": id, "redo": redo, "skip": skip})).await.unwrap();
        }
        if reply["status"] == "done" {
            return reply;
        }
        assert_eq!(reply["status"], "interrupted", "{reply}");
    }
    panic!("the run does not end");
}

#[tokio::test]
async fn a_run_cut_off_at_any_note_ends_with_every_effect_once() {
    for n in 0.. {
        let bench = WorkflowHub::new(FLOW);
        bench.runs.0.writes_left.store(n, Ordering::SeqCst);
        let reply = bench.begin().await;
        let later = bench.restarted();
        let id = reply["run_id"].as_str().unwrap().to_owned();
        let whole = reply["status"] == "done";
        let reply = if whole { reply } else { resume_until_done(&later, &id).await };
        assert_eq!(reply["outputs"], json!({"n": 3}), "cut at note {n}");
        let mut lines = later.lines();
        lines.sort();
        assert_eq!(lines, LINES, "cut at note {n}");
        let trace = later.file(&format!("artifacts/{id}/run.json"));
        assert_eq!(trace["status"], "done");
        let open = |step: &&Value| {
            step["attempts"].as_array().unwrap().iter().any(|attempt| attempt["outcome"].is_null())
        };
        let open: Vec<&Value> = trace["steps"].as_array().unwrap().iter().filter(open).collect();
        assert!(open.is_empty(), "cut at note {n}, these have no end: {open:?}");
        if whole {
            assert!(n > 30, "a run has more notes than {n}");
            return;
        }
    }
}

#[tokio::test]
async fn a_run_cut_off_again_and_again_ends_with_every_effect_once() {
    for first in [2, 5, 9] {
        let bench = WorkflowHub::new(FLOW);
        bench.runs.0.writes_left.store(first, Ordering::SeqCst);
        let id = bench.begin().await["run_id"].as_str().unwrap().to_owned();
        let mut later = bench.restarted();
        for _ in 0..12 {
            later = later.restarted();
            later.runs.0.writes_left.store(4, Ordering::SeqCst);
            // It may end here, or stop for a decision: both are checked below.
            let _ = later.run(json!({"run_id": id})).await;
        }
        resume_until_done(&later.restarted(), &id).await;
        let mut lines = later.lines();
        lines.sort();
        assert_eq!(lines, LINES, "first cut at {first}");
    }
}
