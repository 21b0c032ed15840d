//! Resource subscriptions and listen streams, in both eras.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::mock_http::{MockServer, event_stream, json_body, modern_preamble, sse_event, tools};
use common::*;
use octo_model::Kind;
use octo_toolkit::{Event, NoPeer, Peer, Source};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn no_peer() -> Arc<dyn Peer> {
    Arc::new(NoPeer)
}

async fn next_updated_uri(events: &mut tokio::sync::broadcast::Receiver<Event>) -> String {
    match tokio::time::timeout(Duration::from_secs(5), events.recv()).await.unwrap().unwrap() {
        Event::ResourceUpdated { uri } => uri,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_legacy_program_is_told_again_after_it_was_restarted() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let mut events = upstream.events().unwrap();
    upstream.watch("stub://a", true).await.unwrap();
    let watched =
        first_text_json(&call(&upstream, &no_peer(), "touch", json!({"uri": "stub://a"})).await.unwrap());
    assert_eq!(watched, json!(["stub://a"]));
    assert_eq!(next_updated_uri(&mut events).await, "stub://a");
    let _ = call(&upstream, &no_peer(), "die", json!({})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let watched =
        first_text_json(&call(&upstream, &no_peer(), "touch", json!({"uri": "stub://a"})).await.unwrap());
    assert_eq!(watched, json!(["stub://a"]));
    upstream.watch("stub://a", false).await.unwrap();
    let watched =
        first_text_json(&call(&upstream, &no_peer(), "touch", json!({"uri": "stub://a"})).await.unwrap());
    assert_eq!(watched, json!([]));
}

#[tokio::test]
async fn a_modern_program_listens_for_what_is_wanted() {
    let upstream = start_stub("modern");
    let before = wait_ready(&upstream).await;
    let mut events = upstream.events().unwrap();
    upstream.watch("stub://a", true).await.unwrap();
    let filters =
        first_text_json(&call(&upstream, &no_peer(), "touch", json!({"uri": "stub://a"})).await.unwrap());
    assert_eq!(filters, json!([{"toolsListChanged": true}, {"resourceSubscriptions": ["stub://a"]}]));
    assert_eq!(next_updated_uri(&mut events).await, "stub://a");
    upstream.watch("stub://b", true).await.unwrap();
    let filters =
        first_text_json(&call(&upstream, &no_peer(), "touch", json!({"uri": "stub://b"})).await.unwrap());
    assert_eq!(filters[2], json!({"resourceSubscriptions": ["stub://a", "stub://b"]}));
    // Only the stream that was replaced has been cancelled.
    let seen = first_text_json(&call(&upstream, &no_peer(), "seen", json!({})).await.unwrap());
    assert_eq!(seen.as_array().unwrap().len(), 1);
    call(&upstream, &no_peer(), "change", json!({})).await.unwrap();
    wait_listing(&upstream, |now| now.version > before.version).await;
}

/// A modern server that hands its listen streams to the test.
async fn subscription_server(
    open: Arc<Mutex<Vec<tokio::sync::mpsc::UnboundedSender<String>>>>,
    lists: Arc<AtomicUsize>,
) -> MockServer {
    MockServer::start(move |hit| {
        let (open, lists) = (open.clone(), lists.clone());
        async move {
            let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
            modern_preamble(&hit, capabilities).unwrap_or_else(|| match hit.rpc_method() {
                "tools/list" => {
                    let extra = format!("t{}", lists.fetch_add(1, Ordering::SeqCst));
                    tools(&hit, &["a", &extra])
                }
                "subscriptions/listen" => {
                    let (sender, response) = event_stream();
                    let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": hit.body["id"]}, "notifications": hit.body["params"]["notifications"]});
                    let ack = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
                    sender.send(sse_event(&ack)).unwrap();
                    open.lock().unwrap().push(sender);
                    response
                }
                _ => json_body(hit.result(json!({"resources": [], "resourceTemplates": [], "content": []}))),
            })
        }
    })
    .await
}

#[tokio::test]
async fn a_modern_servers_stream_is_opened_again_and_lists_are_fetched() {
    let (open, lists) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let server = subscription_server(open.clone(), lists.clone()).await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    let first = wait_ready(&upstream).await;
    server.wait_for("subscriptions/listen", 1).await;
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
    tokio::time::sleep(Duration::from_millis(100)).await;
    open.lock().unwrap()[0].send(sse_event(&notice)).unwrap();
    let second = wait_listing(&upstream, |now| now.version > first.version).await;
    open.lock().unwrap().clear();
    server.wait_for("subscriptions/listen", 2).await;
    wait_listing(&upstream, |now| now.version > second.version).await;
    let hit = &server.requests_of("subscriptions/listen")[1];
    assert_eq!(hit.header("mcp-method"), Some("subscriptions/listen"));
    assert_eq!(hit.body["params"]["notifications"], json!({"toolsListChanged": true}));
}

#[tokio::test]
async fn updates_of_watched_resources_arrive_over_http() {
    let (open, lists) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let server = subscription_server(open.clone(), lists).await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let mut events = upstream.events().unwrap();
    upstream.watch("u:1", true).await.unwrap();
    let update =
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "u:1"}});
    open.lock().unwrap().last().unwrap().send(sse_event(&update)).unwrap();
    assert_eq!(next_updated_uri(&mut events).await, "u:1");
    upstream.watch("u:1", false).await.unwrap();
    let last = open.lock().unwrap().last().unwrap().clone();
    tokio::time::timeout(Duration::from_secs(2), last.closed()).await.expect("the stream was not closed");
}

#[tokio::test]
async fn a_server_that_cannot_watch_says_so() {
    let server = MockServer::start(|hit| async move {
        modern_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| tools(&hit, &["a"]))
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    assert_eq!(upstream.watch("u:1", true).await.unwrap_err().kind, Kind::Invalid);
    assert_eq!(server.count("subscriptions/listen"), 0);
}
