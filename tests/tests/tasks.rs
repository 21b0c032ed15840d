//! Calls that become tasks: over HTTP, over stdio, for their callers only, and never longer than the hub.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "tasks/shared_program.rs"]
mod shared_program;
#[path = "tasks/task_server.rs"]
mod task_server;
#[path = "tasks/task_upstream.rs"]
mod task_upstream;

use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LegacyClient, MODERN, ModernClient, answer_nothing};
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};
use task_server::TaskServer;
use task_upstream::TaskUpstream;

const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn task_client(url: &str) -> ModernClient {
    ModernClient::new(url, json!({"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}), answer_nothing)
}

fn slow_call(seconds: f64, label: &str) -> Value {
    json!({"name": "long__slow_compute", "arguments": {"seconds": seconds, "label": label}})
}

fn home(upstream: &TaskUpstream) -> Result<HubHome> {
    HubHome::new(&json!({"servers": {"long": {"url": upstream.url}}}))
}

async fn start_task(client: &ModernClient, params: Value) -> Result<String> {
    let turn = client.request("tools/call", params).await?;
    let result = turn.result()?;
    assert_eq!(result["resultType"], "task", "{result}");
    Ok(result["taskId"].as_str().context("no taskId")?.to_owned())
}

async fn get_task(client: &ModernClient, id: &str) -> Result<Value> {
    Ok(client.request("tasks/get", json!({"taskId": id})).await?.result()?.clone())
}

async fn wait_for_status(client: &ModernClient, id: &str, status: &str) -> Result<Value> {
    let reached = async || get_task(client, id).await.ok().filter(|task| task["status"] == status);
    eventually(&format!("the task is {status}"), reached).await
}

/// The task as soon as its status message contains these words.
async fn wait_for_message(client: &ModernClient, id: &str, words: &str) -> Result<Value> {
    let tells = |task: &Value| task["statusMessage"].as_str().is_some_and(|said| said.contains(words));
    eventually(&format!("it tells of {words}"), async || get_task(client, id).await.ok().filter(tells)).await
}

/// Outcomes of the slow tool's calls, according to the audit log.
async fn outcomes(home: &HubHome) -> Result<Vec<String>> {
    let records = home.audit_tail(100).await?;
    let of_tool = records.iter().filter(|record| record["target"] == "long/slow_compute");
    Ok(of_tool.map(|record| record["outcome"].as_str().unwrap_or_default().to_owned()).collect())
}

#[tokio::test]
async fn a_task_is_followed_to_the_result_of_the_plain_call() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let server = home.serve().await?;
    let client = task_client(&server.mcp_url());
    let discovered = client.request("server/discover", json!({})).await?;
    assert_eq!(discovered.result()?["capabilities"]["extensions"], json!({TASKS_EXTENSION: {}}));
    let id = start_task(&client, slow_call(1.5, "sums")).await?;
    let working = wait_for_message(&client, &id, "Computing sums.").await?;
    assert_eq!(working["status"], "working");
    let done = wait_for_status(&client, &id, "completed").await?;
    let direct = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing)
        .request("tools/call", slow_call(0.0, "sums"))
        .await?;
    assert_eq!(&done["result"], direct.result()?);
    let refused = client.request("tasks/get", json!({"taskId": "0".repeat(64)})).await?;
    assert_eq!(refused.answer["error"]["code"], -32602);
    eventually("both calls are in the audit", async || {
        (outcomes(&home).await.ok()? == ["ok", "ok"]).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_cancelled_task_ends_the_call_behind_the_hub() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let server = home.serve().await?;
    let client = task_client(&server.mcp_url());
    let id = start_task(&client, slow_call(60.0, "for ever")).await?;
    wait_for_message(&client, &id, "for ever").await?;
    assert_eq!(upstream.cancelled(), 0, "the end of the request is not the end of the call");
    let answer = client.request("tasks/cancel", json!({"taskId": id})).await?;
    assert_eq!(answer.result()?["resultType"], "complete");
    wait_for_status(&client, &id, "cancelled").await?;
    eventually("the server behind sees it", async || (upstream.cancelled() == 1).then_some(())).await?;
    Ok(())
}

async fn terminate(process: &mut tokio::process::Child) -> Result<()> {
    let pid = process.id().context("no process")?.to_string();
    assert!(std::process::Command::new("kill").arg(&pid).status()?.success());
    assert!(process.wait().await?.success());
    Ok(())
}

#[tokio::test]
async fn the_end_of_the_hub_ends_its_tasks() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let mut server = home.serve().await?;
    let client = task_client(&server.mcp_url());
    let id = start_task(&client, slow_call(60.0, "for ever")).await?;
    wait_for_message(&client, &id, "for ever").await?;
    terminate(&mut server.process).await?;
    eventually("the server behind sees it", async || (upstream.cancelled() == 1).then_some(())).await?;
    assert_eq!(outcomes(&home).await?, ["cancelled"]);
    Ok(())
}

/// A new token and the settings that accept it.
async fn token(home: &HubHome, name: &str) -> Result<(String, Value)> {
    let (_, out, err) = home.run(&["token", "new", name]).await?;
    let hash =
        err.split("sha256:").nth(1).and_then(|rest| rest.split_whitespace().next()).context("no hash")?;
    Ok((format!("Bearer {}", out.trim()), json!({"name": name, "sha256": hash})))
}

#[tokio::test]
async fn somebody_elses_task_is_like_none() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let (anna, of_anna) = token(&home, "anna").await?;
    let (eve, of_eve) = token(&home, "eve").await?;
    let settings = json!({"servers": {"long": {"url": upstream.url}}, "auth": {"tokens": [of_anna, of_eve]}});
    std::fs::write(home.dir.path().join("octoprox.yaml"), settings.to_string())?;
    let server = home.serve().await?;
    let client = task_client(&server.mcp_url());
    let ask = async |token: &str, method: &str, name: &str, params: Value| {
        let headers = [
            ("mcp-protocol-version", MODERN),
            ("mcp-method", method),
            ("mcp-name", name),
            ("authorization", token),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": client.params(params)});
        client.http.post(&client.url, &headers, &body).await?.next_message().await?.context("no answer")
    };
    let made = ask(&anna, "tools/call", "long__slow_compute", slow_call(60.0, "secrets")).await?;
    let id = made["result"]["taskId"].as_str().with_context(|| made.to_string())?.to_owned();
    let missing = ask(&anna, "tasks/get", "0", json!({"taskId": "0"})).await?;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id, "inputResponses": {}});
        assert_eq!(ask(&eve, method, &id, params).await?, missing, "{method}");
    }
    let kept = ask(&anna, "tasks/get", &id, json!({"taskId": id})).await?;
    assert_eq!(kept["result"]["status"], "working", "{kept}");
    let mismatch = ask(&anna, "tasks/get", "another", json!({"taskId": id})).await?;
    assert_eq!(mismatch["error"]["code"], -32020);
    Ok(())
}

