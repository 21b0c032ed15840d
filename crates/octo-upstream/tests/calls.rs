//! Calls: what is passed through, what is replaced, and how failures are reported.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::mock_http::{
    MockServer, error, event_stream, json_body, legacy_preamble, modern_preamble, sse_event, status, tools,
};
use common::*;
use futures_util::future::join_all;
use octo_model::{Json, JsonObject, Kind, Method, Operation};
use octo_toolkit::{NoPeer, Peer, Source};
use octo_upstream::{Upstream, UpstreamSpec};
use octo_wire::meta;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn no_peer() -> Arc<dyn Peer> {
    Arc::new(NoPeer)
}

fn params() -> JsonObject {
    let params = json!({
        "name": "listed_name",
        "arguments": {"a": [1.50, "é"]},
        "task": {"ttl": 5},
        "vendorField": {"deep": true},
        "_meta": {
            "progressToken": "client-token", "traceparent": "00-abc", "vendor/key": 1,
            "io.modelcontextprotocol/protocolVersion": "2025-01-01",
            "io.modelcontextprotocol/clientInfo": {"name": "other", "version": "0"},
            "io.modelcontextprotocol/logLevel": "debug",
        },
    });
    Json::from(params).members().unwrap()
}

#[tokio::test]
async fn unknown_members_survive_both_ways() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let op = Operation { method: Method::CallTool, name: "echo".to_owned(), params: params() };
    let result = upstream.run(op, &call_context(10)).await.unwrap();
    assert_eq!(result.get("vendor").unwrap().as_str(), r#"{"big": 12345678901234567890}"#);
    assert_eq!(result.get("structuredContent").unwrap().as_str(), "null");
    let echo: Value = result.get("echo").unwrap().to().unwrap();
    assert_eq!(echo["name"], "echo");
    assert_eq!(echo["task"], json!({"ttl": 5}));
    assert_eq!(echo["vendorField"], json!({"deep": true}));
    let meta = echo["_meta"].as_object().unwrap();
    assert_eq!(meta["traceparent"], "00-abc");
    assert_eq!(meta["vendor/key"], 1);
    assert!(meta["progressToken"].is_u64());
    assert_eq!(meta.len(), 3, "{meta:?}");
}

#[tokio::test]
async fn a_modern_server_gets_the_context_of_this_client_and_no_other() {
    let server = MockServer::start(|hit| async move {
        modern_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(
                hit.result(json!({"resultType": "input_required", "requestState": "s", "inputRequests": {}})),
            ),
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let client = RecordingPeer::new(1, None);
    let op = Operation { method: Method::CallTool, name: "ä".to_owned(), params: params() };
    let result = upstream.run(op, &call_context(10).with_peer(client.peer())).await.unwrap();
    assert_eq!(result.text("resultType").as_deref(), Some("input_required"));
    assert_eq!(result.text("requestState").as_deref(), Some("s"));
    let hit = &server.requests_of("tools/call")[0];
    let sent = &hit.body["params"]["_meta"];
    assert_eq!(sent[meta::REVISION], "2026-07-28");
    assert_eq!(sent[meta::CAPABILITIES], json!({"elicitation": {"form": {}}}));
    assert_eq!(sent[meta::CLIENT]["name"], "octoprox");
    assert_eq!(sent[meta::LOG_LEVEL], "debug");
    assert_eq!(sent["traceparent"], "00-abc");
    assert_eq!(hit.header("mcp-name"), Some("=?base64?w6Q=?="));
    assert_eq!(hit.header("mcp-method"), Some("tools/call"));
    let read = Operation { method: Method::ReadResource, name: "u:1".to_owned(), params: JsonObject::new() };
    upstream.run(read, &call_context(10).with_peer(client.peer())).await.unwrap();
    assert_eq!(server.requests_of("resources/read")[0].header("mcp-name"), Some("u:1"));
    assert_eq!(server.requests_of("resources/read")[0].body["params"]["uri"], "u:1");
}

#[tokio::test]
async fn progress_comes_back_under_the_clients_token() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let client = RecordingPeer::new(1, None);
    let op = Operation { method: Method::CallTool, name: "progress".to_owned(), params: params() };
    upstream.run(op, &call_context(10).with_peer(client.peer())).await.unwrap();
    let heard = client.notifications.lock().unwrap().clone();
    assert_eq!(heard.len(), 3);
    assert_eq!(heard[2].0, "notifications/progress");
    assert_eq!(heard[2].1, json!({"progressToken": "client-token", "progress": 3, "x-extra": true}));
}

#[tokio::test]
async fn notices_on_a_calls_own_stream_reach_its_client() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| {
            if hit.rpc_method() == "tools/list" {
                return tools(&hit, &["a"]);
            }
            let (sender, response) = event_stream();
            sender.send(": comment\n\nid: 1\ndata:\n\n".to_owned()).unwrap();
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
            sender.send(sse_event(&log)).unwrap();
            let done = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e"}});
            sender.send(sse_event(&done)).unwrap();
            sender.send("event: odd\ndata: not json\n\n".to_owned()).unwrap();
            sender.send(sse_event(&hit.result(json!({"content": []})))).unwrap();
            response
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let client = RecordingPeer::new(1, None);
    call(&upstream, &client.peer(), "a", json!({})).await.unwrap();
    let heard: Vec<String> =
        client.notifications.lock().unwrap().iter().map(|(method, _)| method.clone()).collect();
    assert_eq!(heard, ["notifications/message", "notifications/elicitation/complete"]);
}

#[tokio::test]
async fn logs_of_a_program_go_to_the_only_client() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let client = RecordingPeer::new(1, None);
    call(&upstream, &client.peer(), "log", json!({})).await.unwrap();
    let heard = client.notifications.lock().unwrap().clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].0, "notifications/message");
}

