//! Sessions of legacy servers: expired, renewed, ended; streams that break and resume.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use axum::response::{IntoResponse, Response};
use common::mock_http::{MockServer, event_stream, json_body, legacy_preamble, tools};
use common::*;
use octo_model::Kind;
use octo_toolkit::{NoPeer, Peer, Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn no_peer() -> Arc<dyn Peer> {
    Arc::new(NoPeer)
}

/// Server that issues a new session id with each handshake and knows only the newest.
async fn session_losing_server(refusal: fn() -> Response) -> (MockServer, Arc<AtomicUsize>) {
    let newest = Arc::new(AtomicUsize::new(0));
    let counter = newest.clone();
    let server = MockServer::start(move |hit| {
        let counter = counter.clone();
        async move {
            if hit.rpc_method() == "initialize" {
                let id = counter.fetch_add(1, Ordering::SeqCst) + 1;
                let mut response = legacy_preamble(&hit, json!({"tools": {}})).unwrap();
                response.headers_mut().insert("mcp-session-id", id.to_string().parse().unwrap());
                return response;
            }
            let known = hit.header("mcp-session-id") == Some(&counter.load(Ordering::SeqCst).to_string());
            match hit.rpc_method() {
                "tools/list" | "tools/call" if !known => refusal(),
                "tools/list" => tools(&hit, &["a"]),
                "tools/call" => json_body(hit.result(json!({"content": []}))),
                _ => legacy_preamble(&hit, Value::Null).unwrap(),
            }
        }
    })
    .await;
    (server, newest)
}

fn not_found() -> Response {
    (axum::http::StatusCode::NOT_FOUND, "Not Found: Session not found").into_response()
}

fn bad_request() -> Response {
    let text = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    (axum::http::StatusCode::BAD_REQUEST, [("content-type", "application/json")], text).into_response()
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_without_a_word() {
    for refusal in [not_found, bad_request] {
        let (server, newest) = session_losing_server(refusal).await;
        let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
        let version = wait_ready(&upstream).await.version;
        newest.fetch_add(10, Ordering::SeqCst);
        let peer = no_peer();
        let calls = (0..8).map(|_| call(&upstream, &peer, "a", json!({})));
        for result in futures_util::future::join_all(calls).await {
            result.unwrap();
        }
        assert_eq!(server.count("initialize"), 2);
        assert_eq!(server.requests_of("initialize")[1].header("mcp-session-id"), None);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let listing = upstream.listing().borrow().clone();
        assert_eq!((listing.version, listing.state), (version, SourceState::Ready));
        upstream.stop().await;
        assert_eq!(server.requests_of("DELETE").last().unwrap().header("mcp-session-id"), Some("12"));
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let handler = |hit: common::mock_http::RecordedRequest| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(hit.result(json!({"content": []}))),
        })
    };
    let server = MockServer::start(handler).await;
    let address = server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    drop(server);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (waiting, peer) = (upstream.clone(), no_peer());
    let waiting = tokio::spawn(async move { call(&waiting, &peer, "a", json!({})).await });
    wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
    assert_eq!(tool_names(&upstream.listing().borrow()), ["a"]);
    let _server = MockServer::start_at(&address, handler).await;
    waiting.await.unwrap().unwrap();
    wait_ready(&upstream).await;
}

#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_broke() {
    let pending: Arc<Mutex<Value>> = Arc::default();
    let server = MockServer::start(move |hit| {
        let pending = pending.clone();
        async move {
            let (sender, response) = event_stream();
            match (hit.rpc_method(), hit.header("last-event-id")) {
                ("tools/call", _) => {
                    *pending.lock().unwrap() = hit.result(json!({"content": [], "resumed": true}));
                    sender.send("id: e1\nretry: 200\ndata: \n\n".to_owned()).unwrap();
                }
                ("tools/list", _) => return tools(&hit, &["a"]),
                ("GET", Some("e1")) => sender.send("id: e2\nretry: 50\ndata:\n\n".to_owned()).unwrap(),
                ("GET", Some("e2")) => {
                    let answer = pending.lock().unwrap().clone();
                    sender.send(format!("id: e3\ndata: {answer}\n\n")).unwrap();
                }
                _ => return legacy_preamble(&hit, json!({"tools": {}})).unwrap(),
            }
            response
        }
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let begun = Instant::now();
    let result = call(&upstream, &no_peer(), "a", json!({})).await.unwrap();
    assert_eq!(result["resumed"], true);
    assert!(begun.elapsed() >= Duration::from_millis(250), "the server's wait was not kept");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_fails_the_call_once() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| {
            if hit.rpc_method() == "tools/list" {
                return tools(&hit, &["a"]);
            }
            event_stream().1
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let error = call(&upstream, &no_peer(), "a", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_server_that_has_moved_within_its_host_is_followed() {
    let server = MockServer::start(|hit| async move {
        if hit.path == "/mcp" {
            return (axum::http::StatusCode::TEMPORARY_REDIRECT, [("location", "/mcp/")]).into_response();
        }
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| tools(&hit, &["a"]))
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"]);
    assert_eq!(server.requests_of("tools/list").len(), 1);
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_asked_once() {
    let (server, _) = session_losing_server(not_found).await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.count("GET"), 1);
}
