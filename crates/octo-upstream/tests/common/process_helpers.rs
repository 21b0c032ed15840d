//! Helpers for tests of processes.

use super::*;
use std::path::PathBuf;

/// The launcher is the test binary itself, which has an ignored test of this name.
pub fn with_launcher(mut spec: UpstreamSpec) -> UpstreamSpec {
    spec.launcher = octo_grants::exec::launcher::test_launcher("launcher").unwrap();
    spec
}

/// A stub that is started on demand, in the era that it speaks.
pub fn on_demand(mode: &str, idle: Duration) -> UpstreamSpec {
    let mut spec = UpstreamSpec::stdio("stub", stub(mode));
    spec.connect = octo_upstream::ConnectMode::OnDemand;
    spec.era = Some(octo_wire::Era::Legacy);
    spec.idle_timeout = idle;
    spec
}

pub fn no_peer() -> Arc<dyn Peer> {
    Arc::new(octo_toolkit::NoPeer)
}

pub async fn pid(upstream: &Upstream) -> i64 {
    first_text_json(&call(upstream, &no_peer(), "pid", json!({})).await.unwrap()).as_i64().unwrap()
}

pub fn kill(pid: i64) {
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

pub fn is_alive(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits for a condition.
pub async fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(15), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An empty directory of this test.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
