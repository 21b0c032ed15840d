//! Descendants of a process and their memory, from `/proc`.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// A process, distinguishable from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    started: u64,
    parent: u32,
    pub name: String,
}

impl Process {
    /// Reads `/proc`; None if the process is gone or a zombie.
    fn read(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, tail) = stat.rsplit_once(") ")?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split(' ').collect();
        if *fields.first()? == "Z" {
            return None;
        }
        Some(Self { pid, started: fields.get(19)?.parse().ok()?, parent: fields.get(1)?.parse().ok()?, name })
    }

    pub fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Command line of the process.
    pub fn command_line(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default()
    }

    /// Environment of the process; empty if it may not be read.
    pub fn environment(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default()
    }
}

/// All processes of this machine.
pub fn all_processes() -> Vec<Process> {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// All descendants of a process.
pub fn descendants(pid: u32) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for process in all_processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut parents) = (Vec::new(), vec![pid]);
    while let Some(parent) = parents.pop() {
        let own = children.remove(&parent).unwrap_or_default();
        parents.extend(own.iter().map(|process| process.pid));
        found.extend(own);
    }
    found
}

/// Number of zombies among the children of a process.
pub fn zombies(pid: u32) -> usize {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = numbers.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, tail)| tail.starts_with(&format!("Z {pid} "))))
        .count()
}

/// A line of a file in `/proc/PID`, in megabytes.
fn megabytes(pid: u32, file: &str, line: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.split_whitespace().next());
    Ok(value.with_context(|| format!("no {line} in {text}"))?.parse::<f64>()? / 1024.0)
}

/// Resident memory of a process, including shared pages.
pub fn resident_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "status", "VmRSS:")
}

/// Proportional memory of a process: shared pages are divided among their users.
pub fn proportional_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "smaps_rollup", "Pss:")
}

/// The most resident memory of a process since [`reset_peak`].
pub fn peak_resident_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "status", "VmHWM:")
}

/// Measures the peak of a process from now on.
pub fn reset_peak(pid: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
