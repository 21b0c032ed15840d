//! One worker at a time without a database: workers claim the workspace among each other.

use crate::test_fleet::{Database, RunningWorker, TestFleet, call, call_when_served};
use anyhow::{Result, ensure};
use octo_tests::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long the other worker may take.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(15);

fn with_shell() -> Value {
    json!({"toolboxes": {"shell": true}})
}

/// Each worker that answers, and whether it serves the workspace.
async fn workspace_states(fleet: &TestFleet) -> Result<Vec<(String, bool)>> {
    let home = fleet.home("status", Database::None, json!({}))?;
    let (code, out, err) = home.run(&["fleet", "status", "--json"]).await?;
    ensure!(code == 0, "{err}");
    let nodes = out.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()?;
    let state = |node: &Value| {
        let service = node["services"].as_array()?.iter().find(|it| it["name"] == "workspace/default")?;
        Some((node["node"].as_str()?.to_owned(), service["is_serving"] == true))
    };
    Ok(nodes.iter().filter_map(state).collect())
}

/// Waits until one of two workers serves and the other one does not; returns their names.
async fn serving_and_standby(fleet: &TestFleet) -> Result<[String; 2]> {
    eventually("one worker serves, and another one stands by", async || {
        match workspace_states(fleet).await.ok()?.as_slice() {
            [(serving, true), (standby, false)] | [(standby, false), (serving, true)] => {
                Some([serving.clone(), standby.clone()])
            }
            _ => None,
        }
    })
    .await
}

async fn touch(front: &octo_tests::hub_process::RunningHub, name: &str) -> Result<Value> {
    call_when_served(front, "shell_exec", &json!({"command": format!("touch {name}")})).await
}

/// Starts two workers; the one that serves comes first.
async fn start_workers(fleet: &TestFleet) -> Result<[RunningWorker; 2]> {
    let one = fleet.worker("one", Database::None, with_shell())?;
    let two = fleet.worker("two", Database::None, with_shell())?;
    let [serving, _] = serving_and_standby(fleet).await?;
    Ok(if serving == "one" { [one, two] } else { [two, one] })
}

#[tokio::test]
async fn a_claimed_workspace_moves_when_its_worker_dies() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let [mut serving, standby] = start_workers(&fleet).await?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    touch(&front, "here").await?;
    assert!(serving.home.workspace().join("here").exists());
    serving.process.kill().await?;
    let started = Instant::now();
    touch(&front, "there").await?;
    assert!(started.elapsed() < TAKEOVER_TIMEOUT, "{:?}", started.elapsed());
    assert!(standby.home.workspace().join("there").exists());
    Ok(())
}

#[tokio::test]
async fn a_claimed_workspace_moves_when_its_worker_is_stopped() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let [mut serving, standby] = start_workers(&fleet).await?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    touch(&front, "here").await?;
    let running = call(&front, "shell_exec", json!({"command": "touch started; sleep 1; echo done"}));
    let stopped = async {
        let file = serving.home.workspace().join("started");
        eventually("the command runs", async || file.exists().then_some(())).await?;
        serving.signal(Signal::TERM)?;
        let started = Instant::now();
        // It takes calls for a moment longer, until the others know that it leaves.
        while !standby.home.workspace().join("there").exists() {
            ensure!(started.elapsed() < TAKEOVER_TIMEOUT, "it did not move");
            touch(&front, "there").await?;
        }
        Ok(())
    };
    let (reply, stopped) = tokio::join!(running, stopped);
    assert!(reply?.to_string().contains("done"));
    stopped?;
    let status = tokio::time::timeout(TAKEOVER_TIMEOUT, serving.process.wait()).await??;
    assert!(status.success(), "{status}");
    Ok(())
}

#[tokio::test]
async fn a_worker_with_a_lease_comes_before_one_without_a_database() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let claimant = fleet.worker("one", Database::None, with_shell())?;
    eventually("the first worker serves", async || {
        let states = workspace_states(&fleet).await.ok()?;
        states.contains(&("one".to_owned(), true)).then_some(())
    })
    .await?;
    let _holder = fleet.worker("two", Database::Shared, with_shell())?;
    eventually("the lease decides", async || {
        let states = workspace_states(&fleet).await.ok()?;
        (states.len() == 2 && states.iter().all(|(node, serves)| *serves == (node == "two"))).then_some(())
    })
    .await?;
    assert!(claimant.log().contains("another node takes over"), "{}", claimant.log());
    Ok(())
}

#[tokio::test]
async fn a_malformed_key_is_reported_at_start() -> Result<()> {
    // The first is a seed with a wrong letter, the second a public key.
    let keys = [
        "SUAGC3DBMJZWC3TENVSXGZ3PN5ZWKY3SMV2GC3TENVSXGZ3PN5ZWKY3SMU",
        "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
    ];
    let fleet = TestFleet::start().await?;
    for key in keys {
        let home = fleet.home("laptop", Database::None, json!({}))?;
        let mut command = home.command(&["worker"])?;
        command.env("OCTOPROX_FLEET_CREDENTIALS", key).stdin(Stdio::null());
        let output = tokio::time::timeout(Duration::from_secs(30), command.output()).await??;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("fleet.credentials"), "{said}");
        assert!(!said.contains(key) && !said.contains(&key[..16]), "{said}");
    }
    Ok(())
}
