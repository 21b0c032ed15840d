//! Personal logins: which link uses which login, and what is listed for whom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

#[path = "login/auth_server.rs"]
mod auth_server;
mod common;

use auth_server::{AuthServer, ada, authorization_url, logins};
use common::mock_http::{MockServer, RecordedRequest, json_body, legacy_preamble, status, tools};
use common::process_helpers::{is_alive, wait_until, with_launcher};
use common::*;
use futures_util::future::join_all;
use octo_grants::Net;
use octo_grants::exec::launcher;
use octo_model::{Caller, Kind, Operation, ToolError};
use octo_oauth::{Auth, ClientIdentity, KeyPlacement, LoginSharing, LoginSpec, Logins};
use octo_ports::{Owner, Stores, in_memory};
use octo_toolkit::{CallContext, Source, SourceState};
use octo_upstream::{ConnectMode, ServerStatus, Share, Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Launcher for the other tests: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    launcher::main(std::env::args_os());
}

fn cx_of(who: &str) -> CallContext {
    CallContext::new(
        Arc::new(Caller::named(who)),
        Instant::now() + Duration::from_secs(20),
        CancellationToken::new(),
    )
}

async fn call_as(upstream: &Upstream, who: &str, tool: &str) -> Result<Value, ToolError> {
    let op = Operation::tool(tool, json!({"who": who}).into());
    Ok(upstream.run(op, &cx_of(who)).await?.to_json().to().unwrap())
}

async fn log_in(world: &AuthServer, logins: &Logins, who: &str) {
    let who = Caller::named(who);
    let url = authorization_url(logins.begin(&who, "s").await.unwrap());
    logins.callback(world.approve(&url).query().unwrap(), Some(&who)).await.unwrap();
}

/// The token that the store has for a principal.
async fn token(store: &Stores, who: &str) -> String {
    let kept = store.credentials.all(&Owner::from(&Caller::named(who)), "s").await.unwrap().remove(0);
    let grant: Value = serde_json::from_str(kept.secret.expose()).unwrap();
    format!("Bearer {}", grant["access"].as_str().unwrap())
}

fn start_upstream(world: &AuthServer, logins: &Logins, share: Share) -> Arc<Upstream> {
    let mut spec = UpstreamSpec::http("s", world.mcp());
    spec.share = share;
    spec.accounts = Some(logins.accounts("s").unwrap());
    Upstream::start(spec)
}

