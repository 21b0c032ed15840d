//! Restart of programs that die; calls meanwhile wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::process_helpers::{is_alive, kill, no_peer, pid, wait_until};
use common::*;
use octo_model::Kind;
use octo_toolkit::{Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_program_killed_while_idle_is_not_missed() {
    let upstream = start_stub("legacy");
    let version = wait_ready(&upstream).await.version;
    for _ in 0..2 {
        let first = pid(&upstream).await;
        kill(first);
        wait_until("the program is dead", || !is_alive(first)).await;
        let second = pid(&upstream).await;
        assert_ne!(first, second);
    }
    assert_eq!(upstream.listing().borrow().state, SourceState::Ready);
    // The new process lists what the old one listed: nothing has changed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(upstream.listing().borrow().version, version);
}

#[tokio::test]
async fn a_call_under_way_fails_and_is_not_repeated() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let (held, peer) = (upstream.clone(), no_peer());
    let waiting = tokio::spawn(async move { call(&held, &peer, "hold", json!({})).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = call(&upstream, &no_peer(), "die", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.is_outcome_unknown);
    assert_eq!(waiting.await.unwrap().unwrap_err().kind, Kind::Unavailable);
    assert!(call(&upstream, &no_peer(), "echo", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_call_that_a_dead_program_never_read_goes_to_its_successor() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let first = pid(&upstream).await;
    call(&upstream, &no_peer(), "deaf", json!({})).await.unwrap();
    let (unheard, peer) = (upstream.clone(), no_peer());
    let waiting = tokio::spawn(async move { call(&unheard, &peer, "pid", json!({})).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    kill(first);
    assert_ne!(first_text_json(&waiting.await.unwrap().unwrap()), first);
}

#[tokio::test]
async fn stopping_and_dropping_end_the_whole_group() {
    let mut command = stub("legacy");
    // Wrapped in a shell, like many servers: the process group has more than one member.
    command.args = vec!["-c".into(), format!("sleep 1000 & python3 {}; true", command.args.join(" "))];
    command.program = "sh".into();
    for dropped in [false, true] {
        let upstream = Upstream::start(UpstreamSpec::stdio("stub", command.clone()));
        wait_ready(&upstream).await;
        let server = pid(&upstream).await;
        assert!(is_alive(server));
        let group = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
        let group: i64 = group.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
        if dropped {
            drop(upstream);
        } else {
            upstream.stop().await;
            assert_eq!(upstream.listing().borrow().state, SourceState::Down("stopped".to_owned()));
            assert_eq!(
                call(&upstream, &no_peer(), "echo", json!({})).await.unwrap_err().kind,
                Kind::Unavailable
            );
        }
        let begun = Instant::now();
        while members(group) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(8), "the group is still alive");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn members(group: i64) -> usize {
    let found = std::process::Command::new("pgrep").args(["-g", &group.to_string()]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().filter(|pid| is_alive(pid.parse().unwrap())).count()
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why_and_calls_fail_in_time() {
    let mut command = stub("legacy");
    command.program = "/no/such/program".into();
    let upstream = Upstream::start(UpstreamSpec::stdio("stub", command));
    let listing = wait_listing(&upstream, |now| now.state != SourceState::Starting).await;
    assert!(matches!(listing.state, SourceState::Down(why) if why.contains("/no/such/program")));
    let error =
        upstream.run(octo_model::Operation::tool("x", json!({}).into()), &call_context(1)).await.unwrap_err();
    assert!(matches!(error.kind, Kind::Unavailable | Kind::Timeout));
    upstream.stop().await;
}

#[tokio::test]
async fn the_last_words_of_a_program_are_kept() {
    let mut command = stub("legacy");
    command.program = "sh".into();
    command.args = vec!["-c".into(), "echo 'no API key' >&2; exit 1".into()];
    let upstream = Upstream::start(UpstreamSpec::stdio("stub", command));
    let listing = wait_listing(
        &upstream,
        |now| matches!(&now.state, SourceState::Down(why) if why.contains("last stderr output")),
    )
    .await;
    assert!(matches!(listing.state, SourceState::Down(why) if why.contains("no API key")));
}