#[tokio::test]
async fn a_workflow_is_a_task_that_tells_of_its_steps() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let step = |id: &str, seconds: f64| {
        let arguments = json!({"seconds": seconds, "label": id});
        json!({"id": id, "tool": "long__slow_compute", "with": arguments})
    };
    let flow = json!({"version": 1, "name": "sums", "steps": [step("first", 0.0), step("second", 1.5)]});
    std::fs::write(home.workspace().join("flow.yaml"), flow.to_string())?;
    let server = home.serve().await?;
    let client = task_client(&server.mcp_url());
    let listed = async || {
        client
            .request("tools/list", json!({}))
            .await
            .ok()
            .filter(|turn| turn.answer.to_string().contains("long__slow_compute"))
    };
    eventually("the tool is listed", listed).await?;
    let id = start_task(&client, json!({"name": "workflow_run", "arguments": {"path": "flow.yaml"}})).await?;
    wait_for_message(&client, &id, "first").await?;
    let done = wait_for_status(&client, &id, "completed").await?;
    assert_eq!(done["result"]["structuredContent"]["status"], "done", "{done}");
    Ok(())
}

/// Starts a task over stdio and waits until it reports progress.
async fn start_task_over_stdio(pipes: &mut StdioClient, params: Value) -> Result<String> {
    let client = task_client("");
    let made = pipes.call("tools/call", client.params(params), answer_nothing).await?;
    let id = made["result"]["taskId"].as_str().with_context(|| made.to_string())?.to_owned();
    wait_over_stdio(pipes, &id, |task| task["statusMessage"].is_string()).await?;
    Ok(id)
}

