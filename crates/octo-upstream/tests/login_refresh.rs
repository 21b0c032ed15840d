//! Refresh of logins: once, in time, and with a loss that all callers learn of.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests are the servers that are asked, and fail where they must"
)]

#[path = "login/auth_server.rs"]
mod auth_server;
mod common;

use auth_server::{AuthServer, ada, age_login, change_login, distinct, log_in, logins, upstream, wait_until};
use common::{RecordingPeer, call, wait_listing, wait_ready};
use octo_model::Kind;
use octo_oauth::{LoginState, Logins};
use octo_ports::Stores;
use octo_toolkit::{Audience, Event, Source, SourceState as Listed};
use octo_upstream::Upstream;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Calls of all these callers at once; returns how many failed.
async fn call_concurrently(upstreams: &[Arc<Upstream>], callers: usize) -> usize {
    let mut calls = tokio::task::JoinSet::new();
    for at in 0..callers {
        let upstream = upstreams[at % upstreams.len()].clone();
        calls.spawn(async move {
            let peer = RecordingPeer::new(at as u64, None).peer();
            call(&upstream, &peer, "a", json!({})).await
        });
    }
    calls.join_all().await.iter().filter(|done| done.is_err()).count()
}

/// A login made this many seconds ago, with tokens that live for an hour.
async fn expired_login(seconds: i64) -> (AuthServer, Logins) {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    log_in(&world, &logins, "s").await;
    age_login(&store, "s", seconds).await;
    (world, logins)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_callers_of_two_processes_renew_once() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    // They share the store and nothing else.
    let hubs = [logins(&store, world.spec("s")), logins(&store, world.spec("s"))];
    log_in(&world, &hubs[0], "s").await;
    let upstreams: Vec<_> = hubs.iter().map(|hub| upstream(&world, hub, "s")).collect();
    for upstream in &upstreams {
        wait_ready(upstream).await;
    }
    world.rules().slow = Duration::from_millis(50);
    for round in 1..=20 {
        // Expired for the hub and at the server.
        age_login(&store, "s", 4000).await;
        world.rules().access.clear();
        assert_eq!(call_concurrently(&upstreams, 200).await, 0, "round {round}");
        assert_eq!(world.token_requests("refresh_token").len(), round);
    }
    assert_eq!(world.rules().reused, 0);
    let tokens =
        world.token_requests("refresh_token").into_iter().map(|seen| seen.form["refresh_token"].clone());
    assert_eq!(distinct(tokens), 20, "each was shown once");
    assert!(world.token_requests("refresh_token").iter().all(|seen| seen.form["resource"] == world.mcp()));
    for upstream in upstreams {
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_login_is_renewed_before_its_end_and_nobody_waits_for_it() {
    let (world, logins) = expired_login(3400).await;
    world.rules().slow = Duration::from_millis(300);
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    let old = world.requests_to("/mcp").last().unwrap().authorization.clone().unwrap();
    wait_until("a renewal", || world.token_requests("refresh_token").len() == 1).await;
    let peer = RecordingPeer::new(1, None).peer();
    wait_until("another token", || world.rules().access.len() == 2).await;
    // The new token is used once it is noticed; the old one is valid until then.
    for _ in 0..100 {
        call(&upstream, &peer, "a", json!({})).await.unwrap();
        if world.requests_to("/mcp").last().unwrap().authorization.as_ref() != Some(&old) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_ne!(world.requests_to("/mcp").last().unwrap().authorization, Some(old));
    assert_eq!(world.token_requests("refresh_token").len(), 1);
    upstream.stop().await;
}

#[tokio::test]
async fn a_login_that_cannot_be_used_is_not_tried_all_the_time() {
    for is_renewable in [false, true] {
        let world = AuthServer::start().await;
        let store = Stores::in_memory();
        let logins = logins(&store, world.spec("s"));
        log_in(&world, &logins, "s").await;
        change_login(&store, "s", |grant| {
            grant["expires"] = json!(1);
            if !is_renewable {
                grant.as_object_mut().unwrap().remove("refresh");
            }
        })
        .await;
        world.rules().refuse = Some((503, "temporarily_unavailable"));
        world.seen.lock().unwrap().clear();
        let upstream = upstream(&world, &logins, "s");
        let attempts = || world.requests_to("/mcp").len() + world.token_requests("refresh_token").len();
        wait_until("an attempt", || attempts() > 0).await;
        // A span of time, in which a loop would make hundreds of attempts.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(attempts() < 15, "{} with {is_renewable}", attempts());
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_token_that_was_revoked_early_is_replaced_within_the_call() {
    let (world, logins) = expired_login(60).await;
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    world.rules().access.clear();
    call(&upstream, &RecordingPeer::new(1, None).peer(), "a", json!({})).await.unwrap();
    assert_eq!(world.token_requests("refresh_token").len(), 1);
    // A server that accepts no token is not sent one after the other.
    world.rules().access.clear();
    let error = call(&upstream, &RecordingPeer::new(1, None).peer(), "a", json!({})).await.unwrap_err();
    assert_eq!((error.kind, world.token_requests("refresh_token").len()), (Kind::Unauthorized, 1));
    upstream.stop().await;
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_ends_the_login_and_says_so() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let hubs = [logins(&store, world.spec("s")), logins(&store, world.spec("s"))];
    log_in(&world, &hubs[0], "s").await;
    let upstream = upstream(&world, &hubs[0], "s");
    wait_ready(&upstream).await;
    age_login(&store, "s", 4000).await;
    world.rules().access.clear();
    world.rules().refuse = Some((400, "invalid_grant"));
    assert_eq!(call_concurrently(std::slice::from_ref(&upstream), 20).await, 20);
    assert_eq!(world.token_requests("refresh_token").len(), 1, "asked once, and then it is over");
    wait_listing(&upstream, |now| matches!(&now.state, Listed::Down(why) if why.contains("login"))).await;
    for hub in &hubs {
        let status = hub.status(&ada(), "s").await.unwrap();
        assert!(status.state == LoginState::Lost && status.reason.unwrap().contains("revoked"));
    }
    // The same again.
    world.rules().refuse = None;
    log_in(&world, &hubs[0], "s").await;
    wait_ready(&upstream).await;
    assert_eq!(call_concurrently(std::slice::from_ref(&upstream), 1).await, 0);
    upstream.stop().await;
}

#[tokio::test]
async fn an_authorization_server_that_is_down_ends_no_login() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    log_in(&world, &logins, "s").await;
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    age_login(&store, "s", 4000).await;
    world.rules().refuse = Some((503, "temporarily_unavailable"));
    // A recently loaded login is still used; then the store is read.
    let peer = RecordingPeer::new(1, None).peer();
    let mut seen = None;
    for _ in 0..100 {
        match call(&upstream, &peer, "a", json!({})).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => {
                seen = Some(error);
                break;
            }
        }
    }
    let error = seen.unwrap();
    assert_eq!(error.kind, Kind::Unavailable, "{error}");
    assert!(error.retry_after.is_some() && !format!("{error:?}").contains("c4nary"), "{error:?}");
    call_concurrently(std::slice::from_ref(&upstream), 50).await;
    assert_eq!(world.token_requests("refresh_token").len(), 1, "it is left alone for a while");
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::Connected);
    upstream.stop().await;
}

#[tokio::test]
async fn a_caller_who_gives_up_does_not_lose_the_next_refresh_token() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    log_in(&world, &logins, "s").await;
    let first = upstream(&world, &logins, "s");
    wait_ready(&first).await;
    first.stop().await;
    age_login(&store, "s", 4000).await;
    world.rules().slow = Duration::from_millis(300);
    let upstream = upstream(&world, &logins, "s");
    wait_until("a renewal", || world.token_requests("refresh_token").len() == 1).await;
    upstream.stop().await;
    wait_until("the answer", || world.rules().access.len() == 2).await;
    let fresh = world.rules().access.keys().cloned().collect::<Vec<_>>();
    for _ in 0..200 {
        let kept = store.credentials.all(&(&ada()).into(), "s").await.unwrap().remove(0);
        let grant: serde_json::Value = serde_json::from_str(kept.secret.expose()).unwrap();
        if grant["lost"].is_null() && grant["expires"].as_i64() > grant["obtained"].as_i64() {
            let held = grant["access"].as_str().unwrap().to_owned();
            if fresh.contains(&held) && kept.revision > 3 {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the new token was not written");
}

/// Refreshes unused logins until the guard is dropped.
fn kept_alive(logins: &Logins) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(logins.clone().keep_alive(stop.clone()));
    stop.drop_guard()
}

#[tokio::test]
async fn a_login_that_nobody_uses_is_renewed_by_one_hub_of_two() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let hubs = [logins(&store, world.spec("s")), logins(&store, world.spec("s"))];
    log_in(&world, &hubs[0], "s").await;
    world.rules().slow = Duration::from_millis(200);
    let _running = hubs.each_ref().map(kept_alive);
    // A fresh login is not refreshed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.token_requests("refresh_token").len(), 0);
    // In its last five minutes, and then long after it expired, as after a night without a hub. A sweep follows each
    // login and logout, so there is no wait for the next one.
    for (round, age) in [(1, 3400), (2, 90_000)] {
        age_login(&store, "s", age).await;
        for hub in &hubs {
            hub.logout(&octo_model::Caller::named("nobody"), "s").await.unwrap();
        }
        wait_until("a renewal", || world.token_requests("refresh_token").len() == round).await;
        wait_stored(&hubs[1], 600).await;
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!((world.token_requests("refresh_token").len(), world.rules().reused), (2, 0), "once each");
}

#[tokio::test]
async fn tokens_that_live_for_seconds_are_renewed_in_time() {
    let world = AuthServer::start().await;
    world.rules().life = 8;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    log_in(&world, &logins, "s").await;
    let _running = kept_alive(&logins);
    wait_until("a renewal", || world.token_requests("refresh_token").len() == 1).await;
    wait_stored(&logins, 4).await;
}

/// Waits until a stored login has more seconds left than this. The authorization server issues a token before the hub
/// stores it.
async fn wait_stored(logins: &Logins, seconds: u64) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let status = logins.status(&ada(), "s").await.unwrap();
        assert_eq!(status.state, LoginState::Connected);
        if status.expires_in.is_some_and(|left| left > seconds.try_into().unwrap()) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "the new token was not stored: {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_loss_of_an_unused_login_is_announced_once_to_whom_it_concerns() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    log_in(&world, &logins, "s").await;
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    let mut events = upstream.events().unwrap();
    assert_eq!(logins.lost_logins().await.unwrap(), []);
    age_login(&store, "s", 3400).await;
    world.rules().refuse = Some((400, "invalid_grant"));
    let _running = kept_alive(&logins);
    let told = tokio::time::timeout(Duration::from_secs(10), events.recv()).await.unwrap().unwrap();
    let Event::Warning { audience, text, remedy } = told else { panic!("{told:?}") };
    assert_eq!(remedy, octo_model::Remedy::Login { server: "s".to_owned() });
    assert!(text.contains("revoked"), "{text}");
    assert!(audience.includes(&ada()) && !audience.includes(&octo_model::Caller::named("bob")));
    assert_ne!(audience, Audience::Everybody);
    let lost = logins.lost_logins().await.unwrap();
    assert_eq!((lost.len(), lost[0].server.as_str(), lost[0].caller()), (1, "s", Some("ada")));
    assert!(lost[0].concerns(&ada()) && !lost[0].concerns(&octo_model::Caller::named("bob")));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(events.try_recv().is_err(), "said once");
    assert_eq!(world.token_requests("refresh_token").len(), 1);
    // A login ends the loss, and the next loss is reported again.
    world.rules().refuse = None;
    log_in(&world, &logins, "s").await;
    assert_eq!(logins.lost_logins().await.unwrap(), []);
    upstream.stop().await;
}

#[tokio::test]
async fn a_failure_to_renew_is_no_loss_and_is_not_repeated_at_once() {
    let (world, logins) = expired_login(3400).await;
    world.rules().refuse = Some((503, "temporarily_unavailable"));
    let _running = kept_alive(&logins);
    wait_until("a try", || world.token_requests("refresh_token").len() == 1).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(world.token_requests("refresh_token").len(), 1);
    assert_eq!(logins.lost_logins().await.unwrap(), []);
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::Connected);
}
