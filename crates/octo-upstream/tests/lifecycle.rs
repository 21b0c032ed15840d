//! Processes start when needed, end when idle, and leave nothing behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::process_helpers::*;
use common::*;
use octo_grants::exec::{Exec, ExecLimits, ExecSpec, NetworkAccess, SandboxChoice, launcher};
use octo_grants::fs::{RootSpec, Workspace, WorkspaceSpec};
use octo_model::Kind;
use octo_ports::in_memory;
use octo_toolkit::{Source, SourceState};
use octo_upstream::{ConnectMode, SandboxSpec, ServerStatus, Upstream, UpstreamSpec};
use serde_json::json;
use std::io::BufRead;
use std::time::{Duration, Instant};

const SHORT_IDLE: Duration = Duration::from_millis(100);
const LONG_IDLE: Duration = Duration::from_secs(600);

/// Launcher for the other tests: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    launcher::main(std::env::args_os());
}

#[tokio::test]
async fn a_known_server_is_listed_without_being_started_and_starts_with_the_first_call() {
    let lists = in_memory::listings();
    let spec = |args: &[&str]| {
        let mut spec = on_demand("legacy", SHORT_IDLE);
        spec.listing_cache = Some(lists.clone());
        if let octo_upstream::TransportSpec::Stdio(command) = &mut spec.transport {
            command.args.extend(args.iter().map(|word| (*word).to_owned()));
        }
        spec
    };
    // Nothing is cached yet: it is started once for its listing, and ends by itself.
    let first = Upstream::start(spec(&[]));
    let names_then = tool_names(&wait_ready(&first).await);
    wait_until("asleep", || !first.is_connected()).await;
    first.stop().await;
    let second = Upstream::start(spec(&[]));
    let listing = wait_ready(&second).await;
    assert_eq!(tool_names(&listing), names_then);
    assert_eq!(listing.listing.instructions.as_deref(), Some("be kind"));
    assert!(second.stderr().is_empty() && !second.is_connected(), "it was started");
    pid(&second).await;
    wait_stderr(&second, &["stub is up"]).await;
    second.stop().await;
    // A changed entry invalidates the cached listing.
    let third = Upstream::start(spec(&["--another"]));
    wait_ready(&third).await;
    wait_stderr(&third, &["stub is up"]).await;
    third.stop().await;
}

/// Standard error may arrive at any time, but nothing else may.
async fn wait_stderr(upstream: &Upstream, lines: &[&str]) {
    wait_until("it is heard", || upstream.stderr().len() >= lines.len()).await;
    assert_eq!(upstream.stderr(), lines);
}

#[tokio::test]
async fn an_idle_program_ends_and_the_next_call_does_not_notice() {
    let upstream = Upstream::start(with_launcher(on_demand("legacy", SHORT_IDLE)));
    let version = wait_ready(&upstream).await.version;
    for _ in 0..3 {
        let first = pid(&upstream).await;
        wait_until("the idle program ends", || !is_alive(first)).await;
        assert_eq!(upstream.listing().borrow().state, SourceState::Ready);
    }
    assert_eq!(upstream.listing().borrow().version, version);
    upstream.stop().await;
}

#[tokio::test]
async fn a_call_longer_than_the_idle_time_is_not_cut() {
    let upstream = Upstream::start(on_demand("legacy", SHORT_IDLE));
    wait_ready(&upstream).await;
    assert!(call(&upstream, &no_peer(), "sleep", json!({"ms": 500})).await.is_ok());
    upstream.stop().await;
}

#[tokio::test]
async fn a_watched_resource_keeps_its_server_awake() {
    let upstream = Upstream::start(on_demand("legacy", SHORT_IDLE));
    wait_ready(&upstream).await;
    upstream.watch("stub://a", true).await.unwrap();
    let first = pid(&upstream).await;
    tokio::time::sleep(6 * SHORT_IDLE).await;
    assert!(is_alive(first));
    upstream.watch("stub://a", false).await.unwrap();
    wait_until("it may sleep again", || !is_alive(first)).await;
    upstream.stop().await;
}

#[tokio::test]
async fn a_program_that_dies_while_nobody_needs_it_is_not_started_again() {
    let upstream = Upstream::start(on_demand("legacy", LONG_IDLE));
    wait_ready(&upstream).await;
    kill(pid(&upstream).await);
    wait_until("it is gone", || !upstream.is_connected()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!upstream.is_connected());
    assert_eq!(upstream.listing().borrow().state, SourceState::Ready);
    pid(&upstream).await;
    upstream.stop().await;
}