async fn wait_over_stdio(pipes: &mut StdioClient, id: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let client = task_client("");
    eventually("the task is so", async || {
        let got = pipes.call("tasks/get", client.params(json!({"taskId": id})), answer_nothing).await.ok()?;
        Some(got["result"].clone()).filter(&is_so)
    })
    .await
}

#[tokio::test]
async fn pipes_have_tasks_as_long_as_they_are_open() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let mut pipes = StdioClient::open(home.command(&["stdio"])?)?;
    let id = start_task_over_stdio(&mut pipes, slow_call(1.5, "sums")).await?;
    let done = wait_over_stdio(&mut pipes, &id, |task| task["status"] == "completed").await?;
    assert_eq!(done["result"]["content"][0]["text"], "Computed sums.");
    start_task_over_stdio(&mut pipes, slow_call(60.0, "for ever")).await?;
    pipes.close().await?;
    eventually("the server behind sees it", async || (upstream.cancelled() == 1).then_some(())).await?;
    assert_eq!(outcomes(&home).await?, ["ok", "cancelled"]);
    Ok(())
}

#[tokio::test]
async fn a_signal_ends_the_tasks_of_pipes() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let mut pipes = StdioClient::open(home.command(&["stdio"])?)?;
    start_task_over_stdio(&mut pipes, slow_call(60.0, "for ever")).await?;
    terminate(&mut pipes.process).await?;
    eventually("the server behind sees it", async || (upstream.cancelled() == 1).then_some(())).await?;
    assert_eq!(outcomes(&home).await?, ["cancelled"]);
    Ok(())
}

#[tokio::test]
async fn clients_without_the_extension_see_nothing_of_it() -> Result<()> {
    let upstream = TaskUpstream::start().await?;
    let home = home(&upstream)?;
    let server = home.serve().await?;
    let legacy = LegacyClient::connect(&server.mcp_url(), json!({"tasks": {}}), answer_nothing).await?;
    let capabilities = &legacy.initialized["result"]["capabilities"];
    assert!(
        capabilities.get("tasks").is_none() && capabilities.get("extensions").is_none(),
        "{capabilities}"
    );
    let result = legacy.call("tools/call", slow_call(1.0, "sums")).await?;
    assert_eq!(result.result()?["content"][0]["text"], "Computed sums.");
    let modern = ModernClient::new(&server.mcp_url(), json!({"elicitation": {}}), answer_nothing);
    let result = modern.request("tools/call", slow_call(1.0, "sums")).await?;
    assert_eq!(result.result()?["content"][0]["text"], "Computed sums.");
    assert!(result.messages_before.is_empty(), "{:?}", result.messages_before);
    Ok(())
}

/// A hub with a server that answers calls with tasks of its own.
async fn hub_with_task_server() -> Result<(TaskServer, HubHome, RunningHub)> {
    let upstream = TaskServer::start().await?;
    let home = HubHome::new(&json!({"servers": {"far": {"url": upstream.url}}}))?;
    let hub = home.serve().await?;
    hub.until_listed("far__steps").await?;
    Ok((upstream, home, hub))
}

fn call_of(tool: &str) -> Value {
    json!({"name": format!("far__{tool}"), "arguments": {}})
}

#[tokio::test]
async fn clients_without_tasks_wait_for_the_task_of_a_server_and_see_its_progress() -> Result<()> {
    let (upstream, _home, hub) = hub_with_task_server().await?;
    let legacy = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_nothing).await?;
    let mut call = call_of("steps");
    call["_meta"] = json!({"progressToken": "p"});
    let turn = legacy.call("tools/call", call).await?;
    assert_eq!(turn.result()?["content"][0]["text"], "All steps are done.");
    let messages: Vec<&str> = turn
        .notifications("notifications/progress")
        .iter()
        .filter_map(|note| note["params"]["message"].as_str())
        .collect();
    assert_eq!(
        (messages.first(), messages.last()),
        (Some(&"`far`: Created"), Some(&"`far`: Step 20 of 20")),
        "{messages:?}"
    );
    assert_eq!(upstream.undeclared(), 0);
    let failed = legacy.call("tools/call", call_of("fails")).await?.answer.to_string();
    assert!(failed.contains("Out of tea."), "{failed}");
    for (tool, expected) in
        [("odd_status", "violates the protocol"), ("no_id", "violates the protocol"), ("flaky", "not now")]
    {
        let turn = legacy.call("tools/call", call_of(tool)).await?.answer.to_string();
        assert!(turn.contains(expected), "{tool}: {turn}");
    }
    Ok(())
}