fn is_without_login(state: &SourceState) -> bool {
    matches!(state, SourceState::Down(why) if why.contains("needs a login"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_each_carry_their_callers_login() {
    for share in [Share::One, Share::Pool(4), Share::PerCaller, Share::PerSession] {
        let world = AuthServer::start().await;
        let store = Stores::in_memory();
        let logins = logins(&store, world.spec("s"));
        let upstream = start_upstream(&world, &logins, share);
        for who in ["ada", "bob"] {
            log_in(&world, &logins, who).await;
        }
        wait_ready(&upstream).await;
        let calls = (0..200).map(|n| {
            let upstream = upstream.clone();
            tokio::spawn(async move { call_as(&upstream, if n % 2 == 0 { "ada" } else { "bob" }, "a").await })
        });
        for done in join_all(calls).await {
            done.unwrap().unwrap();
        }
        let calls: Vec<_> = world
            .requests_to("/mcp")
            .into_iter()
            .filter(|seen| seen.json["method"] == "tools/call")
            .collect();
        assert_eq!(calls.len(), 200, "{share:?}");
        for seen in calls {
            let who = seen.json["params"]["arguments"]["who"].as_str().unwrap();
            assert_eq!(seen.authorization, Some(token(&store, who).await), "{share:?} {who}");
        }
        assert_ne!(token(&store, "ada").await, token(&store, "bob").await);
        upstream.stop().await;
    }
}

/// A person at the hub's machine runs `octoprox login` beside a hub that has listed nothing yet, or before it starts.
#[tokio::test]
async fn a_login_of_another_process_is_noticed_before_anything_is_listed() {
    for whose in [LoginSharing::PerCaller, LoginSharing::Shared] {
        let world = AuthServer::start().await;
        let store = Stores::in_memory();
        let spec = || LoginSpec { sharing: whose, ..world.spec("s") };
        let (hub, command) = (logins(&store, spec()), logins(&store, spec()));
        let start = || {
            let mut spec = UpstreamSpec::http("s", world.mcp());
            (spec.listing_caller, spec.accounts) = (Some(ada()), Some(hub.accounts("s").unwrap()));
            Upstream::start(spec)
        };
        let upstream = start();
        wait_listing(&upstream, |now| is_without_login(&now.state)).await;
        log_in(&world, &command, "ada").await;
        assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"], "{whose:?}");
        call_as(&upstream, "ada", "a").await.unwrap();
        upstream.stop().await;
        let later = start();
        let listing = wait_listing(&later, |now| now.state != SourceState::Starting).await;
        assert_eq!((&listing.state, tool_names(&listing).len()), (&SourceState::Ready, 1), "{whose:?}");
        later.stop().await;
    }
}

#[tokio::test]
async fn who_logs_in_is_connected_by_itself_and_who_logs_out_is_not_any_more() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    let upstream = start_upstream(&world, &logins, Share::One);
    wait_listing(&upstream, |now| is_without_login(&now.state)).await;
    assert_eq!(upstream.report().status, ServerStatus::NeedsLogin(None));
    for who in ["ada", "bob"] {
        let error = call_as(&upstream, who, "a").await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthorized);
        assert_eq!(upstream.connect(&cx_of(who)).await.unwrap_err().kind, Kind::Unauthorized);
    }
    let begun = Instant::now();
    log_in(&world, &logins, "ada").await;
    assert_eq!(tool_names(&wait_ready(&upstream).await), ["a"]);
    assert!(begun.elapsed() < Duration::from_secs(2), "nobody waits for a backoff: {:?}", begun.elapsed());
    assert_eq!(upstream.report().status, ServerStatus::Connected);
    call_as(&upstream, "ada", "a").await.unwrap();
    let error = call_as(&upstream, "bob", "a").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthorized);
    assert_eq!(error.remedy.as_deref(), Some(&octo_model::Remedy::Login { server: "s".to_owned() }));
    log_in(&world, &logins, "bob").await;
    call_as(&upstream, "bob", "a").await.unwrap();

    logins.logout(&ada(), "s").await.unwrap();
    wait_until("her calls are refused", || upstream.report().calls == 0).await;
    assert_eq!(call_as(&upstream, "ada", "a").await.unwrap_err().kind, Kind::Unauthorized);
    call_as(&upstream, "bob", "a").await.unwrap();
    assert_eq!(upstream.listing().borrow().state, SourceState::Ready);
    log_in(&world, &logins, "ada").await;
    call_as(&upstream, "ada", "a").await.unwrap();
    upstream.stop().await;
}

#[tokio::test]
async fn a_shared_login_is_everybodys_and_wakes_the_server_at_once() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, LoginSpec { sharing: LoginSharing::Shared, ..world.spec("s") });
    let upstream = start_upstream(&world, &logins, Share::PerCaller);
    wait_listing(&upstream, |now| is_without_login(&now.state)).await;
    let begun = Instant::now();
    log_in(&world, &logins, "ada").await;
    wait_ready(&upstream).await;
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "nobody waits for a backoff: {:?}",
        begun.elapsed()
    );
    for who in ["ada", "bob"] {
        call_as(&upstream, who, "a").await.unwrap();
    }
    logins.logout(&Caller::named("bob"), "s").await.unwrap();
    wait_listing(&upstream, |now| is_without_login(&now.state)).await;
    for who in ["ada", "bob"] {
        assert_eq!(call_as(&upstream, who, "a").await.unwrap_err().kind, Kind::Unauthorized);
    }
    upstream.stop().await;
}

/// API key of a request.
fn key(hit: &RecordedRequest) -> &str {
    hit.header("x-key").unwrap_or_default()
}

/// Logins with an API key in a header or a variable.
fn keyed(place: KeyPlacement, url: Option<&str>) -> Logins {
    let logins = Logins::new(&Stores::in_memory(), ClientIdentity::new(auth_server::REDIRECT)).unwrap();
    logins.register(LoginSpec {
        server: "s".into(),
        url: url.map(str::to_owned),
        auth: Auth::Key(place),
        sharing: LoginSharing::PerCaller,
        net: Net::default(),
    });
    logins
}

fn header() -> KeyPlacement {
    KeyPlacement::Header { name: "x-key".into(), prefix: String::new() }
}

async fn give_key(logins: &Logins, who: &str) {
    logins.complete(&Caller::named(who), "s", &format!("key-of-{who}")).await.unwrap();
}

