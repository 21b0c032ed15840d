//! The processes that descend from this one, as `/proc` tells.

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal, wait,
};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// A process that is stuck in the kernel cannot be ended; it is not waited for longer than this.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// All of them, parents before children, each with its parent.
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

/// Of a process; the name, which comes first, may hold anything.
fn parent_and_state(pid: i32) -> Option<(i32, char)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let mut fields = std::str::from_utf8(after).ok()?.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// Sends a signal to every descendant, except to those for whom `spare` says so.
pub(super) fn signal_all(signal: Signal, spare: impl Fn(i32) -> bool) {
    for (pid, parent) in descendants() {
        if !spare(pid) {
            signal_child(pid, parent, signal);
        }
    }
}

/// A number may be another process by now, so the process is held and then looked at once more.
fn signal_child(pid: i32, parent: i32, signal: Signal) {
    let Some(held) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    let me = getpid().as_raw_nonzero().get();
    if parent_and_state(pid).is_some_and(|(now, _)| now == parent || now == me) {
        let _ = pidfd_send_signal(held, signal);
    }
}

/// Takes note of children that have ended, one after the other; false when there are no children at all.
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

/// Ends every descendant. This process must be a subreaper: whoever loses its parent becomes a child of ours, so
/// that nobody is left when there are no children.
pub(super) fn kill_all(mut ended: impl FnMut(i32, WaitStatus)) {
    let begun = Instant::now();
    while reap(&mut ended) && begun.elapsed() < KILL_TIMEOUT {
        signal_all(Signal::KILL, |_| false);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Threads of the whole machine: cheap to ask, and a program that multiplies shows in it.
pub(super) fn threads_of_machine() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ')
        .nth(3)
        .and_then(|field| field.split('/').nth(1))
        .and_then(|all| all.parse().ok())
        .unwrap_or_default()
}
