//! Sharing of processes, and who waits for whom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use axum::response::IntoResponse;
use common::mock_http::{MockServer, json_body, legacy_preamble, status, tools};
use common::process_helpers::*;
use common::*;
use futures_util::future::join_all;
use octo_model::{Caller, Kind, Operation};
use octo_toolkit::{CallContext, Source};
use octo_upstream::{CallLimits, Share, Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn shared(share: Share) -> UpstreamSpec {
    let mut spec = UpstreamSpec::stdio("stub", stub("legacy"));
    spec.era = Some(octo_wire::Era::Legacy);
    spec.share = share;
    spec
}

fn cx_of(name: &str) -> CallContext {
    CallContext::new(
        Arc::new(Caller::named(name)),
        Instant::now() + Duration::from_secs(20),
        CancellationToken::new(),
    )
}

async fn call_as(upstream: &Upstream, name: &str, key: u64, tool: &str, arguments: Value) -> Value {
    let cx = cx_of(name).with_peer(RecordingPeer::new(key, None).peer());
    let result = upstream.run(Operation::tool(tool, arguments.into()), &cx).await.unwrap();
    result.to_json().to().unwrap()
}

async fn pid_of(upstream: &Upstream, name: &str, key: u64) -> i64 {
    first_text_json(&call_as(upstream, name, key, "pid", json!({})).await).as_i64().unwrap()
}

#[tokio::test]
async fn each_caller_has_a_program_of_its_own() {
    let upstream = Upstream::start(shared(Share::PerCaller));
    wait_ready(&upstream).await;
    let ada = pid_of(&upstream, "ada", 1).await;
    assert_eq!(pid_of(&upstream, "ada", 2).await, ada);
    let bob = pid_of(&upstream, "bob", 1).await;
    assert_ne!(ada, bob);
    kill(ada);
    wait_until("the end is noticed", || !upstream.report().pids.contains(&(ada as u32))).await;
    assert_ne!(pid_of(&upstream, "ada", 1).await, ada);
    assert_eq!(pid_of(&upstream, "bob", 1).await, bob);
    upstream.stop().await;
    wait_until("all have ended", || !is_alive(ada) && !is_alive(bob)).await;
}

#[tokio::test]
async fn each_session_has_a_program_of_its_own_that_ends_when_it_is_idle() {
    let mut spec = shared(Share::PerSession);
    spec.idle_timeout = Duration::from_millis(200);
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let first = pid_of(&upstream, "ada", 1).await;
    let second = pid_of(&upstream, "ada", 2).await;
    assert_ne!(first, second);
    wait_until("both end", || !is_alive(first) && !is_alive(second)).await;
    assert_ne!(pid_of(&upstream, "ada", 1).await, first);
    upstream.stop().await;
}

#[tokio::test]
async fn a_pool_grows_with_the_work_and_no_further() {
    let upstream = Upstream::start(shared(Share::Pool(3)));
    wait_ready(&upstream).await;
    let alone = pid_of(&upstream, "ada", 1).await;
    assert_eq!(pid_of(&upstream, "ada", 1).await, alone, "one is enough for one call at a time");
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let upstream = upstream.clone();
            tokio::spawn(async move { call_as(&upstream, "ada", 1, "sleep", json!({"ms": 1500})).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let pids: HashSet<i64> =
        join_all((0..9).map(|_| pid_of(&upstream, "ada", 1))).await.into_iter().collect();
    assert_eq!(pids.len(), 3, "{pids:?}");
    assert!(pids.contains(&alone));
    join_all(busy).await;
    upstream.stop().await;
    wait_until("all have ended", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn no_more_calls_are_under_way_than_may_be_and_nobody_is_starved() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (running.clone(), most.clone());
    let server = MockServer::start(move |hit| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            if let Some(answer) = legacy_preamble(&hit, json!({"tools": {}})) {
                return answer;
            }
            if hit.rpc_method() == "tools/list" {
                return tools(&hit, &["a"]);
            }
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            json_body(hit.result(json!({"content": []})))
        }
    })
    .await;
    let mut spec = UpstreamSpec::http("s", &server.url);
    spec.limits = CallLimits { in_flight: Some(2), per_minute: None };
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let begun = Instant::now();
    let greedy = join_all((0..40).map(|_| call_as(&upstream, "greedy", 1, "a", json!({}))));
    let modest = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        call_as(&upstream, "modest", 2, "a", json!({})).await;
        begun.elapsed()
    };
    let (_, modest) = tokio::join!(greedy, modest);
    assert_eq!(most.load(Ordering::SeqCst), 2);
    let all = begun.elapsed();
    assert!(modest < all / 2, "{modest:?} of {all:?}");
    upstream.stop().await;
}

#[tokio::test]
async fn a_server_that_wants_a_pause_gets_it() {
    let turned_away = Arc::new(AtomicUsize::new(0));
    let count = turned_away.clone();
    let server = MockServer::start(move |hit| {
        let count = count.clone();
        async move {
            legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| {
                match (hit.rpc_method(), hit.tool()) {
                    ("tools/list", _) => tools(&hit, &["a"]),
                    (_, "later") => ([("retry-after", "60")], status(429)).into_response(),
                    _ if count.fetch_add(1, Ordering::SeqCst) == 0 => {
                        ([("retry-after", "1")], status(429)).into_response()
                    }
                    _ => json_body(hit.result(json!({"content": []}))),
                }
            })
        }
    })
    .await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    // A short pause is waited for, by this call and by later ones.
    let begun = Instant::now();
    let late = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        call(&upstream, &no_peer(), "a", json!({})).await
    };
    let peer = no_peer();
    let (first, second) = tokio::join!(call(&upstream, &peer, "a", json!({})), late);
    assert!(first.is_ok() && second.is_ok());
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(turned_away.load(Ordering::SeqCst), 3);
    // A long pause is reported, and no request is sent before it is over.
    let error = call(&upstream, &no_peer(), "later", json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (Kind::RateLimited, Some(Duration::from_secs(60))));
    let error = call(&upstream, &no_peer(), "a", json!({})).await.unwrap_err();
    assert!(error.retry_after.unwrap() > Duration::from_secs(50), "{error:?}");
    assert_eq!(turned_away.load(Ordering::SeqCst), 3);
    upstream.stop().await;
}
