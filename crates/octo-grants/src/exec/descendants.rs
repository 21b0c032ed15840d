//! Descendants of this process, according to `/proc`.

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal, wait,
};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// Maximum wait for killed processes; one that is stuck in the kernel cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// All descendants, parents before children, each with its parent.
pub(super) fn descendants() -> Vec<(i32, i32)> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((parent, _)) = parent_and_state(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let me = getpid().as_raw_nonzero().get();
    let (mut found, mut seen, mut at) = (Vec::new(), HashSet::from([me]), 0);
    let mut parent = Some(me);
    while let Some(of) = parent {
        for child in children.get(&of).into_iter().flatten() {
            if seen.insert(*child) {
                found.push((*child, of));
            }
        }
        parent = found.get(at).map(|(pid, _)| *pid);
        at += 1;
    }
    found
}

/// Parent and state of a process; the name before them may contain anything.
fn parent_and_state(pid: i32) -> Option<(i32, char)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let mut fields = std::str::from_utf8(after).ok()?.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// Sends a signal to every descendant except those for which `spare` returns true.
pub(super) fn signal_all(signal: Signal, spare: impl Fn(i32) -> bool) {
    for (pid, parent) in descendants() {
        if !spare(pid) {
            signal_child(pid, parent, signal);
        }
    }
}

/// The PID may have been reused, so the process is opened first and then checked again.
fn signal_child(pid: i32, parent: i32, signal: Signal) {
    let Some(held) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    let me = getpid().as_raw_nonzero().get();
    if parent_and_state(pid).is_some_and(|(now, _)| now == parent || now == me) {
        let _ = pidfd_send_signal(held, signal);
    }
}

/// Reaps exited children one after the other; returns false if there are no children at all.
pub(super) fn reap(mut ended: impl FnMut(i32, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid.as_raw_nonzero().get(), status),
            Ok(None) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills every descendant. This process must be a subreaper: orphans become its children, so that no process is left
/// when there are no children.
pub(super) fn kill_all(mut ended: impl FnMut(i32, WaitStatus)) {
    let begun = Instant::now();
    while reap(&mut ended) && begun.elapsed() < KILL_TIMEOUT {
        signal_all(Signal::KILL, |_| false);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Threads of the whole machine: cheap to query, and shows a program that forks rapidly.
pub(super) fn threads_of_machine() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ')
        .nth(3)
        .and_then(|field| field.split('/').nth(1))
        .and_then(|all| all.parse().ok())
        .unwrap_or_default()
}
