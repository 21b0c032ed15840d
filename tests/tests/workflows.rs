//! Workflows from outside: the command line, REST and MCP, and every workflow of the cookbook.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LegacyClient, ModernClient, answer_nothing};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "workflows/cookbook.rs"]
mod cookbook;

const COUNTING_WORKFLOW: &str = "version: 1
name: counted
params: {lines: {type: array, default: [one, two, three]}}
steps:
  - {id: line, for_each: params.lines, tool: fs_append, with: {path: out.txt, text: \"{{ item }}\\n\"}}
  - {id: read, tool: fs_read_text, with: {path: out.txt}}
outputs: {text: \"{{ steps.read.output.content }}\"}
";

fn home(workflow: &str) -> Result<(HubHome, PathBuf)> {
    let home = HubHome::new(&json!({"workspace": "work"}))?;
    let work = home.dir.path().join("work");
    std::fs::create_dir(&work)?;
    std::fs::write(work.join("flow.yaml"), workflow)?;
    Ok((home, work))
}

#[tokio::test]
async fn every_face_runs_a_workflow_and_says_the_same() -> Result<()> {
    let (home, work) = home(COUNTING_WORKFLOW)?;
    let server = home.serve().await?;
    let arguments = json!({"path": "flow.yaml", "params": {"lines": ["a", "b"]}});
    let mut replies = Vec::new();
    let (code, out, err) =
        home.run(&["workflow", "run", "flow.yaml", "lines=[\"a\", \"b\"]", "--json"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("of 3: read"), "{err}");
    replies.push(serde_json::from_str::<Value>(&out)?);
    std::fs::remove_file(work.join("out.txt"))?;
    let rest = HttpClient::default()
        .post(&format!("{}/tools/workflow_run", server.base_url), &[], &arguments)
        .await?;
    replies.push(rest.json().await?["result"].clone());
    std::fs::remove_file(work.join("out.txt"))?;
    let params = json!({"name": "workflow_run", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let legacy = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    let turn = legacy.call("tools/call", params).await?;
    let told: Vec<&Value> = turn
        .notifications("notifications/progress")
        .iter()
        .map(|notice| &notice["params"]["message"])
        .collect();
    assert_eq!(told.last().copied(), Some(&json!("3 of 3: read")), "{told:?}");
    replies.push(turn.result()?["structuredContent"].clone());
    std::fs::remove_file(work.join("out.txt"))?;
    let modern = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    replies.push(modern.call_tool("workflow_run", arguments).await?.result()?["structuredContent"].clone());
    for reply in &replies {
        assert_eq!(
            (&reply["status"], &reply["outputs"]),
            (&json!("done"), &json!({"text": "a\nb\n"})),
            "{reply}"
        );
        let id = reply["run_id"].as_str().context("no run_id")?;
        let trace: Value =
            serde_json::from_slice(&std::fs::read(work.join("artifacts").join(id).join("run.json"))?)?;
        let steps: Vec<&str> =
            trace["steps"].as_array().unwrap().iter().filter_map(|step| step["id"].as_str()).collect();
        assert_eq!(steps, ["line[0]", "line[1]", "line", "read"]);
    }
    Ok(())
}

#[tokio::test]
async fn the_command_line_tells_mistakes_with_their_lines() -> Result<()> {
    let (home, _) =
        home("version: 1\nname: x\nsteps:\n  - id: a\n    tool: fs_apend\n    with: {path: 3}\n")?;
    let (code, out, _) = home.run(&["workflow", "validate", "flow.yaml"]).await?;
    assert_eq!(code, 2, "{out}");
    assert!(
        out.starts_with("flow.yaml:5:5: steps[0].tool: Tool not found: `fs_apend`. Did you mean"),
        "{out}"
    );
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let (code, _, err) = home.run(&["workflow", "run", "flow.yaml"]).await?;
    assert!(code == 2 && err.contains("fs_apend"), "{err}");
    let (code, _, err) = home.run(&["workflow", "validate", "none.yaml"]).await?;
    assert!(code == 3, "{err}");
    let (_, schema, _) = home.run(&["workflow", "schema"]).await?;
    assert_eq!(serde_json::from_str::<Value>(&schema)?["properties"]["version"]["const"], 1);
    Ok(())
}

#[tokio::test]
async fn a_failed_run_is_listed_shown_and_gone_on_with() -> Result<()> {
    let (home, work) = home(
        "version: 1\nname: needs a file\nsteps:\n  - {id: read, tool: fs_read_text, with: {path: later.txt}}\n  - {id: copy, tool: fs_append, with: {path: out.txt, text: \"{{ steps.read.output.content }}\"}}\n",
    )?;
    let (code, _, err) = home.run(&["workflow", "run", "flow.yaml"]).await?;
    assert!(code == 3 && err.contains("later.txt"), "{code} {err}");
    let (_, listed, _) = home.run(&["workflow", "list", "--json"]).await?;
    let listed: Value = serde_json::from_str(&listed)?;
    let id = listed["runs"][0]["run_id"].as_str().context("no run")?;
    assert_eq!(
        (&listed["runs"][0]["status"], &listed["runs"][0]["workflow"]),
        (&json!("failed"), &json!("needs a file"))
    );
    let (_, shown, _) = home.run(&["workflow", "show", id]).await?;
    assert!(shown.contains("read  failed: ") && shown.contains("later.txt"), "{shown}");
    let (code, _, err) = home.run(&["workflow", "resume", id]).await?;
    assert_eq!(code, 3, "nothing was decided: {err}");
    std::fs::write(work.join("later.txt"), "now\n")?;
    let (code, _, err) = home.run(&["workflow", "resume", id, "--redo", "read"]).await?;
    assert_eq!(code, 0, "{err}");
    assert_eq!(std::fs::read_to_string(work.join("out.txt"))?, "now\n");
    let (code, _, err) = home.run(&["workflow", "resume", "w_aaaaaaaaaaaaaaaaaaaaaaaaaa"]).await?;
    assert!(code == 3, "{err}");
    Ok(())
}

/// A server that responds slowly enough to be killed in between.
async fn start_slow_site(answer: fn(Request) -> Response) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let slow = async move |request: Request| {
        if request.uri().path() == "/slow" {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
        answer(request)
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(slow)).await });
    Ok(base)
}

const APPEND_A: &str = "  - {id: a, tool: fs_append, with: {path: out.txt, text: \"a\\n\"}}\n";
const APPEND_B: &str = "  - {id: b, tool: fs_append, with: {path: out.txt, text: \"b\\n\"}}\n";

/// A hub whose workspace has `flow.yaml`: these steps, and between them one that waits for a slow page.
async fn hub_with_slow_workflow(before: &str, after: &str) -> Result<(HubHome, PathBuf)> {
    let base = start_slow_site(|_| "text".into_response()).await?;
    let home = HubHome::new(&json!({"workspace": "work", "net": {"allow": ["127.0.0.1"]}}))?;
    let work = home.dir.path().join("work");
    std::fs::create_dir(&work)?;
    let wait = format!("  - {{id: wait, tool: fetch_url, with: {{url: \"{base}/slow\"}}}}\n");
    std::fs::write(work.join("flow.yaml"), format!("version: 1\nname: slow\nsteps:\n{before}{wait}{after}"))?;
    Ok((home, work))
}

#[tokio::test]
async fn two_processes_do_not_work_on_one_run_and_a_dead_one_is_noticed_at_once() -> Result<()> {
    let (home, work) = hub_with_slow_workflow(APPEND_A, APPEND_B).await?;
    let mut first = home
        .command(&["workflow", "run", "flow.yaml"])?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let id = eventually("the second step is under way", async || {
        let (_, listed, _) = home.run(&["workflow", "list", "--json"]).await.ok()?;
        let listed: Value = serde_json::from_str(&listed).ok()?;
        let id = listed["runs"][0]["run_id"].as_str()?.to_owned();
        let (_, shown, _) = home.run(&["workflow", "show", &id, "--json"]).await.ok()?;
        let shown: Value = serde_json::from_str(&shown).ok()?;
        (shown["steps"][1]["status"] == "started").then_some(id)
    })
    .await?;
    let (code, _, err) = home.run(&["workflow", "resume", &id]).await?;
    assert!(code == 1 && err.contains("Another process is working on this run"), "{code} {err}");
    first.kill().await?;
    // What only reads is asked again by itself.
    let (code, out, err) = home.run(&["workflow", "resume", &id, "--json"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    let reply: Value = serde_json::from_str(&out)?;
    assert_eq!((&reply["status"], &reply["steps"][1]["attempts"]), (&json!("done"), &json!(2)), "{reply}");
    assert_eq!(std::fs::read_to_string(work.join("out.txt"))?, "a\nb\n");
    Ok(())
}

#[tokio::test]
async fn a_run_of_a_killed_hub_goes_on_when_the_next_one_is_asked_for_it() -> Result<()> {
    let (home, work) = hub_with_slow_workflow(APPEND_A, APPEND_B).await?;
    let mut first = home.serve().await?;
    let url = format!("{}/tools/workflow_run", first.base_url);
    let asked =
        tokio::spawn(
            async move { HttpClient::default().post(&url, &[], &json!({"path": "flow.yaml"})).await },
        );
    eventually("the first step is done", async || work.join("out.txt").exists().then_some(())).await?;
    first.process.kill().await?;
    assert!(asked.await?.is_err(), "a killed hub answers nothing");
    let (_, listed, _) = home.run(&["workflow", "list", "--json"]).await?;
    let id = serde_json::from_str::<Value>(&listed)?["runs"][0]["run_id"].clone();
    let second = home.serve().await?;
    let url = format!("{}/tools/workflow_run", second.base_url);
    let reply = HttpClient::default()
        .post(&url, &[], &json!({"path": "flow.yaml", "run_id": id}))
        .await?
        .json()
        .await?;
    let mut reply = reply["result"].clone();
    if reply["status"] == "interrupted" {
        // The line was there before the first step was known as done.
        let asked = json!({"path": "flow.yaml", "run_id": id, "skip": ["a"]});
        reply = HttpClient::default().post(&url, &[], &asked).await?.json().await?["result"].clone();
    }
    assert_eq!(reply["status"], "done", "{reply}");
    assert_eq!(std::fs::read_to_string(work.join("out.txt"))?, "a\nb\n");
    Ok(())
}

#[tokio::test]
async fn an_interrupted_command_cancels_its_run_which_goes_on_later() -> Result<()> {
    let (home, _) = hub_with_slow_workflow("", "").await?;
    let running = home
        .command(&["workflow", "run", "flow.yaml"])?
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = running.id().context("it has ended")?;
    eventually("the run has begun", async || {
        let (_, listed, _) = home.run(&["workflow", "list", "--json"]).await.ok()?;
        listed.contains("w_").then_some(())
    })
    .await?;
    Command::new("kill").args(["-INT", &pid.to_string()]).status()?;
    let ended = running.wait_with_output().await?;
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    let id = said.split_whitespace().find(|word| word.starts_with("w_")).context(said.clone())?.to_owned();
    let (_, shown, _) = home.run(&["workflow", "show", &id, "--json"]).await?;
    assert_eq!(serde_json::from_str::<Value>(&shown)?["status"], "cancelled", "{shown}");
    let (code, _, err) = home.run(&["workflow", "resume", &id]).await?;
    assert_eq!(code, 0, "{err}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_knows_tasks_gets_one_for_a_run_and_can_cancel_it() -> Result<()> {
    let (home, work) =
        hub_with_slow_workflow("", "  - {id: b, tool: fs_append, with: {path: out.txt, text: b}}\n").await?;
    let server = home.serve().await?;
    let extensions = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let client = ModernClient::new(&server.mcp_url(), extensions, answer_nothing);
    let params = json!({"name": "workflow_run", "arguments": {"path": "flow.yaml"}});
    for (cancel, status) in [(false, "completed"), (true, "cancelled")] {
        let turn = client.request("tools/call", params.clone()).await?;
        let begun = turn.result()?;
        assert_eq!(begun["resultType"], "task", "{begun}");
        let asked = json!({"taskId": begun["taskId"]});
        if cancel {
            client.request("tasks/cancel", asked.clone()).await?.result()?;
        }
        let task = eventually("the task has ended", async || {
            let turn = client.request("tasks/get", asked.clone()).await.ok()?;
            Some(turn.result().ok()?.clone()).filter(|task| task["status"] == status)
        })
        .await?;
        if !cancel {
            assert_eq!(task["result"]["structuredContent"]["status"], "done", "{task}");
        }
    }
    assert_eq!(std::fs::read_to_string(work.join("out.txt"))?, "b");
    eventually("the second run is cancelled", async || {
        let (_, listed, _) = home.run(&["workflow", "list", "--json"]).await.ok()?;
        let listed: Value = serde_json::from_str(&listed).ok()?;
        (listed["runs"][0]["status"] == "cancelled" && listed["runs"][1]["status"] == "done").then_some(())
    })
    .await
}

#[tokio::test]
async fn a_profile_shows_its_workflows_no_more_than_its_clients() -> Result<()> {
    let home = HubHome::new(&json!({
        "workspace": "work",
        "profiles": {"reading": {"tools": ["fs_read_*", "workflow_*"]}},
    }))?;
    let work = home.dir.path().join("work");
    std::fs::create_dir(&work)?;
    std::fs::write(work.join("flow.yaml"), COUNTING_WORKFLOW)?;
    let server = home.serve().await?;
    let client = ModernClient::new(&server.profile_url("reading"), json!({}), answer_nothing);
    let turn = client.call_tool("workflow_run", json!({"path": "flow.yaml"})).await?;
    let said = turn.result()?["content"][0]["text"].to_string();
    assert!(said.contains("Tool not found: `fs_append`"), "{said}");
    assert!(!work.join("out.txt").exists());
    Ok(())
}

#[tokio::test]
async fn inner_calls_are_in_the_audit_and_lead_to_the_outer_one() -> Result<()> {
    let (home, _) = home(COUNTING_WORKFLOW)?;
    let (code, out, err) = home.run(&["call", "workflow_run", "path=flow.yaml", "--json"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    let outer = serde_json::from_str::<Value>(&out)?["metadata"]["call_id"].as_str().unwrap().to_owned();
    let records = home.audit_tail(50).await?;
    let inner: Vec<&Value> = records
        .iter()
        .filter(|record| {
            record["kind"] == "open" && record["trace"].as_str().is_some_and(|trace| trace.contains(&outer))
        })
        .collect();
    let names: Vec<&str> = inner.iter().filter_map(|record| record["name"].as_str()).collect();
    assert_eq!(names, ["fs_append", "fs_append", "fs_append", "fs_read_text"], "{records:#?}");
    assert_eq!(home.run(&["audit", "verify"]).await?.0, 0);
    Ok(())
}