#[tokio::test]
async fn a_hundred_first_calls_share_one_start() {
    let lists = in_memory::listings();
    let spec = || UpstreamSpec { listing_cache: Some(lists.clone()), ..on_demand("legacy", LONG_IDLE) };
    let first = Upstream::start(spec());
    wait_ready(&first).await;
    first.stop().await;
    let upstream = Upstream::start(spec());
    wait_ready(&upstream).await;
    let calls = (0..100).map(|_| pid(&upstream));
    let pids = futures_util::future::join_all(calls).await;
    assert!(pids.iter().all(|one| *one == pids[0]));
    wait_stderr(&upstream, &["stub is up"]).await;
    upstream.stop().await;
}

#[tokio::test]
async fn a_program_gets_what_its_entry_names_and_little_else() {
    for through_launcher in [false, true] {
        let mut command = stub("legacy");
        command.env.insert("NAMED".into(), "value".into());
        let spec = UpstreamSpec::stdio("stub", command);
        let upstream = Upstream::start(if through_launcher { with_launcher(spec) } else { spec });
        wait_ready(&upstream).await;
        let env = first_text_json(&call(&upstream, &no_peer(), "env", json!({})).await.unwrap());
        assert_eq!(env["NAMED"], "value");
        assert!(env["PATH"].is_string());
        // Python's own, and what a wrapper around it adds.
        let known = ["NAMED", "PATH", "HOME", "LANG", "LC_CTYPE", "PWD", "SHLVL", "OLDPWD", "_"];
        let is_strange = |name: &&String| !known.contains(&name.as_str()) && !name.contains("PYENV");
        let strange: Vec<_> = env.as_object().unwrap().keys().filter(is_strange).collect();
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is nothing that could be inherited");
        assert!(strange.is_empty(), "{strange:?}");
        upstream.stop().await;
    }
}

#[tokio::test]
async fn what_a_program_says_is_kept_without_its_secrets() {
    let mut command = stub("legacy");
    command.env.insert("TOKEN".into(), "c4nary-s3cret".into());
    let upstream = Upstream::start(UpstreamSpec::stdio("stub", command));
    wait_ready(&upstream).await;
    call(&upstream, &no_peer(), "say", json!({"text": "the key is c4nary-s3cret."})).await.unwrap();
    wait_stderr(&upstream, &["stub is up", "the key is $TOKEN."]).await;
    upstream.stop().await;
}

