//! What runs below a process, and what it takes, as the kernel tells it.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    started: u64,
    parent: u32,
    pub name: String,
}

impl Process {
    /// What the kernel knows of it; nothing when it is gone, or only waits to be forgotten.
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

    /// The words that it was started with.
    pub fn command_line(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default()
    }

    /// The variables that it was started with; none where it may not be looked into.
    pub fn environment(&self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default()
    }
}

/// Every process of this machine.
pub fn all_processes() -> Vec<Process> {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Every process that descends from this one.
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

/// Zombies among the children of a process: what has ended and was not asked how.
pub fn zombies(pid: u32) -> usize {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = numbers.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, tail)| tail.starts_with(&format!("Z {pid} "))))
        .count()
}

/// A line of a file below `/proc/PID`, in megabytes.
fn megabytes(pid: u32, file: &str, line: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.split_whitespace().next());
    Ok(value.with_context(|| format!("no {line} in {text}"))?.parse::<f64>()? / 1024.0)
}

/// Memory that is there for a process, shared pages included.
pub fn resident_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "status", "VmRSS:")
}

/// The same, with shared pages divided among those that share them.
pub fn proportional_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "smaps_rollup", "Pss:")
}
