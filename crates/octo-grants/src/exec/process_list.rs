//! Lists processes of the hub's user. Arguments may hold secrets, so they are read only for descendants of processes
//! that the caller has started.

use super::{Exec, unprivileged};
use jiff::{SignedDuration, Timestamp};
use octo_model::ToolError;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Maximum number of listed processes.
const MAX_PROCESSES: usize = 100;

/// Maximum bytes of a command line.
const MAX_COMMAND_LEN: usize = 500;

/// USER_HZ: the kernel reports process times in hundredths of a second, whatever its own clock rate.
const TICKS_PER_SECOND: u64 = 100;

/// Information about a process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessInfo {
    pub pid: u32,
    /// Kernel name: the first 15 bytes of the program's name.
    pub name: String,
    /// Such as `running`, `sleeping` or `zombie`.
    pub state: &'static str,
    pub started: Option<Timestamp>,
    /// CPU time in seconds.
    pub cpu: f64,
    pub memory_bytes: u64,
    /// With arguments; only for descendants of the caller's own processes.
    pub command: Option<String>,
}

/// Which processes to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFilter {
    pub name: Option<String>,
    pub pid: Option<u32>,
    /// Roots of the caller's process trees. Without a name or PID only these trees are listed.
    pub own: Vec<u32>,
}

/// A line of `/proc/N/stat`.
struct ProcStat {
    pid: u32,
    name: String,
    state: char,
    parent: u32,
    ticks: u64,
    start_ticks: u64,
}

impl Exec {
    /// Processes of the hub's user, sorted by PID.
    pub async fn processes(&self, filter: ProcessFilter) -> Result<Vec<ProcessInfo>, ToolError> {
        tokio::task::spawn_blocking(move || list_processes(&filter)).await.map_err(ToolError::internal)
    }
}

fn list_processes(filter: &ProcessFilter) -> Vec<ProcessInfo> {
    let all: Vec<ProcStat> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(read_stat)
        .collect();
    let parents: HashMap<u32, u32> = all.iter().map(|entry| (entry.pid, entry.parent)).collect();
    let boot = boot_time();
    let mut found: Vec<ProcessInfo> = all
        .iter()
        .filter(|entry| {
            let asked = filter.name.is_some() || filter.pid.is_some();
            filter.pid.is_none_or(|pid| pid == entry.pid)
                && filter.name.as_deref().is_none_or(|name| is_same_name(name, &entry.name))
                && (asked || is_beneath(entry.pid, &filter.own, &parents))
        })
        .filter(|entry| {
            fs::metadata(format!("/proc/{}", entry.pid))
                .is_ok_and(|meta| unprivileged::is_own_user(meta.uid()))
        })
        .map(|entry| entry.info(boot, is_beneath(entry.pid, &filter.own, &parents)))
        .collect();
    found.sort_by_key(|process| process.pid);
    found.truncate(MAX_PROCESSES);
    found
}

/// The kernel truncates names.
fn is_same_name(wanted: &str, name: &str) -> bool {
    let cut = wanted.get(..wanted.floor_char_boundary(15)).unwrap_or(wanted);
    cut.eq_ignore_ascii_case(name)
}

fn is_beneath(pid: u32, roots: &[u32], parents: &HashMap<u32, u32>) -> bool {
    let mut at = pid;
    // The listing is not atomic, so it may contain a cycle.
    for _ in 0..parents.len() {
        if roots.contains(&at) {
            return true;
        }
        match parents.get(&at) {
            Some(parent) if *parent > 1 => at = *parent,
            _ => return false,
        }
    }
    false
}

fn read_stat(pid: u32) -> Option<ProcStat> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name may contain anything, even parentheses.
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Some(ProcStat {
        pid,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        ticks: number(11)? + number(12)?,
        start_ticks: number(19)?,
    })
}

/// Boot time of the machine, in seconds since 1970.
fn boot_time() -> Option<i64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

impl ProcStat {
    fn info(&self, boot: Option<i64>, own: bool) -> ProcessInfo {
        let started = boot.and_then(|boot| Timestamp::from_second(boot).ok()).and_then(|boot| {
            let since =
                SignedDuration::from_millis(i64::try_from(self.start_ticks * 1_000 / TICKS_PER_SECOND).ok()?);
            boot.checked_add(since).ok()
        });
        ProcessInfo {
            pid: self.pid,
            name: self.name.clone(),
            state: state_name(self.state),
            started,
            cpu: self.ticks as f64 / TICKS_PER_SECOND as f64,
            memory_bytes: resident_bytes(self.pid),
            command: if own { command_line(self.pid) } else { None },
        }
    }
}

fn state_name(state: char) -> &'static str {
    match state {
        'R' => "running",
        'S' | 'I' => "sleeping",
        'D' => "waiting for a device",
        'T' | 't' => "stopped",
        'Z' => "zombie",
        'X' | 'x' => "dead",
        _ => "unknown",
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        resident.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Not for the sandbox, whose arguments are paths of the machine.
fn command_line(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    let words: Vec<&str> = line.split('\0').filter(|word| !word.is_empty()).collect();
    let program = words.first()?.rsplit('/').next()?;
    if program == "bwrap" {
        return None;
    }
    let mut text = words.join(" ");
    let end = text.floor_char_boundary(MAX_COMMAND_LEN);
    text.truncate(end);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_and_its_arguments_are_told_only_to_its_owner() {
        let me = std::process::id();
        let mut filter = ProcessFilter { pid: Some(me), ..ProcessFilter::default() };
        let [seen] = list_processes(&filter).try_into().unwrap();
        assert_eq!((seen.pid, seen.command.clone()), (me, None));
        assert!(seen.memory_bytes > 0 && seen.started.is_some());
        filter.own = vec![me];
        let [own] = list_processes(&filter).try_into().unwrap();
        assert!(own.command.is_some());
        filter.name = Some(seen.name);
        assert_eq!(list_processes(&filter).len(), 1);
        filter.name = Some("no-such-program".to_owned());
        assert_eq!(list_processes(&filter), []);
    }

    #[test]
    fn without_a_name_only_own_trees_are_told() {
        assert_eq!(list_processes(&ProcessFilter::default()), []);
        let me = std::process::id();
        let own = list_processes(&ProcessFilter { own: vec![me], ..ProcessFilter::default() });
        assert!(own.iter().any(|process| process.pid == me));
    }

    #[test]
    fn names_are_compared_as_the_kernel_cuts_them() {
        let rows = [
            ("node", "node", true),
            ("Node", "node", true),
            ("node", "nodejs", false),
            ("chromium-browser", "chromium-browse", true),
            ("", "node", false),
        ];
        for (wanted, name, fits) in rows {
            assert_eq!(is_same_name(wanted, name), fits, "{wanted} {name}");
        }
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let parents = HashMap::from([(5, 6), (6, 5)]);
        assert!(!is_beneath(5, &[9], &parents));
        assert!(is_beneath(5, &[6], &parents));
    }
}