#[tokio::test]
async fn clients_with_tasks_get_a_task_of_the_hub_for_the_task_of_a_server() -> Result<()> {
    let (upstream, home, hub) = hub_with_task_server().await?;
    let client = task_client(&hub.mcp_url());
    let id = start_task(&client, call_of("steps")).await?;
    assert_ne!(id, "steps", "the id of the server stays in the hub");
    wait_for_message(&client, &id, "of 20").await?;
    let done = wait_for_status(&client, &id, "completed").await?;
    assert_eq!(done["result"]["content"][0]["text"], "All steps are done.");
    // The server's own id is no task of the hub.
    let refused = client.request("tasks/get", json!({"taskId": "steps"})).await?;
    assert_eq!(refused.answer["error"]["code"], -32602);

    let asking = start_task(&client, call_of("asks")).await?;
    let question = wait_for_status(&client, &asking, "input_required").await?;
    let requests = question["inputRequests"].as_object().context("no questions")?;
    let (key, request) = requests.iter().next().context("no question")?;
    assert_eq!(request["params"]["message"], "`far` asks: Your name?");
    let answer = json!({"taskId": asking, "inputResponses": {key.as_str(): {"action": "accept", "content": {"name": "Ada"}}}});
    client.request("tasks/update", answer).await?.result()?;
    let done = wait_for_status(&client, &asking, "completed").await?;
    assert_eq!(done["result"]["content"][0]["text"], "You said \"Ada\".");

    let endless = start_task(&client, call_of("endless")).await?;
    eventually("it is polled", async || (upstream.polls("endless") > 2).then_some(())).await?;
    assert_eq!(upstream.cancelled(), [""; 0]);
    client.request("tasks/cancel", json!({"taskId": endless})).await?.result()?;
    wait_for_status(&client, &endless, "cancelled").await?;
    eventually("the server is told", async || (upstream.cancelled() == ["endless"]).then_some(())).await?;
    let records = home.audit_tail(100).await?;
    let target = |record: &&Value| record["target"] == "far/steps";
    assert_eq!(records.iter().filter(target).count(), 1, "one call, one record: {records:?}");
    Ok(())
}

/// Questions of a task reach a client that can be asked within its call.
#[tokio::test]
async fn a_client_without_tasks_answers_the_questions_of_a_task() -> Result<()> {
    let (upstream, _home, hub) = hub_with_task_server().await?;
    let mute = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_nothing).await?;
    let turn = mute.call("tools/call", call_of("asks")).await?.answer.to_string();
    assert!(turn.contains("needs input that this client did not give"), "{turn}");
    eventually("its task is cancelled", async || (upstream.cancelled() == ["asks"]).then_some(())).await?;
    let answer = |_: &str, _: &Value| json!({"action": "accept", "content": {"name": "Grace"}});
    let asked = LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {}}), answer).await?;
    let turn = asked.call("tools/call", call_of("asks")).await?;
    assert_eq!(turn.result()?["content"][0]["text"], "You said \"Grace\".");
    Ok(())
}

/// A task neither asks without end, nor fills the client with texts, nor ends with something else than a result.
#[tokio::test]
async fn tasks_of_a_server_have_limits() -> Result<()> {
    let (upstream, _home, hub) = hub_with_task_server().await?;
    let accept = |_: &str, _: &Value| json!({"action": "accept", "content": {"name": "Grace"}});
    let client = LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {}}), accept).await?;
    for tool in ["asks_much", "not_done", "asks_forever"] {
        let turn = client.call("tools/call", call_of(tool)).await?.answer.to_string();
        assert!(turn.contains("violates the protocol"), "{tool}: {turn}");
    }
    assert!(upstream.polls("asks_forever") <= 300, "{}", upstream.polls("asks_forever"));
    let mut call = call_of("loud");
    call["_meta"] = json!({"progressToken": "p"});
    let turn = client.call("tools/call", call).await?;
    assert_eq!(turn.result()?["content"][0]["text"], "Quiet now.");
    let longest = turn.messages_before.iter().map(|message| message.to_string().len()).max();
    assert!(longest.is_some_and(|longest| longest < 3_000), "{longest:?}");
    Ok(())
}