#[tokio::test]
async fn two_hundred_calls_at_once_get_their_own_answers() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let peer = no_peer();
    let one = |n: u64| {
        let (upstream, peer) = (upstream.clone(), peer.clone());
        async move { call(&upstream, &peer, "sleep", json!({"ms": 200 - n, "n": n})).await.unwrap() }
    };
    let results = join_all((0..200).map(one)).await;
    for (n, result) in results.iter().enumerate() {
        assert_eq!(first_text_json(result)["n"], n);
    }
}

#[tokio::test]
async fn answers_may_come_in_any_order() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let peer = no_peer();
    let held: Vec<_> = (0..50)
        .map(|_| {
            let (upstream, peer) = (upstream.clone(), peer.clone());
            tokio::spawn(async move { call(&upstream, &peer, "hold", json!({})).await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    call(&upstream, &peer, "release", json!({})).await.unwrap();
    let mut places: Vec<u64> = Vec::new();
    for one in held {
        places.push(one.await.unwrap()["at"].as_u64().unwrap());
    }
    places.sort_unstable();
    assert_eq!(places, (0..50).collect::<Vec<u64>>());
}

#[tokio::test]
async fn http_calls_at_once_get_their_own_answers() {
    let server = MockServer::start(|hit| async move {
        if let Some(response) = modern_preamble(&hit, json!({"tools": {}})) {
            return response;
        }
        if hit.rpc_method() == "tools/list" {
            return tools(&hit, &["a"]);
        }
        let n = hit.body["params"]["arguments"]["n"].as_u64().unwrap();
        tokio::time::sleep(Duration::from_millis(100 - n / 2)).await;
        json_body(hit.result(json!({"content": [], "n": n})))
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let peer = no_peer();
    let results = join_all((0..200).map(|n| call(&upstream, &peer, "a", json!({"n": n})))).await;
    for (n, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap()["n"], n);
    }
}

#[tokio::test]
async fn errors_are_told_by_kind_and_passed_on_whole() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match (hit.rpc_method(), hit.tool()) {
            ("tools/list", _) => tools(&hit, &["a"]),
            (_, "invalid") => error(&hit, 200, -32602, json!({"why": [1.50]})),
            (_, "busy") => ([("retry-after", "7")], status(503)).into_response(),
            (_, "junk") => ([("content-type", "application/json")], "{\"id\":1").into_response(),
            _ => error(&hit, 400, -32042, json!({"elicitations": []})),
        })
    })
    .await;
    use axum::response::IntoResponse;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let fail = async |tool: &str| call(&upstream, &no_peer(), tool, json!({})).await.unwrap_err();
    let invalid = fail("invalid").await;
    assert_eq!(invalid.kind, Kind::Invalid);
    let rpc = invalid.rpc.unwrap();
    assert_eq!((rpc.code, rpc.data.unwrap().to::<Value>().unwrap()), (-32602, json!({"why": [1.5]})));
    let busy = fail("busy").await;
    assert_eq!((busy.kind, busy.retry_after), (Kind::Unavailable, Some(Duration::from_secs(7))));
    assert_eq!(fail("junk").await.kind, Kind::Internal);
    assert_eq!(fail("url").await.rpc.unwrap().code, -32042);
}

