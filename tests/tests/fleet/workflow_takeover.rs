//! A workflow run continues on another worker, and at another front.

use crate::test_fleet::{Database, TestFleet, call, call_when_served};
use anyhow::{Result, ensure};
use octo_tests::hub_process::RunningHub;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);
const WORKFLOW: &str = "version: 1
name: Gate
steps:
  - id: first
    tool: shell_exec
    with: {command: echo once >> first}
  - id: gate
    tool: fs_read_text
    with: {path: gate}
    retry: {times: 20, delay_seconds: 1, backoff: 1, on: [not_found, unavailable]}
  - id: last
    tool: shell_exec
    with: {command: echo once >> last}
    retry: {times: 20, delay_seconds: 1, backoff: 1}
";

/// Waits until the only run has stored its first step, and returns its id.
async fn until_first_step_is_stored(front: &RunningHub) -> Result<String> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let runs = call(front, "workflow_runs", json!({})).await?;
        let run = &runs["result"]["runs"][0];
        if run["next_step"] == "gate" {
            return Ok(run["run_id"].as_str().unwrap_or_default().to_owned());
        }
        ensure!(Instant::now() < deadline, "the first step does not end: {runs}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_run_continues_on_another_worker_and_at_another_front() -> Result<()> {
    let settings = || json!({"toolboxes": {"shell": true}});
    let fleet = TestFleet::start().await?;
    let (one_home, mut one) = fleet.front("front-one", settings()).await?;
    let (two_home, two) = fleet.front("front-two", settings()).await?;
    for home in [&one_home, &two_home] {
        std::fs::write(home.workspace().join("gate.yaml"), WORKFLOW)?;
    }
    let mut serving = fleet.worker("worker-one", Database::Shared, settings())?;
    call_when_served(&one, "shell_exec", &json!({"command": "true"})).await?;
    let standby = fleet.worker("worker-two", Database::Shared, settings())?;
    let workspaces = [serving.home.workspace(), standby.home.workspace()];

    let url = format!("{}/tools/workflow_run", one.base_url);
    let run = tokio::spawn(async move {
        let client = octo_tests::http_client::HttpClient::default();
        client.post(&url, &[], &json!({"path": "gate.yaml"})).await?.text().await
    });
    let id = until_first_step_is_stored(&two).await?;
    serving.process.kill().await?;
    one.process.kill().await?;
    let _ = run.await?;

    std::fs::write(workspaces[1].join("gate"), "open\n")?;
    let resume = json!({"path": "gate.yaml", "run_id": id});
    let deadline = Instant::now() + DEADLINE;
    loop {
        let reply = call(&two, "workflow_run", resume.clone()).await;
        if reply.as_ref().is_ok_and(|reply| reply["result"]["status"] == "done") {
            break;
        }
        ensure!(Instant::now() < deadline, "the run does not end: {reply:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let [first, last] =
        ["first", "last"].map(|name| workspaces.each_ref().map(|folder| read(&folder.join(name))));
    assert_eq!((first, last), (["once\n".to_owned(), String::new()], [String::new(), "once\n".to_owned()]));
    Ok(())
}