/// Server with a different listing for each key, and the listing `bare` without one.
async fn keyed_server(bare: Option<&'static [&'static str]>) -> MockServer {
    MockServer::start(move |hit| async move {
        if key(&hit).is_empty() && bare.is_none() {
            return status(401);
        }
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match (hit.rpc_method(), key(&hit)) {
            ("tools/list", "") => tools(&hit, bare.unwrap()),
            ("tools/list", key) => tools(&hit, &["a", key]),
            (_, "") => status(401),
            (_, key) => json_body(hit.result(json!({"content": [{"type": "text", "text": key}]}))),
        })
    })
    .await
}

fn of_server(server: &MockServer, logins: &Logins) -> UpstreamSpec {
    let mut spec = UpstreamSpec::http("s", &server.url);
    spec.accounts = Some(logins.accounts("s").unwrap());
    spec
}

async fn until_names(upstream: &Upstream, wanted: &[&str]) {
    wait_listing(upstream, |now| now.state == SourceState::Ready && tool_names(now) == wanted).await;
}

#[tokio::test]
async fn what_is_listed_is_what_the_last_to_connect_was_shown_and_it_stays() {
    let server = keyed_server(None).await;
    let logins = keyed(header(), Some(&server.url));
    let lists = in_memory::listings();
    let spec = || UpstreamSpec { listing_cache: Some(lists.clone()), ..of_server(&server, &logins) };
    let upstream = Upstream::start(spec());
    wait_listing(&upstream, |now| is_without_login(&now.state)).await;
    give_key(&logins, "ada").await;
    until_names(&upstream, &["a", "key-of-ada"]).await;
    give_key(&logins, "bob").await;
    until_names(&upstream, &["a", "key-of-bob"]).await;
    // A connected link changes nothing.
    assert_eq!(first_text(&call_as(&upstream, "ada", "a").await.unwrap()), "key-of-ada");
    assert_eq!(tool_names(&upstream.listing().borrow()), ["a", "key-of-bob"]);
    logins.logout(&Caller::named("bob"), "s").await.unwrap();
    upstream.disconnect().await;
    assert_eq!(tool_names(&upstream.listing().borrow()), ["a", "key-of-bob"]);
    assert_eq!(upstream.report().status, ServerStatus::Idle);
    upstream.connect(&cx_of("ada")).await.unwrap();
    until_names(&upstream, &["a", "key-of-ada"]).await;
    upstream.stop().await;
    // After a start no link is connected yet, and all callers see what they would log in for.
    let bare = server.count("server/discover");
    let upstream = Upstream::start(spec());
    until_names(&upstream, &["a", "key-of-ada"]).await;
    server.wait_for("server/discover", bare + 1).await;
    assert_eq!(first_text(&call_as(&upstream, "ada", "a").await.unwrap()), "key-of-ada");
    assert_eq!(upstream.listing().borrow().state, SourceState::Ready);
    upstream.stop().await;
}

fn first_text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_lists_without_a_login_is_listed_and_hides_nothing_from_who_has_one() {
    let server = keyed_server(Some(&["a"])).await;
    let logins = keyed(header(), Some(&server.url));
    let upstream = Upstream::start(of_server(&server, &logins));
    until_names(&upstream, &["a"]).await;
    assert_eq!(call_as(&upstream, "ada", "a").await.unwrap_err().kind, Kind::Unauthorized);
    give_key(&logins, "ada").await;
    until_names(&upstream, &["a", "key-of-ada"]).await;
    let listed = server.count("tools/list");
    upstream.disconnect().await;
    upstream.retry();
    server.wait_for("tools/list", listed + 1).await;
    wait_until("it is up", || upstream.report().status == ServerStatus::Connected).await;
    assert_eq!(tool_names(&upstream.listing().borrow()), ["a", "key-of-ada"]);
    for hit in server.requests_of("tools/call") {
        assert!(["", "key-of-ada"].contains(&key(&hit)));
    }
    upstream.stop().await;
}

/// Server whose list changes on request, with a notification in its next response.
async fn changing_server(bare: bool, more: Arc<AtomicBool>) -> MockServer {
    MockServer::start(move |hit| {
        let more = more.load(Ordering::SeqCst);
        async move {
            if key(&hit).is_empty() && !bare {
                return status(401);
            }
            legacy_preamble(&hit, json!({"tools": {"listChanged": true}})).unwrap_or_else(|| {
                match hit.rpc_method() {
                    "tools/list" if key(&hit).is_empty() => tools(&hit, &["public"]),
                    "tools/list" if more => tools(&hit, &["a", "b"]),
                    "tools/list" => tools(&hit, &["a"]),
                    _ if more => {
                        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                        let (send, answer) = common::mock_http::event_stream();
                        send.send(common::mock_http::sse_event(&change)).unwrap();
                        send.send(common::mock_http::sse_event(&hit.result(json!({"content": []})))).unwrap();
                        answer
                    }
                    _ => json_body(hit.result(json!({"content": []}))),
                }
            })
        }
    })
    .await
}

