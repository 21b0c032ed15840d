//! Many starts and stops leak nothing. In its own file, because it counts what its process holds.
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
use octo_grants::exec::launcher;
use octo_upstream::Upstream;
use std::time::Duration;

/// Launcher for the other tests: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    launcher::main(std::env::args_os());
}

#[tokio::test]
async fn fifty_cycles_leave_no_zombie_and_no_descriptor() {
    cycles(50).await;
}

#[tokio::test]
#[ignore = "takes minutes"]
async fn a_thousand_cycles_leave_no_zombie_and_no_descriptor() {
    cycles(1000).await;
}

async fn cycles(count: usize) {
    let upstream = Upstream::start(with_launcher(on_demand("legacy", Duration::from_millis(1))));
    wait_ready(&upstream).await;
    let mut before = None;
    let mut last = 0;
    for _ in 0..count {
        let this = pid(&upstream).await;
        assert_ne!(this, last);
        last = this;
        wait_until("it sleeps", || !upstream.is_connected() && !is_alive(this)).await;
        if before.is_none() {
            wait_until("the launcher ends", || children().is_empty()).await;
            before = Some(descriptors());
        }
    }
    wait_until("all launchers have ended", || children().is_empty()).await;
    assert_eq!(Some(descriptors()), before);
    upstream.stop().await;
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Child processes of this one, including zombies.
fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let all =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let is_child = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(me.as_str())
    };
    all.filter(|name| name.parse::<u32>().is_ok()).filter(is_child).collect()
}
