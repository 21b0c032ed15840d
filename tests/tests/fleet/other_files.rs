//! A worker takes over a workspace only if it has its files.

use crate::test_fleet::{Database, RunningWorker, TestFleet, call, call_when_served};
use anyhow::{Context, Result, ensure};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

/// Settings of a worker that knows its files by their directory.
fn of_directory(workspace: Option<&Path>) -> Value {
    let mut settings = json!({"fleet": {"workspace_files": null}});
    if let Some(workspace) = workspace {
        settings["workspace"] = json!(workspace);
    }
    settings
}

fn start(home: HubHome, args: &[&str]) -> Result<RunningWorker> {
    let log = std::fs::File::create(home.dir.path().join("worker.log"))?;
    let mut command = home.command(args)?;
    let process = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    Ok(RunningWorker { home, process })
}

/// What the status says of the workspace at a node.
async fn state(fleet: &TestFleet, database: Database, node: &str) -> Option<String> {
    let home = fleet.home("status", database, json!({})).ok()?;
    let (_, out, _) = home.run(&["fleet", "status", "--json"]).await.ok()?;
    let nodes = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = nodes.into_iter().find(|status| status["node"] == node)?;
    let service = found["services"].as_array()?.iter().find(|it| it["name"] == "workspace/default")?.clone();
    Some(match (service["is_serving"] == true, service["has_other_files"] == true) {
        (_, true) => "refused".to_owned(),
        (true, _) => "serving".to_owned(),
        _ => "standby".to_owned(),
    })
}

async fn until_state(fleet: &TestFleet, database: Database, node: &str, wanted: &str) -> Result<()> {
    eventually(&format!("{node} is {wanted}"), async || {
        (state(fleet, database, node).await? == wanted).then_some(())
    })
    .await
}

/// Appends numbered lines; returns the acknowledged ones.
async fn write(front: &RunningHub, from: usize, count: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in from..from + count {
        let line = format!("line-{number}.txt");
        if call(front, "fs_write_text", json!({"path": line, "text": "kept"})).await.is_ok() {
            acknowledged.push(line);
        }
    }
    acknowledged
}

async fn none_missing(front: &RunningHub, written: &[String]) -> Result<()> {
    ensure!(!written.is_empty());
    for path in written {
        let reply = call(front, "fs_read_text", json!({"path": path})).await.context(path.clone())?;
        ensure!(reply.to_string().contains("kept"), "{path}: {reply}");
    }
    Ok(())
}

/// A worker with the files, one with a copy of them, and one with none of them.
async fn takeover_needs_the_files(database: Database) -> Result<()> {
    let fleet = TestFleet::start().await?;
    let mut first = fleet.worker("first", database, of_directory(None))?;
    let files = first.home.workspace();
    let (_home, front) = fleet.front_with("front", database, json!({})).await?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let mut written = write(&front, 0, 5).await;
    let unrelated = fleet.worker("unrelated", database, of_directory(None))?;
    let copy = fleet.home("copy", database, of_directory(None))?;
    let copied = std::process::Command::new("cp").arg("-aT").arg(&files).arg(copy.workspace()).status()?;
    ensure!(copied.success());
    let copy = start(copy, &["worker"])?;
    for (node, worker) in [("unrelated", &unrelated), ("copy", &copy)] {
        until_state(&fleet, database, node, "refused").await?;
        assert!(
            worker.log().contains("--take-over") && worker.log().contains("fleet.workspace"),
            "{}",
            worker.log()
        );
    }
    let equal = fleet.worker("equal", database, of_directory(Some(&files)))?;
    until_state(&fleet, database, "equal", "standby").await?;
    written.extend(write(&front, 100, 5).await);
    first.process.kill().await?;
    until_state(&fleet, database, "equal", "serving").await?;
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    written.extend(write(&front, 200, 5).await);
    none_missing(&front, &written).await?;
    drop(equal);
    // Those with other files do not follow, although nobody serves.
    for node in ["unrelated", "copy"] {
        until_state(&fleet, database, node, "refused").await?;
    }
    assert!(call(&front, "fs_read_text", json!({"path": written[0]})).await.is_err());
    // A stranger that starts now does not, either, not even for the front alone.
    let late = fleet.worker("late", database, of_directory(None))?;
    if database == Database::Shared {
        until_state(&fleet, database, "late", "refused").await?;
    } else {
        until_state(&fleet, database, "late", "serving").await?;
        let refused = call(&front, "fs_read_text", json!({"path": written[0]})).await;
        ensure!(
            refused.is_err_and(|error| !error.to_string().contains("not_found")),
            "other files were read"
        );
    }
    drop((late, unrelated, copy));
    // On purpose, it is.
    let taker = start(fleet.home("taker", database, of_directory(None))?, &["worker", "--take-over"])?;
    call_when_served(&front, "fs_write_text", &json!({"path": "new.txt", "text": "x"})).await?;
    assert!(taker.home.workspace().join("new.txt").exists());
    Ok(())
}

#[tokio::test]
async fn with_a_database_only_the_files_on_record_are_served() -> Result<()> {
    takeover_needs_the_files(Database::Shared).await
}

#[tokio::test]
async fn without_a_database_only_the_known_files_are_served() -> Result<()> {
    takeover_needs_the_files(Database::None).await
}
