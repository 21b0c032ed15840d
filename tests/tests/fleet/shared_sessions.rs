//! Sessions of clients at several fronts: any of them takes the next request, also after one has died.

use crate::task_upstream::TaskUpstream;
use crate::test_fleet::TestFleet;
use anyhow::{Context, Result, bail, ensure};
use octo_tests::eventually;
use octo_tests::fixture_process::FixtureServer;
use octo_tests::http_client::HttpReply;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{LEGACY, LegacyClient, ModernClient, answer_nothing};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(45);

/// Two fronts in front of one server.
struct TwoFronts {
    fleet: TestFleet,
    _server: FixtureServer,
    _homes: [HubHome; 2],
    one: RunningHub,
    two: RunningHub,
}

impl TwoFronts {
    async fn start(era: &str) -> Result<Self> {
        let (fleet, server) = (TestFleet::start().await?, FixtureServer::http(era, &[]).await?);
        let settings = json!({"servers": {"fx": {"url": server.url}}});
        let (home_one, one) = fleet.front("one", settings.clone()).await?;
        let (home_two, two) = fleet.front("two", settings).await?;
        Ok(Self { fleet, _server: server, _homes: [home_one, home_two], one, two })
    }

    fn urls(&self) -> [String; 2] {
        [&self.one, &self.two].map(|hub| format!("{}/mcp", hub.base_url))
    }

    /// A client of the first front that can be asked.
    async fn client(&self) -> Result<LegacyClient> {
        let [one, two] = self.urls();
        for url in [&two, &one] {
            wait_for_tool(url, "fx__test_elicitation").await?;
        }
        LegacyClient::connect(&one, json!({"elicitation": {}}), answer_nothing).await
    }
}