#[tokio::test]
async fn a_program_that_writes_rubbish_fails_one_call_at_most() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let error = call(&upstream, &no_peer(), "garbage", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Internal);
    assert_eq!(call(&upstream, &no_peer(), "nothing", json!({})).await.unwrap_err().kind, Kind::NotFound);
    assert!(call(&upstream, &no_peer(), "echo", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_schema_that_changed_its_headers_is_read_again() {
    let server = MockServer::start(|hit| async move {
        let changed = hit.header("mcp-param-new").is_some();
        modern_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" if hit.body["id"].as_u64() < Some(3) => mirrored(&hit, "Old"),
            "tools/list" => mirrored(&hit, "New"),
            _ if changed => json_body(hit.result(json!({"content": []}))),
            _ => error(&hit, 400, -32020, Value::Null),
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    call(&upstream, &no_peer(), "a", json!({"region": "eu"})).await.unwrap();
    let calls = server.requests_of("tools/call");
    assert_eq!(
        (calls[0].header("mcp-param-old"), calls[1].header("mcp-param-new")),
        (Some("eu"), Some("eu"))
    );
}

fn mirrored(hit: &common::mock_http::RecordedRequest, header: &str) -> axum::response::Response {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header}}});
    json_body(hit.result(json!({"tools": [{"name": "a", "inputSchema": schema}]})))
}

#[tokio::test]
async fn a_slow_call_ends_at_the_deadline() {
    let mut spec = UpstreamSpec::stdio("stub", stub("legacy"));
    spec.call_timeout = Duration::from_millis(200);
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let error = call(&upstream, &no_peer(), "sleep", json!({"ms": 5000})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout);
    assert!(error.hint.is_some());
    let seen = first_text_json(&call(&upstream, &no_peer(), "seen", json!({})).await.unwrap());
    assert_eq!(seen.as_array().unwrap().last().unwrap()["method"], "notifications/cancelled");
}

#[tokio::test]
async fn a_message_over_the_limit_fails_only_its_call() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(hit.result(json!({"content": "x".repeat(5000)}))),
        })
    })
    .await;
    let mut spec = UpstreamSpec::http("s", &server.url);
    spec.max_message_bytes = 4000;
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let error = call(&upstream, &no_peer(), "a", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
}

#[tokio::test]
async fn a_large_result_arrives_whole() {
    let server = MockServer::start(|hit| async move {
        modern_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match (hit.rpc_method(), hit.tool()) {
            ("tools/list", _) => tools(&hit, &["a"]),
            (_, "json") => json_body(hit.result(json!({"content": "x".repeat(20 << 20)}))),
            _ => {
                let (sender, response) = event_stream();
                sender.send(sse_event(&hit.result(json!({"content": "x".repeat(20 << 20)})))).unwrap();
                response
            }
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    for tool in ["json", "sse"] {
        let result =
            upstream.run(Operation::tool(tool, Json::empty_object()), &call_context(30)).await.unwrap();
        assert_eq!(result.get("content").unwrap().bytes().len(), (20 << 20) + 2);
    }
}