#[tokio::test]
async fn a_changed_list_is_asked_for_by_whoever_is_still_there() {
    for bare in [false, true] {
        let more = Arc::new(AtomicBool::new(false));
        let server = changing_server(bare, more.clone()).await;
        let logins = keyed(header(), Some(&server.url));
        let upstream =
            Upstream::start(UpstreamSpec { connect: ConnectMode::OnDemand, ..of_server(&server, &logins) });
        for who in ["ada", "bob"] {
            give_key(&logins, who).await;
            call_as(&upstream, who, "a").await.unwrap();
        }
        until_names(&upstream, &["a"]).await;
        logins.logout(&Caller::named("bob"), "s").await.unwrap();
        upstream.disconnect().await;
        call_as(&upstream, "ada", "a").await.unwrap();
        // A later link without a login neither lists nor follows changes in her place.
        let without = || server.requests_of("tools/list").iter().filter(|hit| key(hit).is_empty()).count();
        let before = without();
        upstream.retry();
        if bare {
            wait_until("it is listed without a login", || without() > before).await;
        }
        more.store(true, Ordering::SeqCst);
        call_as(&upstream, "ada", "a").await.unwrap();
        until_names(&upstream, &["a", "b"]).await;
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_program_is_started_for_each_person_with_their_own_key() {
    let logins = keyed(KeyPlacement::Environment("STUB_KEY".into()), None);
    let mut spec = with_launcher(UpstreamSpec::stdio("s", stub("legacy")));
    spec.accounts = Some(logins.accounts("s").unwrap());
    let upstream = Upstream::start(spec);
    wait_listing(&upstream, |now| is_without_login(&now.state)).await;
    assert!(upstream.report().pids.is_empty(), "nobody has a key yet");
    assert_eq!(call_as(&upstream, "ada", "pid").await.unwrap_err().kind, Kind::Unauthorized);
    let mut pids = Vec::new();
    for who in ["ada", "bob"] {
        give_key(&logins, who).await;
        let env = first_text_json(&call_as(&upstream, who, "env").await.unwrap());
        assert_eq!(env["STUB_KEY"], format!("key-of-{who}"));
        pids.push(first_text_json(&call_as(&upstream, who, "pid").await.unwrap()).as_i64().unwrap());
    }
    wait_ready(&upstream).await;
    assert_ne!(pids[0], pids[1]);
    assert_eq!(upstream.report().pids.len(), 2);
    // A new key starts a new process; without a key there is none.
    logins.complete(&ada(), "s", "another-key").await.unwrap();
    wait_until("the program with the old key ends", || !is_alive(pids[0])).await;
    let env = first_text_json(&call_as(&upstream, "ada", "env").await.unwrap());
    assert_eq!(env["STUB_KEY"], "another-key");
    logins.logout(&Caller::named("bob"), "s").await.unwrap();
    wait_until("the program of who logged out ends", || !is_alive(pids[1])).await;
    assert_eq!(call_as(&upstream, "bob", "pid").await.unwrap_err().kind, Kind::Unauthorized);
    upstream.stop().await;
}

#[tokio::test]
async fn what_one_persons_program_says_is_not_in_anothers_error() {
    let logins = keyed(KeyPlacement::Environment("STUB_KEY".into()), None);
    let mut spec = with_launcher(UpstreamSpec::stdio("s", stub("legacy")));
    spec.accounts = Some(logins.accounts("s").unwrap());
    let upstream = Upstream::start(spec);
    for who in ["ada", "bob"] {
        give_key(&logins, who).await;
    }
    let say = Operation::tool("say", json!({"text": "ada is here with key-of-ada"}).into());
    upstream.run(say, &cx_of("ada")).await.unwrap();
    wait_until("it is heard", || upstream.stderr().iter().any(|line| line == "ada is here with $STUB_KEY"))
        .await;
    let error = call_as(&upstream, "bob", "die").await.unwrap_err();
    assert!(!format!("{error:?}").contains("ada is here"), "{error:?}");
    upstream.stop().await;
}
