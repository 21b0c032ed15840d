//! Unique identity of a process, also against reuse of its pid.

use std::sync::OnceLock;

/// This process: machine, pid and start time.
pub(super) fn this_process() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let process = std::process::id();
        of(process, start_time(process).unwrap_or_default())
    })
}

pub(super) fn of(process: u32, started: u64) -> String {
    format!("{} {process} {started}", machine())
}

/// False only for a process of this machine that has ended.
pub(super) fn may_be_alive(holder: &str) -> bool {
    let mut parts = holder.rsplitn(3, ' ');
    let (started, process, host) = (parts.next(), parts.next(), parts.next());
    let number = process.and_then(|process| process.parse().ok());
    match (host, number, started.and_then(|started| started.parse::<u64>().ok())) {
        (Some(host), Some(process), Some(started)) if host == machine() => {
            start_time(process) == Some(started)
        }
        _ => true,
    }
}

/// The boot id of the kernel, and the pid namespace: two containers share only the former.
fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{}/{}", boot.trim(), space.display())
    })
}

/// In ticks since boot. A zombie process counts as ended.
fn start_time(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?;
    if state == "Z" || state == "X" { None } else { started.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_others_are_told_apart() {
        assert!(may_be_alive(this_process()));
        assert!(!may_be_alive(&of(std::process::id(), 1)) && !may_be_alive(&of(u32::MAX, 1)));
        assert!(may_be_alive("another machine 1 1") && may_be_alive("") && may_be_alive("x"));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = of(child.id(), start_time(child.id()).unwrap_or(1));
        child.wait().unwrap();
        assert!(!may_be_alive(&gone));
    }
}