#[tokio::test]
async fn a_start_that_hangs_says_what_the_program_said() {
    let mut spec = with_launcher(UpstreamSpec::stdio("stub", stub("hung")));
    spec.start_timeout = Duration::from_secs(1);
    let upstream = Upstream::start(spec);
    let listing = wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
    assert!(
        matches!(&listing.state, SourceState::Down(why) if why.contains("stub hangs")),
        "{:?}",
        listing.state
    );
    upstream.stop().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_through_the_launcher_too() {
    let mut command = stub("legacy");
    command.program = "/no/such/program".into();
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", command)));
    let listing = wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
    let SourceState::Down(why) = &listing.state else { unreachable!() };
    assert!(why.contains("/no/such/program") && why.contains("os error 2)"), "{why}");
    upstream.stop().await;
}

#[tokio::test]
async fn stopping_ends_every_descendant_even_one_that_left_the_group() {
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", stub("legacy"))));
    wait_ready(&upstream).await;
    let family = process_tree(&upstream).await;
    assert!(family.iter().all(|pid| is_alive(*pid)));
    upstream.stop().await;
    wait_until("all are gone", || !family.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_program_that_dies_takes_its_descendants_along() {
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", stub("legacy"))));
    wait_ready(&upstream).await;
    let family = process_tree(&upstream).await;
    kill(family[0]);
    wait_until("all are gone", || !family.iter().any(|pid| is_alive(*pid))).await;
    assert_ne!(pid(&upstream).await, family[0]);
    upstream.stop().await;
}

async fn process_tree(upstream: &Upstream) -> Vec<i64> {
    let family = first_text_json(&call(upstream, &no_peer(), "offspring", json!({})).await.unwrap());
    family.as_array().unwrap().iter().map(|pid| pid.as_i64().unwrap()).collect()
}

/// A hub that another test kills: prints its processes and waits.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn a_hub_to_be_killed() {
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", stub("legacy"))));
    wait_ready(&upstream).await;
    println!("family {}", serde_json::to_string(&process_tree(&upstream).await).unwrap());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_hub_leaves_no_process_behind() {
    let mut words = launcher::test_launcher("a_hub_to_be_killed").unwrap().into_iter();
    let mut hub = std::process::Command::new(words.next().unwrap())
        .args(words)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(hub.stdout.take().unwrap()).lines();
    let family = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("family ").map(|(_, pids)| pids.to_owned()));
    let family: Vec<i64> = serde_json::from_str(&family.unwrap()).unwrap();
    assert!(family.len() == 3 && family.iter().all(|pid| is_alive(*pid)));
    hub.kill().unwrap();
    let begun = Instant::now();
    hub.wait().unwrap();
    wait_until("all are gone", || !family.iter().any(|pid| is_alive(*pid))).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_caged_program_sees_its_roots_and_no_network() {
    let ground = folder("cage");
    let (work, state) = (ground.join("work"), ground.join("state"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("inside"), "within").unwrap();
    std::fs::write(ground.join("outside"), "without").unwrap();
    let common = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common");
    let root = |name: &str, path: &std::path::Path, writable| RootSpec {
        name: name.into(),
        path: path.to_owned(),
        alias_path: None,
        writable,
    };
    let roots = vec![root("work", &work, true), root("common", &common, false)];
    let exec = Exec::new(ExecSpec {
        workspace: Workspace::open(WorkspaceSpec { roots, ..WorkspaceSpec::default() }).unwrap(),
        sandbox: SandboxChoice::Auto,
        limits: ExecLimits::default(),
        state,
        launcher: launcher::test_launcher("launcher").unwrap(),
        path: "/usr/local/bin:/usr/bin:/bin".into(),
        pass_env: std::collections::BTreeMap::new(),
    })
    .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut spec = UpstreamSpec::stdio("stub", stub("legacy"));
    let homes = ground.join("homes");
    spec.sandbox = Some(SandboxSpec { exec, network: NetworkAccess::None, homes });
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let ask = async |tool: &str, arguments| {
        first_text_json(&call(&upstream, &no_peer(), tool, arguments).await.unwrap())
    };
    assert_eq!(ask("open", json!({"path": work.join("inside")})).await, "within");
    assert!(ask("open", json!({"path": ground.join("outside")})).await["error"].is_string());
    assert!(ask("open", json!({"path": common.join("stub.py"), "mode": "a"})).await["error"].is_string());
    assert_eq!(ask("open", json!({"path": work.join("new"), "mode": "w"})).await, 7);
    assert!(ask("connect", json!({"port": port})).await["error"].is_string());
    upstream.stop().await;
    std::fs::remove_dir_all(ground).unwrap();
}

#[tokio::test]
async fn a_quiet_server_that_hangs_is_started_again_before_anybody_calls() {
    let mut spec = with_launcher(UpstreamSpec::stdio("stub", stub("legacy")));
    spec.ping_interval = Some(Duration::from_millis(500));
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let first = pid(&upstream).await;
    tokio::time::sleep(Duration::from_millis(1800)).await;
    assert!(is_alive(first), "one that answers is left alone");
    call(&upstream, &no_peer(), "deaf", json!({})).await.unwrap();
    wait_until("the deaf one is ended", || !is_alive(first)).await;
    assert_ne!(pid(&upstream).await, first);
    upstream.stop().await;
}

#[tokio::test]
async fn a_server_that_always_dies_is_left_alone_and_tried_again_later() {
    let mut spec = UpstreamSpec::stdio("stub", stub("legacy"));
    spec.breaker.max_failures = 3;
    spec.breaker.pause = Duration::from_secs(2);
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    for _ in 0..3 {
        assert_eq!(call(&upstream, &no_peer(), "die", json!({})).await.unwrap_err().kind, Kind::Unavailable);
    }
    let begun = Instant::now();
    let error = call(&upstream, &no_peer(), "echo", json!({})).await.unwrap_err();
    assert!(error.message.contains("calls are refused") && error.retry_after.is_some(), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    tokio::time::sleep(error.retry_after.unwrap()).await;
    assert!(call(&upstream, &no_peer(), "echo", json!({})).await.is_ok());
    assert!(call(&upstream, &no_peer(), "echo", json!({})).await.is_ok());
    upstream.stop().await;
}

#[tokio::test]
async fn always_is_the_default_and_has_no_idle_time() {
    let mut spec = UpstreamSpec::stdio("stub", stub("legacy"));
    assert_eq!(spec.connect, ConnectMode::Always);
    spec.idle_timeout = SHORT_IDLE;
    let upstream = Upstream::start(spec);
    wait_ready(&upstream).await;
    let first = pid(&upstream).await;
    tokio::time::sleep(5 * SHORT_IDLE).await;
    assert_eq!(pid(&upstream).await, first);
    upstream.stop().await;
}

fn server_info() -> Option<octo_upstream::ServerInfo> {
    Some(octo_upstream::ServerInfo { name: "stub".into(), version: Some("1".into()) })
}

#[tokio::test]
async fn a_server_that_was_disconnected_stays_so_until_somebody_needs_it() {
    for connect in [ConnectMode::Always, ConnectMode::OnDemand] {
        let spec = UpstreamSpec { connect, ..with_launcher(on_demand("legacy", LONG_IDLE)) };
        let upstream = Upstream::start(spec);
        let listing = wait_ready(&upstream).await;
        let first = pid(&upstream).await;
        let report = upstream.report();
        assert_eq!((report.status, report.server_info), (ServerStatus::Connected, server_info()));
        assert_eq!((report.pids, report.calls, report.is_breaker_open), (vec![first as u32], 0, false));
        upstream.disconnect().await;
        assert!(!is_alive(first), "{connect:?}");
        // Nothing restarts it: neither a backoff nor an earlier request.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let report = upstream.report();
        assert_eq!(
            (report.status, report.pids, report.server_info),
            (ServerStatus::Idle, vec![], server_info())
        );
        let kept = upstream.listing().borrow().clone();
        assert_eq!((kept.state, kept.version), (SourceState::Ready, listing.version));
        let second = pid(&upstream).await;
        assert_ne!(second, first);
        upstream.disconnect().await;
        upstream.connect(&call_context(20)).await.unwrap();
        assert_eq!(upstream.report().status, ServerStatus::Connected);
        upstream.disconnect().await;
        upstream.disconnect().await;
        upstream.stop().await;
        assert_eq!(upstream.report().status, ServerStatus::Down("stopped".into()));
    }
}

/// A call wakes a suspended link, and a suspension meanwhile is not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_disconnects_that_cross_leave_a_server_that_works() {
    for connect in [ConnectMode::Always, ConnectMode::OnDemand] {
        let spec = UpstreamSpec { connect, ..with_launcher(on_demand("legacy", LONG_IDLE)) };
        let upstream = Upstream::start(spec);
        wait_ready(&upstream).await;
        for round in 0..30_u64 {
            let other = tokio::spawn({
                let upstream = upstream.clone();
                async move { call(&upstream, &no_peer(), "pid", json!({})).await }
            });
            // At another moment of the start each time.
            tokio::time::sleep(Duration::from_millis(round * 2)).await;
            upstream.disconnect().await;
            if let Err(error) = other.await.unwrap() {
                assert_eq!(error.kind, Kind::Unavailable, "{connect:?} {round}: {error}");
            }
            // A call after the disconnect may have woken it.
            upstream.disconnect().await;
            let report = upstream.report();
            assert_eq!((report.status, report.pids), (ServerStatus::Idle, vec![]), "{connect:?} {round}");
        }
        let last = pid(&upstream).await;
        upstream.disconnect().await;
        assert!(!is_alive(last), "{connect:?}");
        upstream.stop().await;
    }
}

#[tokio::test]
async fn who_disconnects_ends_the_calls_under_way_and_those_that_wait() {
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", stub("legacy"))));
    wait_ready(&upstream).await;
    let held = tokio::spawn({
        let upstream = upstream.clone();
        async move { call(&upstream, &no_peer(), "hold", json!({})).await }
    });
    wait_until("the call is under way", || upstream.report().calls == 1).await;
    let begun = Instant::now();
    upstream.disconnect().await;
    assert_eq!(held.await.unwrap().unwrap_err().kind, Kind::Unavailable);
    assert_eq!(upstream.report().status, ServerStatus::Idle);
    upstream.stop().await;
    // A server that never comes up.
    let mut command = stub("legacy");
    (command.program, command.args) = ("sleep".into(), vec!["1000".into()]);
    let upstream = Upstream::start(with_launcher(UpstreamSpec::stdio("stub", command)));
    assert_eq!(upstream.report().status, ServerStatus::Starting);
    let waits = tokio::spawn({
        let upstream = upstream.clone();
        async move { call(&upstream, &no_peer(), "echo", json!({})).await }
    });
    wait_until("the call waits", || upstream.report().calls == 1).await;
    upstream.disconnect().await;
    assert_eq!(waits.await.unwrap().unwrap_err().kind, Kind::Unavailable);
    assert_eq!(upstream.listing().borrow().state, SourceState::Down("disconnected".into()));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    upstream.stop().await;
}

#[tokio::test]
async fn who_connects_hears_why_it_failed_and_does_not_wait_for_the_next_try() {
    let mut command = stub("legacy");
    command.program = "no-such-program-here".into();
    let upstream = Upstream::start(UpstreamSpec::stdio("stub", command));
    wait_listing(&upstream, |now| matches!(now.state, SourceState::Down(_))).await;
    // By now the backoff is long.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    let error = upstream.connect(&call_context(20)).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
    let ServerStatus::Down(why) = upstream.report().status else { panic!("{:?}", upstream.report()) };
    assert!(why.contains("no-such-program-here"), "{why}");
    upstream.stop().await;
}
