//! Clocks of processes that can be set, by libfaketime. Only the time of day is concerned, as where an operator sets it.

use std::fs;
use std::path::Path;

/// Of the Debian package faketime.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

pub fn is_installed() -> bool {
    Path::new(LIBRARY).exists()
}

/// The beginning of a command whose clock a file sets.
pub fn command(clock: &Path) -> Vec<String> {
    vec![
        "env".to_owned(),
        format!("LD_PRELOAD={LIBRARY}"),
        format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()),
        "FAKETIME_CACHE_DURATION=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ]
}

/// Removes what a process leaves that was killed.
pub fn remove_files(pid: u32) {
    for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
        let _ = fs::remove_file(Path::new("/dev/shm").join(name));
    }
}
