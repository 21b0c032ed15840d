//! Tools that run on workers.

use crate::test_fleet::{Database, TestFleet, call, call_when_served};
use anyhow::Result;
use octo_tests::eventually;
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

fn with_shell() -> serde_json::Value {
    json!({"toolboxes": {"shell": true}})
}

#[tokio::test]
async fn files_and_commands_are_those_of_the_worker() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let worker = fleet.worker("laptop", Database::None, with_shell())?;
    std::fs::write(worker.home.workspace().join("tea.txt"), "sencha\n")?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    let reply = call_when_served(&front, "fs_read_text", &json!({"path": "tea.txt"})).await?;
    assert!(reply.to_string().contains("sencha"), "{reply}");
    call(&front, "fs_write_text", json!({"path": "new.txt", "content": "from the front\n"})).await?;
    assert_eq!(std::fs::read_to_string(worker.home.workspace().join("new.txt"))?, "from the front\n");
    let reply =
        call_when_served(&front, "shell_exec", &json!({"command": "cat tea.txt; echo $((6*7))"})).await?;
    assert!(reply.to_string().contains("42"), "{reply}");
    Ok(())
}

#[tokio::test]
async fn long_output_of_a_worker_without_a_database_can_be_read_at_the_front() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let _worker = fleet.worker("laptop", Database::None, with_shell())?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    let command = json!({"command": "seq 1 200000"});
    let reply = call_when_served(&front, "shell_exec", &command).await?;
    let handle = reply["result"]["handle"].as_str().unwrap_or_default().to_owned();
    let rest = call(&front, "result_read", json!({"handle": handle, "pattern": "^177777$"})).await?;
    assert!(rest.to_string().contains("177777"), "{reply} {rest}");
    Ok(())
}

#[tokio::test]
async fn without_a_worker_the_error_says_so_at_once() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let (_home, front) = fleet.front("front", json!({})).await?;
    let started = tokio::time::Instant::now();
    let error = eventually("the front has looked for the worker", async || {
        let error = call(&front, "fs_read_text", json!({"path": "a"})).await.unwrap_err().to_string();
        error.contains("No worker serves").then_some(error)
    })
    .await?;
    assert!(error.contains("503"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[tokio::test]
async fn a_worker_that_is_stopped_completes_its_calls() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let mut worker = fleet.worker("laptop", Database::Shared, with_shell())?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    call_when_served(&front, "shell_exec", &json!({"command": "true"})).await?;
    let call = call(&front, "shell_exec", json!({"command": "touch started; sleep 2; echo done"}));
    let stop = async {
        let started = worker.home.workspace().join("started");
        eventually("the command runs", async || started.exists().then_some(())).await?;
        worker.signal(Signal::TERM)
    };
    let (reply, stopped) = tokio::join!(call, stop);
    stopped?;
    assert!(reply?.to_string().contains("done"));
    let status = tokio::time::timeout(Duration::from_secs(20), worker.process.wait()).await??;
    assert!(status.success(), "{status}");
    Ok(())
}

#[tokio::test]
async fn the_tools_of_a_worker_are_listed_with_those_of_the_front() -> Result<()> {
    let fleet = TestFleet::start().await?;
    let _worker = fleet.worker("laptop", Database::None, with_shell())?;
    let (_home, front) = fleet.front("front", with_shell()).await?;
    for tool in ["fs_read_text", "git_status", "shell_exec", "time_now"] {
        front.until_listed(tool).await?;
    }
    call_when_served(&front, "fs_list", &json!({"path": "."})).await?;
    let client = ModernClient::new(&front.mcp_url(), json!({}), answer_nothing);
    let reply = client.call_tool("fs_list", json!({"path": "."})).await?;
    assert!(reply.result()?.get("isError").is_none_or(|error| error == false), "{:?}", reply.result()?);
    Ok(())
}
