//! Listings: all pages, no invalid entries, no endless loops, refreshed on change.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::mock_http::{MockServer, event_stream, json_body, legacy_preamble, status, tools};
use common::*;
use octo_toolkit::{NoPeer, Peer, Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn all() -> Value {
    json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}, "completions": {}})
}

#[tokio::test]
async fn all_pages_are_followed_and_a_loop_ends() {
    let server = MockServer::start(|hit| async move {
        if let Some(response) = legacy_preamble(&hit, all()) {
            return response;
        }
        let cursor = hit.body["params"]["cursor"].as_str();
        let page = match (hit.rpc_method(), cursor) {
            ("tools/list", None) => json!({"tools": [{"name": "a"}], "nextCursor": "", "ttlMs": 900}),
            ("tools/list", Some("")) => json!({"tools": [{"name": "b"}], "nextCursor": "2", "ttlMs": 300}),
            ("tools/list", Some(_)) => json!({"tools": [{"name": "c"}], "nextCursor": null}),
            ("prompts/list", None) => json!({"prompts": [{"name": "p"}], "nextCursor": "x"}),
            ("prompts/list", Some("x")) => json!({"prompts": [{"name": "q"}], "nextCursor": "y"}),
            ("prompts/list", Some(_)) => json!({"prompts": [{"name": "r"}], "nextCursor": "x"}),
            ("resources/list", _) => json!({"resources": [{"uri": "u:1", "name": "n"}]}),
            (_, _) => json!({"resourceTemplates": [{"uriTemplate": "u:{x}", "name": "n"}]}),
        };
        json_body(hit.result(page))
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    let listing = wait_ready(&upstream).await;
    assert_eq!(tool_names(&listing), ["a", "b", "c"]);
    let prompts: Vec<&str> = listing.listing.prompts.iter().map(|prompt| prompt.key.as_str()).collect();
    assert_eq!(prompts, ["p", "q", "r"]);
    assert_eq!(server.count("prompts/list"), 3);
    assert_eq!((listing.listing.resources.len(), listing.listing.templates.len()), (1, 1));
    assert_eq!(listing.listing.templates[0].key, "u:{x}");
    assert_eq!(listing.listing.ttl_ms, Some(300));
    assert!(listing.listing.supports_completion && !listing.listing.supports_subscribe);
}

#[tokio::test]
async fn a_bad_entry_costs_only_itself() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[3,{{"title":"nameless"}},{{"name":"twice","name":"x"}},
                {{"name":"good","vendor":{{"n":12345678901234567890}},"outputSchema":true}},{{"name":"good"}},null,{{"name":7}}]}}}}"#,
                hit.body["id"]
            );
            ([("content-type", "application/json")], text).into_response()
        })
    })
    .await;
    use axum::response::IntoResponse;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    let listing = wait_ready(&upstream).await;
    assert_eq!(tool_names(&listing), ["good"]);
    let tool = &listing.listing.tools[0];
    assert_eq!(tool.members.get("vendor").unwrap().as_str(), r#"{"n":12345678901234567890}"#);
    assert!(
        tool.members.get("inputSchema").is_none()
            && !tool.effect_origin.is_trusted()
            && tool.effect.destructive
    );
}

#[tokio::test]
async fn a_hung_list_takes_the_server_down_until_it_answers() {
    let hangs = Arc::new(AtomicBool::new(true));
    let now = hangs.clone();
    let server = MockServer::start(move |hit| {
        let hangs = now.load(Ordering::SeqCst);
        async move {
            if let Some(response) = legacy_preamble(&hit, json!({"tools": {}})) {
                return response;
            }
            if hangs {
                std::future::pending::<()>().await;
            }
            tools(&hit, &["a"])
        }
    })
    .await;
    let mut spec = UpstreamSpec::http("s", &server.url);
    spec.list_timeout = Duration::from_millis(200);
    let upstream = Upstream::start(spec);
    let listing = wait_listing(&upstream, |now| now.state != SourceState::Starting).await;
    assert!(matches!(listing.state, SourceState::Down(why) if why.contains("did not answer within")));
    hangs.store(false, Ordering::SeqCst);
    assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"]);
    assert!(server.count("notifications/cancelled") >= 1);
}

#[tokio::test]
async fn a_missing_second_list_does_not_take_the_first_one_down() {
    let server = MockServer::start(|hit| async move {
        legacy_preamble(&hit, all()).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            "prompts/list" => common::mock_http::error(&hit, 200, -32601, Value::Null),
            _ => status(500),
        })
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"]);
}

#[tokio::test]
async fn changes_are_listed_again_once_for_a_swarm_of_notices() {
    let lists = Arc::new(AtomicUsize::new(0));
    let count = lists.clone();
    let server = MockServer::start(move |hit| {
        let count = count.clone();
        async move {
            if hit.rpc_method() == "GET" {
                let (sender, response) = event_stream();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    for _ in 0..20 {
                        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                        sender.send(common::mock_http::sse_event(&notice)).unwrap();
                    }
                    sender.closed().await;
                });
                return response;
            }
            legacy_preamble(&hit, all()).unwrap_or_else(|| match hit.rpc_method() {
                "tools/list" if count.fetch_add(1, Ordering::SeqCst) == 0 => tools(&hit, &["a"]),
                "tools/list" => tools(&hit, &["a", "b"]),
                "prompts/list" => json_body(hit.result(json!({"prompts": []}))),
                "resources/list" => json_body(hit.result(json!({"resources": []}))),
                _ => json_body(hit.result(json!({"resourceTemplates": []}))),
            })
        }
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"]);
    let listing = wait_listing(&upstream, |now| now.listing.tools.len() == 2).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(upstream.listing().borrow().version, listing.version);
    assert_eq!(lists.load(Ordering::SeqCst), 2);
    assert_eq!(server.count("prompts/list"), 1);
}

#[tokio::test]
async fn a_program_tells_of_changes_as_well() {
    let upstream = start_stub("legacy");
    let before = wait_ready(&upstream).await;
    assert!(tool_names(&before).contains(&"extra1".to_owned()));
    assert_eq!(before.listing.instructions.as_deref(), Some("be kind"));
    let peer: Arc<dyn Peer> = Arc::new(NoPeer);
    call(&upstream, &peer, "change", json!({})).await.unwrap();
    let after = wait_listing(&upstream, |now| now.version > before.version).await;
    assert!(tool_names(&after).contains(&"extra2".to_owned()));
}
