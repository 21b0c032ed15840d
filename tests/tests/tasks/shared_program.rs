//! A legacy program with tasks that several clients use through one connection.

use anyhow::Result;
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{Exchange, LegacyClient};
use serde_json::{Value, json};

/// `job` is called as a task. While it sleeps, and a `wait` of another client is open, the program asks a question and
/// reports the state of the task. It ends if the file `end` exists in the workspace, where it starts.
const PROGRAM: &str = r#"
import json, os, sys, threading
lock, waiting = threading.Lock(), []
def send(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def text(words):
    return {"content": [{"type": "text", "text": words}]}
TASK = {"taskId": "1", "status": "working", "createdAt": "2026-11-15T12:00:00Z", "lastUpdatedAt": "2026-11-15T12:00:00Z", "ttl": 60000, "pollInterval": 300}
tool = lambda name, support: {"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
answer = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "shared", "version": "1"},
            "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [tool("job", "required"), tool("wait", "forbidden")]}})
    elif method == "tools/call" and message["params"]["name"] == "job":
        send({"id": id, "result": {"task": TASK}})
    elif method == "tools/call":
        waiting.append(id)
        send({"method": "notifications/tasks/status", "params": {**TASK, "statusMessage": "a task of somebody else"}})
        send({"id": "q", "method": "elicitation/create", "params": {"message": "The password?", "requestedSchema":
            {"type": "object", "properties": {}}, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "1"}}}})
    elif method == "tasks/get" and os.path.exists("end"):
        os._exit(1)
    elif method == "tasks/get":
        send({"id": id, "result": {**TASK, "status": "completed" if answer else "working"}})
    elif method == "tasks/result":
        send({"id": id, "result": text("The job is done.")})
    elif id == "q":
        answer = json.dumps(message)
        send({"id": waiting.pop(), "result": text("answer: " + answer)})
    elif id is not None:
        send({"id": id, "result": {}})
"#;

fn home() -> Result<HubHome> {
    let server = json!({"command": "python3", "args": ["-c", PROGRAM], "cwd": "${workspace}"});
    HubHome::new(&json!({"servers": {"shared": server}}))
}

fn answer_password(_method: &str, _params: &Value) -> Value {
    json!({"action": "accept", "content": {"password": "hunter2"}})
}

async fn call(client: &LegacyClient, tool: &str) -> Result<Exchange> {
    client.call_tool(&format!("shared__{tool}"), json!({})).await
}

/// The program may mean either of them, so it gets no answer. Its notification about a task reaches nobody.
#[tokio::test]
async fn nobody_is_asked_while_the_task_of_another_client_runs() -> Result<()> {
    let home = home()?;
    let hub = home.serve().await?;
    hub.until_listed("shared__job").await?;
    let connect =
        async || LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {}}), answer_password).await;
    let (anna, bert) = (connect().await?, connect().await?);
    let job = call(&anna, "job");
    tokio::pin!(job);
    // The task exists as soon as its call has been answered; meanwhile the other client begins.
    tokio::select! {
        early = &mut job => panic!("the task ended: {:?}", early?.answer),
        () = tokio::time::sleep(std::time::Duration::from_millis(700)) => {}
    }
    let (done, asked) = tokio::join!(job, call(&bert, "wait"));
    let (done, asked) = (done?, asked?);
    assert!(asked.answer.to_string().contains("Cannot determine the client"), "{}", asked.answer);
    assert_eq!(done.result()?["content"][0]["text"], "The job is done.");
    for exchange in [done, asked] {
        assert!(exchange.messages_before.is_empty(), "{:?}", exchange.messages_before);
    }
    Ok(())
}

/// Ids of a program that was started again belong to other tasks.
#[tokio::test]
async fn the_task_of_an_ended_program_is_not_sought_in_the_next_one() -> Result<()> {
    let home = home()?;
    let hub = home.serve().await?;
    hub.until_listed("shared__job").await?;
    let client = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_password).await?;
    std::fs::write(home.workspace().join("end"), "")?;
    let turn = call(&client, "job").await?.answer.to_string();
    assert!(turn.contains("isError") && !turn.contains("is done"), "{turn}");
    std::fs::remove_file(home.workspace().join("end"))?;
    eventually("the program runs again", async || {
        let turn = call(&client, "wait").await.ok()?.answer.to_string();
        turn.contains("answer: ").then_some(())
    })
    .await
}
