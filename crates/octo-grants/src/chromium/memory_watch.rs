//! Memory limit for pages: a renderer above the limit is killed, which its page sees as a crash. Kernel limits do not
//! work here, because Chromium reserves far more address space than it uses.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Check interval.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct MemoryWatch(JoinHandle<()>);

impl MemoryWatch {
    /// Watches all renderers that descend from a process; each may use `most` bytes.
    pub fn start(ancestor: u32, most: u64) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                let _ = tokio::task::spawn_blocking(move || kill_oversized(ancestor, most)).await;
            }
        }))
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn kill_oversized(ancestor: u32, most: u64) {
    for pid in renderers(ancestor).into_iter().filter(|pid| memory_bytes(*pid) > most) {
        let Some(held) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
        let Ok(held) = pidfd_open(held, PidfdFlags::empty()) else { continue };
        // The PID may have been reused before the process was opened.
        if is_renderer(pid) && memory_bytes(pid) > most {
            tracing::warn!(
                pid,
                bytes = memory_bytes(pid),
                "page exceeded its memory limit; its process was killed"
            );
            let _ = pidfd_send_signal(held, Signal::KILL);
        }
    }
}

fn renderers(ancestor: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, parent_pid(pid)?))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![ancestor];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    all.retain(|pid| is_renderer(*pid));
    all
}

/// Field after the state; the name before it may contain blanks and parentheses.
fn parent_pid(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn is_renderer(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| matches!(byte, 0 | b' ')).any(|word| word == b"--type=renderer")
}

/// Bytes that only this process uses, in memory or swapped out.
fn memory_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    ["RssAnon:", "RssShmem:", "VmSwap:"].into_iter().filter_map(kilobytes).sum::<u64>() * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_renderers_below_the_ancestor_are_seen() {
        let own = std::process::id();
        assert!(memory_bytes(own) > 100_000 && parent_pid(own).is_some());
        assert!(!is_renderer(own));
        // A shell with the arguments of a renderer.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line", "--type=renderer"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        while renderers(own) != [child.id()] {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", renderers(own));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(renderers(child.id()) == [child.id()] && !renderers(1).is_empty());
        kill_oversized(own, u64::MAX);
        assert!(child.try_wait().unwrap().is_none());
        kill_oversized(own, 1);
        assert!(!child.wait().unwrap().success());
    }
}
