//! Cancellation reaches only the server that works on the call, in the way that server understands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use axum::response::Response;
use common::mock_http::{
    MockServer, RecordedRequest, event_stream, legacy_preamble, modern_preamble, sse_event, tools,
};
use common::*;
use octo_model::{JsonObject, Kind, Operation, ToolError};
use octo_toolkit::{CallContext, NoPeer, Peer, Source};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

fn no_peer() -> Arc<dyn Peer> {
    Arc::new(NoPeer)
}

/// Server whose calls never end; counts the streams that clients close.
async fn never_answering_server(
    opening: fn(&RecordedRequest, Value) -> Option<Response>,
) -> (MockServer, Arc<AtomicUsize>) {
    let closed = Arc::new(AtomicUsize::new(0));
    let count = closed.clone();
    let server = MockServer::start(move |hit| {
        let count = count.clone();
        async move {
            if let Some(response) = opening(&hit, json!({"tools": {}})) {
                return response;
            }
            if hit.rpc_method() == "tools/list" {
                return tools(&hit, &["a"]);
            }
            let (sender, response) = event_stream();
            sender.send(": begun\n\n".to_owned()).unwrap();
            tokio::spawn(async move {
                sender.closed().await;
                count.fetch_add(1, Ordering::SeqCst);
                // A late response, which must not be delivered.
                let _ = sender.send(sse_event(&hit.result(json!({"content": []}))));
            });
            response
        }
    })
    .await;
    (server, closed)
}

async fn cancelled_at(program: &Upstream) -> Vec<Value> {
    let seen = first_text_json(&call(program, &no_peer(), "seen", json!({})).await.unwrap());
    seen.as_array()
        .unwrap()
        .iter()
        .filter(|one| one["method"] == "notifications/cancelled")
        .cloned()
        .collect()
}

fn never_ending_call(
    upstream: &Arc<Upstream>,
    cx: &CallContext,
    tool: &'static str,
) -> JoinHandle<Result<JsonObject, ToolError>> {
    let (upstream, cx) = (upstream.clone(), cx.clone());
    tokio::spawn(async move { upstream.run(Operation::tool(tool, json!({}).into()), &cx).await })
}

#[tokio::test]
async fn only_the_cancelled_calls_server_is_told() {
    let (old, _) = never_answering_server(legacy_preamble).await;
    let (new, new_closed) = never_answering_server(modern_preamble).await;
    let upstreams = [
        start_stub("legacy"),
        Upstream::start(UpstreamSpec::http("old", &old.url)),
        Upstream::start(UpstreamSpec::http("new", &new.url)),
    ];
    for upstream in &upstreams {
        wait_ready(upstream).await;
    }
    for which in 0..3 {
        let contexts: Vec<_> = (0..3).map(|_| call_context(20)).collect();
        let running: Vec<_> =
            (0..3).map(|n| never_ending_call(&upstreams[n], &contexts[n], ["hold", "a", "a"][n])).collect();
        old.wait_for("tools/call", which + 1).await;
        new.wait_for("tools/call", which + 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = (cancelled_at(&upstreams[0]).await.len(), old.count("notifications/cancelled"));
        let closed = new_closed.load(Ordering::SeqCst);
        contexts[which].cancel.cancel();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let after = (cancelled_at(&upstreams[0]).await.len(), old.count("notifications/cancelled"));
        let told = [after.0 - before.0, after.1 - before.1, new_closed.load(Ordering::SeqCst) - closed];
        let mut expected = [0; 3];
        expected[which] = 1;
        assert_eq!(told, expected);
        for (n, one) in running.into_iter().enumerate() {
            assert_eq!(one.is_finished(), n == which);
            one.abort();
            if n == which {
                assert_eq!(one.await.unwrap().unwrap_err().kind, Kind::Cancelled);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(new.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn the_servers_own_request_id_is_named() {
    let (old, _) = never_answering_server(legacy_preamble).await;
    let upstream = Upstream::start(UpstreamSpec::http("old", &old.url));
    wait_ready(&upstream).await;
    let context = call_context(20);
    for n in 1..=3 {
        let (upstream, context) = (upstream.clone(), if n == 2 { context.clone() } else { call_context(20) });
        tokio::spawn(async move { upstream.run(Operation::tool("a", json!({}).into()), &context).await });
        old.wait_for("tools/call", n).await;
    }
    context.cancel.cancel();
    old.wait_for("notifications/cancelled", 1).await;
    let notice = &old.requests_of("notifications/cancelled")[0];
    assert_eq!(notice.body["params"]["requestId"], old.requests_of("tools/call")[1].body["id"]);
    assert_eq!(notice.header("mcp-session-id"), Some("s1"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(old.count("notifications/cancelled"), 1);
}

#[tokio::test]
async fn dropping_the_future_cancels_on_a_modern_program_too() {
    let upstream = start_stub("modern");
    wait_ready(&upstream).await;
    let waiting =
        tokio::time::timeout(Duration::from_millis(100), call(&upstream, &no_peer(), "hold", json!({})))
            .await;
    assert!(waiting.is_err());
    let cancelled = cancelled_at(&upstream).await;
    assert_eq!(cancelled.len(), 1);
    assert!(cancelled[0]["params"]["requestId"].is_u64());
    // The late response is ignored, and the next calls get their own.
    call(&upstream, &no_peer(), "release", json!({})).await.unwrap();
    assert!(call(&upstream, &no_peer(), "echo", json!({})).await.unwrap()["echo"].is_object());
}
