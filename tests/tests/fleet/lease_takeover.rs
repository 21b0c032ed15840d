//! One worker at a time: leases decide, also for processes that were suspended.

use crate::test_fleet::{Database, RunningWorker, TestFleet, call, call_when_served};
use anyhow::{Result, ensure};
use octo_tests::test_binaries::binary_path;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn with_shell() -> Value {
    json!({"toolboxes": {"shell": true}})
}

fn is_serving(worker: &RunningWorker) -> bool {
    worker.log().contains("serving")
}

/// The worker that serves the workspace, and the other one.
async fn serving_first(workers: [RunningWorker; 2]) -> Result<[RunningWorker; 2]> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let [first, second] = workers;
    loop {
        match (is_serving(&first), is_serving(&second)) {
            (true, false) => return Ok([first, second]),
            (false, true) => return Ok([second, first]),
            (true, true) => anyhow::bail!("both serve"),
            (false, false) => {}
        }
        ensure!(Instant::now() < deadline, "nobody serves: {}", first.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_workspace_moves_to_another_worker_when_its_worker_dies() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let workers = ["one", "two"].map(|node| fleet.worker(node, Database::Shared, with_shell()));
    let [one, two] = workers;
    let [mut serving, standby] = serving_first([one?, two?]).await?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    call_when_served(&front, "shell_exec", &json!({"command": "touch here"})).await?;
    assert!(serving.home.workspace().join("here").exists());
    serving.process.kill().await?;
    let started = Instant::now();
    call_when_served(&front, "shell_exec", &json!({"command": "touch there"})).await?;
    assert!(standby.home.workspace().join("there").exists());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_worker_that_was_suspended_runs_nothing_after_its_lease() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let workers = ["one", "two"].map(|node| fleet.worker(node, Database::Shared, with_shell()));
    let [one, two] = workers;
    let [serving, standby] = serving_first([one?, two?]).await?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    call_when_served(&front, "shell_exec", &json!({"command": "true"})).await?;
    serving.signal(Signal::STOP)?;
    // Calls that reach the suspended worker wait there until it continues.
    let waiting: Vec<_> = (0..5)
        .map(|number| {
            let command = json!({"command": format!("echo {number} >> effects")});
            let front = front.base_url.clone();
            tokio::spawn(async move {
                let client = octo_tests::http_client::HttpClient::default();
                client.post(&format!("{front}/tools/shell_exec"), &[], &command).await?.text().await
            })
        })
        .collect();
    let deadline = Instant::now() + Duration::from_secs(40);
    while !is_serving(&standby) {
        ensure!(Instant::now() < deadline, "nobody takes over: {}", standby.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    serving.signal(Signal::CONT)?;
    call_when_served(&front, "shell_exec", &json!({"command": "touch taken-over"})).await?;
    assert!(standby.home.workspace().join("taken-over").exists());
    for call in waiting {
        let _ = call.await?;
    }
    let effects = std::fs::read_to_string(serving.home.workspace().join("effects")).unwrap_or_default();
    assert_eq!(effects, "", "the suspended worker ran a call after its lease: {}", serving.log());
    assert!(serving.log().contains("another node takes over"), "{}", serving.log());
    Ok(())
}

#[tokio::test]
async fn one_worker_runs_each_server() -> Result<()> {
    let fixture = binary_path("mcp-fixture")?.display().to_string();
    let settings = json!({"servers": {"fixture": {"command": fixture, "args": ["stdio"]}}});
    let fleet = TestFleet::start().await?;
    let one = fleet.worker("one", Database::Shared, settings.clone())?;
    let two = fleet.worker("two", Database::Shared, settings.clone())?;
    let (_home, front) = fleet.front("front", settings.clone()).await?;
    front.until_listed("fixture__fix_echo").await?;
    let reply = call(&front, "fixture__fix_echo", json!({"text": "over the fabric"})).await?;
    assert!(reply.to_string().contains("over the fabric"), "{reply}");
    let children = |worker: &RunningWorker| {
        let pid = u32::try_from(worker.pid()).unwrap_or(0);
        let processes = octo_tests::processes::descendants(pid);
        processes
            .iter()
            .filter(|child| child.command_line().windows(11).any(|part| part == b"mcp-fixture"))
            .count()
    };
    assert_eq!(u8::from(children(&one) > 0) + u8::from(children(&two) > 0), 1);
    let [mut running, _other] = if children(&one) > 0 { [one, two] } else { [two, one] };
    running.process.kill().await?;
    let reply = call_when_served(&front, "fixture__fix_echo", &json!({"text": "again"})).await?;
    assert!(reply.to_string().contains("again"), "{reply}");
    Ok(())
}
