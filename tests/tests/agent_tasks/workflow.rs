//! A workflow whose hub is killed during a step.

use crate::cost_agent::Agent;
use crate::loopback_site::serve;
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::answer_nothing;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

const STEPS: usize = 6;
const KILLED_AT: usize = 4;

/// Posted steps, in order.
type PostedSteps = Arc<Mutex<Vec<usize>>>;

/// Records a step; the one to be interrupted gets no response.
async fn record_step(State(posted): State<PostedSteps>, Path(step): Path<usize>) -> StatusCode {
    posted.lock().unwrap().push(step);
    if step == KILLED_AT {
        std::future::pending::<()>().await;
    }
    StatusCode::CREATED
}

async fn start_step_log(posted: &PostedSteps) -> Result<String> {
    let router = Router::new()
        .route("/step/{step}", post(record_step))
        .route(
            "/steps",
            get(async |State(posted): State<PostedSteps>| axum::Json(posted.lock().unwrap().clone())),
        )
        .with_state(Arc::clone(posted));
    serve(router).await
}

#[tokio::test]
async fn an_interrupted_workflow_is_found_and_resumed() -> Result<()> {
    let posted = PostedSteps::default();
    let base = start_step_log(&posted).await?;
    let home = HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}}))?;
    let mut flow = "version: 1\nname: six steps\nsteps:\n".to_owned();
    for step in 1..=STEPS {
        writeln!(
            flow,
            "  - {{id: s{step}, tool: http_request, with: {{method: POST, url: \"{base}/step/{step}\"}}}}"
        )?;
    }
    std::fs::write(home.workspace().join("flow.yaml"), flow)?;
    let mut agent = Agent::new(&home).await?;
    let params = json!({"name": "workflow_run", "arguments": {"path": "flow.yaml"}});
    let pipes = &mut agent.pipes;
    tokio::select! {
        answer = pipes.call("tools/call", params, answer_nothing) => anyhow::bail!("it was not interrupted: {answer:?}"),
        under_way = eventually("the step is under way", async || posted.lock().unwrap().contains(&KILLED_AT).then_some(())) => under_way?,
    }
    pipes.process.kill().await?;
    agent.reconnect(&home).await?;
    // The run is unknown to whoever never got a reply.
    let runs = agent.call("workflow_runs", json!({"path": "flow.yaml"})).await?;
    let run = &runs["runs"][0];
    ensure!(runs["runs"].as_array().is_some_and(|runs| runs.len() == 1), "{runs}");
    assert_eq!(
        (&run["status"], &run["next_step"]),
        (&json!("interrupted"), &json!(format!("s{KILLED_AT}"))),
        "{runs}"
    );
    let resume = json!({"path": run["path"], "run_id": run["run_id"]});
    let stopped = agent.call("workflow_run", resume.clone()).await?;
    assert_eq!(
        (&stopped["status"], &stopped["error"]["step"]),
        (&json!("interrupted"), &run["next_step"]),
        "{stopped}"
    );
    ensure!(
        stopped["error"]["hint"].as_str().is_some_and(|hint| hint.contains("skip") && hint.contains("redo")),
        "{stopped}"
    );
    // Whether the effect is there is for the agent to find out.
    let steps = agent.call("fetch_json", json!({"url": format!("{base}/steps")})).await?;
    let is_there = steps["json"].as_array().context("no list")?.contains(&json!(KILLED_AT));
    ensure!(is_there, "{steps}");
    let mut skip = resume;
    skip["skip"] = json!([run["next_step"]]);
    let done = agent.call("workflow_run", skip).await?;
    assert_eq!(done["status"], "done", "{done}");
    let expected: Vec<usize> = (1..=STEPS).collect();
    assert_eq!(*posted.lock().unwrap(), expected, "each step runs once");
    let attempts: Vec<&Value> =
        done["steps"].as_array().into_iter().flatten().map(|step| &step["attempts"]).collect();
    ensure!(attempts.iter().all(|attempts| **attempts == 1), "{done}");
    agent.finish("resume a workflow whose hub was killed", 4, 1_000)
}