async fn wait_for_tool(url: &str, name: &str) -> Result<()> {
    let client = LegacyClient::connect(url, json!({}), answer_nothing).await?;
    let started = Instant::now();
    loop {
        let listed = client.call("tools/list", json!({})).await?;
        if listed.answer["result"]["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
        {
            return Ok(());
        }
        ensure!(started.elapsed() < DEADLINE, "{name} is not listed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn at(client: &mut LegacyClient, url: &str) {
    url.clone_into(&mut client.url);
}

/// No front can notify another one, so each has to look by itself.
#[tokio::test]
async fn a_session_that_ended_is_known_everywhere_without_the_bus() -> Result<()> {
    let mut fronts = TwoFronts::start("legacy").await?;
    let [one, two] = fronts.urls();
    let mut client = fronts.client().await?;
    at(&mut client, &two);
    client.call("tools/list", json!({})).await?.result()?;
    fronts.fleet.stop_nats().await?;
    let headers = [("mcp-session-id", client.session.as_str())];
    assert_eq!(client.http.send("DELETE", &two, &headers, Default::default()).await?.status, 204);
    at(&mut client, &one);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    eventually("the session has ended", async || {
        let status = client.post(&list).await.ok()?.status;
        (status == 404).then_some(())
    })
    .await
}

/// Calls a tool that asks, and returns its stream with the question and the id of its event.
async fn ask(client: &LegacyClient, tool: &str, arguments: Value) -> Result<(HttpReply, Value, String)> {
    let params = json!({"name": tool, "arguments": arguments});
    let mut stream =
        client.post(&json!({"jsonrpc": "2.0", "id": "q", "method": "tools/call", "params": params})).await?;
    while let Some((id, data)) = stream.next_event().await? {
        if data.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_slice(&data)?;
        if message["method"] == "elicitation/create" {
            return Ok((stream, message["id"].clone(), id.context("an event without an id")?));
        }
        ensure!(message.get("id").is_none(), "no question: {message}");
    }
    bail!("the stream ended")
}

async fn answer(client: &LegacyClient, question: &Value, content: Value) -> Result<()> {
    let result = json!({"action": "accept", "content": content});
    let reply = client.post(&json!({"jsonrpc": "2.0", "id": question, "result": result})).await?;
    ensure!(reply.status == 202, "{}", reply.status);
    Ok(())
}

/// The answer to the call, from a resumed stream.
async fn resumed(client: &LegacyClient, last: &str) -> Result<Value> {
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", client.session.as_str()),
        ("mcp-protocol-version", LEGACY),
        ("last-event-id", last),
    ];
    let mut stream = client.http.get(&client.url, &headers).await?;
    ensure!(stream.status == 200, "{}", stream.status);
    loop {
        let message = tokio::time::timeout(DEADLINE, stream.next_message()).await??;
        let message = message.context("the stream ended without an answer")?;
        if message["id"] == "q" && message.get("method").is_none() {
            return Ok(message);
        }
    }
}

async fn status(client: &LegacyClient) -> Result<u16> {
    Ok(client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await?.status)
}

#[tokio::test]
async fn a_session_continues_at_another_front_after_its_own_has_died() -> Result<()> {
    let mut fronts = TwoFronts::start("modern").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    client.call("logging/setLevel", json!({"level": "debug"})).await?;
    at(&mut client, &two);
    let logged = client.call_tool("fx__test_tool_with_logging", json!({})).await?;
    assert_eq!(logged.notifications("notifications/message").len(), 3, "{logged:?}");
    // Its session ids are sealed: another caller, a changed one and an invented one are refused alike.
    let session = client.session.clone();
    for wrong in [session.replace(['a', 'b', 'c'], "d"), "0".repeat(32), String::from("x")] {
        client.session = wrong;
        assert_eq!(status(&client).await?, 404);
    }
    client.session = session;
    fronts.one.process.kill().await?;
    assert_eq!(status(&client).await?, 200);
    client.call_tool("fx__test_tool_with_logging", json!({})).await?.result()?;
    Ok(())
}

#[tokio::test]
async fn a_session_that_ended_at_one_front_has_ended_at_the_other() -> Result<()> {
    let fronts = TwoFronts::start("modern").await?;
    let [one, two] = fronts.urls();
    let mut client = fronts.client().await?;
    for url in [&two, &one] {
        at(&mut client, url);
        assert_eq!(status(&client).await?, 200);
    }
    let headers = [("mcp-session-id", client.session.as_str())];
    assert_eq!(client.http.send("DELETE", &one, &headers, Default::default()).await?.status, 204);
    at(&mut client, &two);
    let started = Instant::now();
    while status(&client).await? != 404 {
        ensure!(started.elapsed() < DEADLINE, "it has not ended at the other front");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_at_one_front_reaches_the_call_at_the_other() -> Result<()> {
    for era in ["legacy", "modern"] {
        let fronts = TwoFronts::start(era).await?;
        let [_, two] = fronts.urls();
        let mut client = fronts.client().await?;
        let (mut stream, question, last) =
            ask(&client, "fx__test_elicitation", json!({"message": "who?"})).await?;
        at(&mut client, &two);
        // The stream can be resumed where it was not begun, too.
        let resumed = resumed(&client, &last);
        let content = json!({"username": "ada", "email": "ada@example.com"});
        let answered = async {
            answer(&client, &question, content).await?;
            stream.next_message().await?.context("no answer")
        };
        let (there, here) = tokio::try_join!(resumed, answered)?;
        assert_eq!(there, here, "{era}");
        assert!(here["result"]["content"][0]["text"].to_string().contains("ada"), "{here}");
    }
    Ok(())
}

#[tokio::test]
async fn a_question_outlives_the_front_that_asked_it() -> Result<()> {
    let mut fronts = TwoFronts::start("modern").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    let (_stream, question, last) =
        ask(&client, "fx__test_input_required_result_elicitation", json!({})).await?;
    fronts.one.process.kill().await?;
    at(&mut client, &two);
    let resumed = resumed(&client, &last);
    let answered = answer(&client, &question, json!({"name": "Ada"}));
    let (reply, ()) = tokio::try_join!(resumed, answered)?;
    assert_eq!(reply["result"]["content"][0]["text"], "Hello, Ada!", "{reply}");
    Ok(())
}

#[tokio::test]
async fn a_call_whose_front_died_ends_as_unknown() -> Result<()> {
    let mut fronts = TwoFronts::start("legacy").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    let (_stream, question, last) = ask(&client, "fx__test_elicitation", json!({"message": "who?"})).await?;
    fronts.one.process.kill().await?;
    at(&mut client, &two);
    answer(&client, &question, json!({"username": "ada", "email": "ada@example.com"})).await?;
    let reply = resumed(&client, &last).await?;
    let error = reply["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("unknown whether the call took effect"), "{reply}");
    assert_eq!(resumed(&client, &last).await?, reply, "the same to everyone who asks");
    Ok(())
}

#[tokio::test]
async fn answers_that_nothing_waits_for_cost_little_and_large_ones_are_refused() -> Result<()> {
    let fronts = TwoFronts::start("legacy").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    at(&mut client, &two);
    let started = Instant::now();
    for number in 0..50 {
        answer(&client, &json!(number), json!({})).await?;
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    at(&mut client, &fronts.urls()[0]);
    let (mut stream, question, _) = ask(&client, "fx__test_elicitation", json!({"message": "who?"})).await?;
    at(&mut client, &two);
    let large =
        json!({"action": "accept", "content": {"username": "x".repeat(1 << 20), "email": "a@example.com"}});
    let reply = client.post(&json!({"jsonrpc": "2.0", "id": question, "result": large})).await?;
    assert_eq!(reply.status, 413);
    answer(&client, &question, json!({"username": "ada", "email": "ada@example.com"})).await?;
    let reply = stream.next_message().await?.context("no answer")?;
    assert!(reply["result"]["content"][0]["text"].to_string().contains("ada"), "{reply}");
    Ok(())
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_can_be_cancelled_elsewhere() -> Result<()> {
    let fronts = TwoFronts::start("modern").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    let (mut stream, _question, _) =
        ask(&client, "fx__test_input_required_result_elicitation", json!({})).await?;
    at(&mut client, &two);
    client.notify("notifications/cancelled", json!({"requestId": "q"})).await?;
    let reply = tokio::time::timeout(DEADLINE, stream.next_message()).await??.context("no answer")?;
    assert!(reply["error"]["message"].to_string().contains("cancelled"), "{reply}");
    Ok(())
}

fn answer_form(_method: &str, _params: &Value) -> Value {
    json!({"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}})
}

#[tokio::test]
async fn a_modern_client_answers_at_another_front() -> Result<()> {
    for era in ["legacy", "modern"] {
        let mut fronts = TwoFronts::start(era).await?;
        let [one, two] = fronts.urls();
        for url in [&one, &two] {
            wait_for_tool(url, "fx__test_elicitation").await?;
        }
        let mut client = ModernClient::new(&one, json!({"elicitation": {}}), answer_form);
        let mut params = json!({"name": "fx__test_elicitation", "arguments": {"message": "who?"}});
        let asked = client.request("tools/call", params.clone()).await?.answer;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let requests = asked["result"]["inputRequests"].as_object().context("no questions")?;
        let key = requests.keys().next().context("no question")?;
        params["inputResponses"] = json!({key: answer_form("", &json!({}))});
        if let Some(state) = asked["result"].get("requestState") {
            params["requestState"] = state.clone();
        }
        client.url.clone_from(&two);
        let reply = client.request("tools/call", params.clone()).await?.answer;
        assert!(reply["result"]["content"][0]["text"].to_string().contains("ada"), "{era}: {reply}");
        if era == "legacy" {
            client.url.clone_from(&one);
            let asked = client
                .request(
                    "tools/call",
                    json!({"name": "fx__test_elicitation", "arguments": {"message": "who?"}}),
                )
                .await?
                .answer;
            params["requestState"] = asked["result"]["requestState"].clone();
            fronts.one.process.kill().await?;
            client.url.clone_from(&two);
            let reply = client.request("tools/call", params).await?.answer;
            assert!(reply["error"]["message"].to_string().contains("cannot be reached"), "{reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_task_is_known_at_every_front() -> Result<()> {
    let (fleet, upstream) = (TestFleet::start().await?, TaskUpstream::start().await?);
    let settings = json!({"servers": {"long": {"url": upstream.url}}});
    let (_one, mut first) = fleet.front("one", settings.clone()).await?;
    let (_two, second) = fleet.front("two", settings).await?;
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = ModernClient::new(&first.mcp_url(), capabilities, answer_nothing);
    wait_for_tool(&client.url, "long__slow_compute").await?;
    let mut ids = Vec::new();
    for seconds in [1.5, 60.0] {
        let params =
            json!({"name": "long__slow_compute", "arguments": {"seconds": seconds, "label": "sums"}});
        let started = client.request("tools/call", params).await?;
        ids.push(started.result()?["taskId"].as_str().context("no task")?.to_owned());
    }
    client.url = second.mcp_url();
    let status = async |id: &str| {
        let task = client.request("tasks/get", json!({"taskId": id})).await?;
        Ok::<_, anyhow::Error>(task.answer["result"]["status"].as_str().unwrap_or_default().to_owned())
    };
    let started = Instant::now();
    while status(&ids[0]).await? != "completed" {
        ensure!(started.elapsed() < DEADLINE, "the task does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.request("tasks/cancel", json!({"taskId": ids[1]})).await?.result()?;
    while status(&ids[1]).await? != "cancelled" {
        ensure!(started.elapsed() < DEADLINE, "the task is not cancelled");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(upstream.cancelled(), 1);
    first.process.kill().await?;
    let lost = client.request("tasks/get", json!({"taskId": ids[0]})).await?.answer;
    assert!(lost["error"]["message"].to_string().contains("may have taken effect"), "{lost}");
    Ok(())
}

#[tokio::test]
async fn a_subscription_at_one_front_is_heard_at_the_other() -> Result<()> {
    let fronts = TwoFronts::start("legacy").await?;
    let [_, two] = fronts.urls();
    let mut client = fronts.client().await?;
    let listed = client.call("resources/list", json!({})).await?;
    let resources = listed.answer["result"]["resources"].as_array().context("no resources")?;
    let mut uris = resources.iter().filter_map(|resource| resource["uri"].as_str());
    let watched = uris.find(|uri| uri.contains("watched")).context("nothing to watch")?;
    client.call("resources/subscribe", json!({"uri": watched})).await?.result()?;
    at(&mut client, &two);
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", client.session.as_str())];
    let mut stream = client.http.get(&two, &headers).await?;
    ensure!(stream.status == 200, "{}", stream.status);
    client.call_tool("fx__fix_touch", json!({"uri": "test://watched-resource"})).await?.result()?;
    loop {
        let message =
            tokio::time::timeout(DEADLINE, stream.next_message()).await??.context("the stream ended")?;
        if message["method"] == "notifications/resources/updated" {
            assert_eq!(message["params"]["uri"], watched);
            return Ok(());
        }
    }
}
