//! What tests about programs and their ends need.

use super::*;
use std::path::PathBuf;

/// The launcher is the test binary itself, which has an ignored test of this name.
pub fn launched(mut spec: Spec) -> Spec {
    spec.launcher = octo_grants::exec::launch::in_tests("launcher").unwrap();
    spec
}

/// A stub that is started on demand, in the era that it speaks.
pub fn on_demand(mode: &str, idle: Duration) -> Spec {
    let mut spec = Spec::child("stub", stub(mode));
    spec.connect = octo_upstream::Connect::OnDemand;
    spec.era = Some(octo_wire::Era::Legacy);
    spec.idle = idle;
    spec
}

pub fn alone() -> Arc<dyn Peer> {
    Arc::new(octo_toolkit::NoPeer)
}

pub async fn pid(upstream: &Upstream) -> i64 {
    told(&call(upstream, &alone(), "pid", json!({})).await.unwrap()).as_i64().unwrap()
}

pub fn kill(pid: i64) {
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

pub fn is_alive(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits for a condition.
pub async fn until_true(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(15), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An empty folder of this test's own.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
