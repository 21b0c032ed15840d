//! Spans contain arguments and results only on request.

use super::call_tool;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LegacyClient, answer_nothing};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A collector that stores what it receives, as text.
struct SpanCollector {
    base: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl SpanCollector {
    async fn start() -> Result<Self> {
        let received: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&received);
        let router = Router::new().route(
            "/v1/traces",
            post(async move |body: Bytes| {
                kept.lock().unwrap().extend_from_slice(&body);
                ""
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { base, received })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }

    fn contains(&self, part: &[u8]) -> bool {
        self.received.lock().unwrap().windows(part.len()).any(|window| window == part)
    }
}

/// Calls a tool that succeeds and one that fails; returns what the collector received.
async fn traced_calls(settings: Value) -> Result<String> {
    let collector = SpanCollector::start().await?;
    let mut telemetry = settings;
    telemetry["otlp_endpoint"] = json!(collector.base);
    let home = HubHome::new(&json!({"telemetry": telemetry}))?;
    let hub = home.serve().await?;
    call_tool(&hub, "", "time_now", json!({"timezone": "Europe/Paris"})).await?;
    call_tool(&hub, "", "fs_read_text", json!({"path": "nowhere-to-be-found.txt"})).await?;
    let client = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_nothing).await?;
    client.call("resources/read", json!({"uri": "file:///a-private-uri?signature=1"})).await?;
    client.call("tools/call", json!({"name": "long".repeat(200), "arguments": {}})).await?;
    eventually("all spans arrive", async || {
        let text = collector.text();
        ["time_now", "fs_read_text", "resources/read", "longlong"]
            .iter()
            .all(|name| text.contains(name))
            .then_some(text)
    })
    .await
}

#[tokio::test]
async fn a_span_says_how_it_went_and_not_what_was_said() -> Result<()> {
    let text = traced_calls(json!({})).await?;
    for name in [
        "tool.server_name",
        "tool.tags",
        "tool.success",
        "tool.duration_ms",
        "tool.error",
        "not_found",
        "gen_ai.tool.name",
    ] {
        assert!(text.contains(name), "{name}");
    }
    for content in ["Europe/Paris", "nowhere-to-be-found", "a-private-uri", "tool.parameters", "output.value"]
    {
        assert!(!text.contains(content), "{content}");
    }
    assert!(!text.contains(&"long".repeat(51)), "names are bounded");
    Ok(())
}

#[tokio::test]
async fn contents_are_traced_on_request() -> Result<()> {
    let text = traced_calls(json!({"trace_contents": true})).await?;
    for content in ["Europe/Paris", "nowhere-to-be-found", "a-private-uri", "tool.parameters", "output.value"]
    {
        assert!(text.contains(content), "{content}");
    }
    Ok(())
}

/// A server that returns the `_meta` of its calls, in Python.
const META_SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method, params, result = message["method"], message.get("params", {}), {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "meta", "version": "1"}}
    if method == "tools/list": result = {"tools": [{"name": "show_meta", "inputSchema": {"type": "object"}}]}
    if method == "tools/call": result = {"content": [{"type": "text", "text": json.dumps(params.get("_meta", {}))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[tokio::test]
async fn a_call_to_a_server_is_a_client_span_that_the_server_continues() -> Result<()> {
    let collector = SpanCollector::start().await?;
    let home = HubHome::new(&json!({
        "telemetry": {"otlp_endpoint": collector.base},
        "servers": {"up": {"command": "python3", "args": ["-c", META_SERVER]}},
    }))?;
    let hub = home.serve().await?;
    hub.until_listed("up__show_meta").await?;
    let client = LegacyClient::connect(&hub.mcp_url(), json!({}), answer_nothing).await?;
    let reply = client.call_tool("up__show_meta", json!({})).await?;
    let meta: Value =
        serde_json::from_str(reply.result()?["content"][0]["text"].as_str().context("no text")?)?;
    let parent = meta["traceparent"].as_str().context("no traceparent")?.to_owned();
    let span = parent.split('-').nth(2).context("no span")?;
    let span: Vec<u8> =
        (0..8).map(|at| u8::from_str_radix(&span[at * 2..at * 2 + 2], 16)).collect::<Result<_, _>>()?;
    eventually("both spans arrive", async || {
        let text = collector.text();
        let names = ["tools/call up__show_meta", "tools/call show_meta"];
        (names.iter().all(|name| text.contains(name)) && collector.contains(&span)).then_some(())
    })
    .await?;
    let delete = [("mcp-session-id", client.session.as_str())];
    client.http.send("DELETE", &hub.mcp_url(), &delete, Default::default()).await?;
    let metrics = eventually("the session is measured", async || {
        let text =
            client.http.get(&format!("{}/metrics", hub.base_url), &[]).await.ok()?.text().await.ok()?;
        text.contains("mcp_server_session_duration_seconds_count").then_some(text)
    })
    .await?;
    for line in [
        r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",error_type="",network_transport="tcp",mcp_protocol_version="2025-11-25"} 1"#,
        r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",server="up",error_type="",gen_ai_tool_name="show_meta"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    Ok(())
}
