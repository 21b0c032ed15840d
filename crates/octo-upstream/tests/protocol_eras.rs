//! Negotiation of the era.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::mock_http::{MockServer, error, json_body, legacy_preamble, modern_preamble, status, tools};
use common::*;
use octo_model::Kind;
use octo_toolkit::{NoPeer, Peer, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use octo_wire::Era;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[tokio::test]
async fn programs_of_both_eras_are_understood() {
    for (mode, era) in
        [("legacy", Era::Legacy), ("modern", Era::Modern), ("quits", Era::Legacy), ("silent", Era::Legacy)]
    {
        let upstream = start_stub(mode);
        let listing = wait_ready(&upstream).await;
        assert_eq!(upstream.era(), Some(era), "{mode}");
        assert!(tool_names(&listing).contains(&"echo".to_owned()));
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_modern_program_that_is_slow_to_start_is_not_taken_for_a_legacy_one() {
    let mut slow = stub("modern");
    slow.args.splice(0..0, ["-c".to_owned(), r#"sleep 4; exec python3 "$0" "$@""#.to_owned()]);
    slow.program = "sh".to_owned();
    let upstream = Upstream::start(UpstreamSpec::stdio("stub", slow));
    let listing = wait_listing(&upstream, |now| now.state != SourceState::Starting).await;
    assert_eq!((&listing.state, upstream.era()), (&SourceState::Ready, Some(Era::Modern)));
    upstream.stop().await;
}

#[tokio::test]
async fn a_legacy_server_is_found_behind_every_kind_of_refusal() {
    for refusal in [400, 404, 405, 406, 500, 1000, 1001, 1002] {
        let server = MockServer::start(move |hit| async move {
            if hit.rpc_method() == "server/discover" {
                return match refusal {
                    1000 => error(
                        &hit,
                        400,
                        -32022,
                        json!({"supported": ["2025-11-25"], "requested": "2026-07-28"}),
                    ),
                    1001 => json_body(hit.result(json!({}))),
                    1002 => error(&hit, 200, -32601, json!(null)),
                    code => status(code),
                };
            }
            legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| tools(&hit, &["a"]))
        })
        .await;
        let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
        wait_ready(&upstream).await;
        assert_eq!(upstream.era(), Some(Era::Legacy), "{refusal}");
        let list = &server.requests_of("tools/list")[0];
        assert_eq!(list.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(list.header("mcp-session-id"), Some("s1"));
        assert_eq!(list.header("mcp-method"), None);
        assert_eq!(list.header("accept"), Some("application/json, text/event-stream"));
        upstream.stop().await;
        assert_eq!(server.count("DELETE"), 1);
    }
}

#[tokio::test]
async fn a_modern_server_that_refuses_once_is_asked_again() {
    let refusals = Arc::new(AtomicU32::new(0));
    let server = MockServer::start(move |hit| {
        let first = refusals.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                return error(
                    &hit,
                    400,
                    -32022,
                    json!({"supported": ["2026-07-28"], "requested": "2026-07-28"}),
                );
            }
            modern_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| tools(&hit, &["a"]))
        }
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    assert_eq!(upstream.era(), Some(Era::Modern));
    assert_eq!((server.count("initialize"), server.count("GET")), (0, 0));
    let list = &server.requests_of("tools/list")[0];
    assert_eq!(list.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(list.header("mcp-method"), Some("tools/list"));
    let extensions = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
        "io.modelcontextprotocol/skills": {}});
    let capabilities = &list.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({"extensions": extensions}), "lists contain apps and skills");
    assert_eq!(list.body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "octoprox");
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_not_asked_in_another_way() {
    for code in [401, 403] {
        let server = MockServer::start(move |_| async move { status(code) }).await;
        let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
        let listing = wait_listing(&upstream, |now| now.state != SourceState::Starting).await;
        assert_eq!(listing.state, SourceState::Down("needs a login".to_owned()));
        assert_eq!(server.count("initialize"), 0);
        let peer: Arc<dyn Peer> = Arc::new(NoPeer);
        let error = call(&upstream, &peer, "a", json!({})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthorized);
    }
}

#[tokio::test]
async fn a_remembered_era_is_not_probed_again() {
    let server = MockServer::start(|hit| async move {
        if hit.rpc_method() == "tools/call" {
            return status(404);
        }
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| tools(&hit, &["a"]))
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let peer: Arc<dyn Peer> = Arc::new(NoPeer);
    let error = call(&upstream, &peer, "a", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert_eq!(server.count("tools/call"), 2);
    assert_eq!(server.count("server/discover"), 1);
}
