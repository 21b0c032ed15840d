//! Egress of an upstream: only to the configured server, checked with each connection.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests are the servers that are asked, and fail where they must"
)]

mod common;

use axum::response::IntoResponse;
use common::mock_http::{MockServer, RecordedRequest, json_body, legacy_preamble, tools};
use common::{RecordingPeer, call, wait_listing, wait_ready};
use octo_grants::Net;
use octo_grants::net::{NetSpec, ResolveFuture, Resolver};
use octo_toolkit::SourceState;
use octo_upstream::{TransportSpec, Upstream, UpstreamSpec};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Resolves every name to this machine, or to an address that is not public.
#[derive(Default)]
struct FixedResolver {
    away: AtomicBool,
    /// Lookups since then.
    asked: AtomicUsize,
}

impl Resolver for FixedResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> ResolveFuture<'a> {
        let away = self.away.load(Ordering::SeqCst);
        self.asked.fetch_add(usize::from(away), Ordering::SeqCst);
        let last = if away { 9 } else { 1 };
        Box::pin(async move { Ok(vec![IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))]) })
    }
}

fn net(allow: &[&str], names: &Arc<FixedResolver>) -> Net {
    let allow = allow.iter().map(ToString::to_string).collect();
    Net::with_resolver(NetSpec { allow, ..NetSpec::default() }, Arc::clone(names) as _).unwrap()
}

async fn serve() -> MockServer {
    let handler = |hit: RecordedRequest| async move {
        let answer = legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(hit.result(json!({"content": []}))),
        });
        // Each request has its own connection.
        ([("connection", "close")], answer).into_response()
    };
    MockServer::start(handler).await
}

fn spec(server: &MockServer, host: &str, net: Net) -> UpstreamSpec {
    let mut spec = UpstreamSpec::http("s", server.url.replace("127.0.0.1", host));
    spec.net = net;
    spec
}

#[tokio::test]
async fn a_public_name_that_leads_inside_is_refused_unless_it_is_allowed() {
    let names = Arc::new(FixedResolver::default());
    for (host, allow, reached) in [
        ("127.0.0.1", "10.0.0.0/8", true),
        ("localhost", "10.0.0.0/8", true),
        ("mcp.internal", "10.0.0.0/8", true),
        ("mcp.example.com", "10.0.0.0/8", false),
        ("mcp.example.com", "mcp.example.com", true),
        ("mcp.example.com", "127.0.0.1", true),
    ] {
        let server = serve().await;
        let upstream = Upstream::start(spec(&server, host, net(&[allow], &names)));
        if reached {
            wait_ready(&upstream).await;
        } else {
            let listing = wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
            assert!(format!("{:?}", listing.state).contains("net.allow"), "{:?}", listing.state);
            assert!(server.requests.lock().unwrap().is_empty());
        }
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_name_that_changes_its_answer_is_checked_with_the_next_connection() {
    let names = Arc::new(FixedResolver::default());
    let server = serve().await;
    let upstream = Upstream::start(spec(&server, "mcp.example.com", net(&["127.0.0.1"], &names)));
    wait_ready(&upstream).await;
    call(&upstream, &RecordingPeer::new(1, None).peer(), "a", json!({})).await.unwrap();
    names.away.store(true, Ordering::SeqCst);
    let address = server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let stranger =
        MockServer::start_at(&address.replace("127.0.0.1", "127.0.0.9"), |hit: RecordedRequest| async move {
            json_body(hit.result(json!({})))
        })
        .await;
    let error = call(&upstream, &RecordingPeer::new(1, None).peer(), "a", json!({})).await.unwrap_err();
    assert_eq!(error.kind, octo_model::Kind::Unavailable, "{error}");
    assert!(names.asked.load(Ordering::SeqCst) > 0, "it was looked for anew");
    assert!(stranger.requests.lock().unwrap().is_empty());
    upstream.stop().await;
}

#[tokio::test]
async fn a_redirect_takes_credentials_to_no_other_server() {
    let names = Arc::new(FixedResolver::default());
    for host in ["other.example.com", "127.0.0.1"] {
        let other = serve().await;
        let target = other.url.replace("127.0.0.1", host);
        let server = MockServer::start(move |_| {
            let target = target.clone();
            async move { (axum::http::StatusCode::TEMPORARY_REDIRECT, [("location", target)]).into_response() }
        })
        .await;
        let headers = [("authorization".to_owned(), "Bearer secret".to_owned())].into();
        let mut spec = UpstreamSpec::new("s", TransportSpec::Http { url: server.url.clone(), headers });
        spec.net = net(&["127.0.0.1"], &names);
        let upstream = Upstream::start(spec);
        wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
        assert_eq!(server.requests.lock().unwrap()[0].header("authorization"), Some("Bearer secret"));
        assert!(other.requests.lock().unwrap().is_empty(), "{host}");
        upstream.stop().await;
    }
}
