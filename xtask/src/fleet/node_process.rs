//! A process of a node, in the namespace of the node. It can be killed, suspended and started again.

use crate::fleet::fake_clock;
use crate::fleet::private_network::namespace;
use crate::fleet::system_commands::ip;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Joins a control group, if there is one, and becomes the program.
const START_SCRIPT: &str = "test -z \"$0\" || echo $$ >\"$0\"; exec ip netns exec \"$@\"";
/// `/proc` counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// How to start it.
pub struct ProcessStart {
    /// Name of the node.
    pub node: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub variables: Vec<(String, String)>,
    pub directory: PathBuf,
    pub log: PathBuf,
    /// A process joins a control group by writing its id to this file.
    pub members_file: Option<PathBuf>,
}

/// Killed when dropped.
pub struct NodeProcess {
    pub start: ProcessStart,
    child: Option<Child>,
}

impl NodeProcess {
    pub fn start(start: ProcessStart) -> Result<Self> {
        let mut process = Self { start, child: None };
        process.start_again()?;
        Ok(process)
    }

    pub fn node(&self) -> &str {
        &self.start.node
    }

    pub fn start_again(&mut self) -> Result<()> {
        let ProcessStart { node, program, args, variables, directory, log, members_file } = &self.start;
        fs::create_dir_all(directory)?;
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new("sh");
        command.args(["-c", START_SCRIPT]);
        command.arg(members_file.as_deref().unwrap_or(std::path::Path::new("")));
        command.arg(namespace(node)).arg(program).args(args);
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
        command.current_dir(directory).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn().with_context(|| format!("cannot start {node}"))?);
        Ok(())
    }

    pub fn pid(&self) -> Result<Pid> {
        let child = self.child.as_ref().with_context(|| format!("{} does not run", self.node()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.context("not a process")
    }

    /// Sends a signal to the process, all of its descendants, and what they have left in the namespace of the node.
    pub fn signal_all(&self, signal: Signal) -> Result<()> {
        let mut pids = process_tree(self.pid()?.as_raw_nonzero().get())?;
        let in_namespace = ip(&format!("netns pids {}", namespace(self.node())))?;
        pids.extend(in_namespace.lines().filter_map(|pid| pid.parse::<i32>().ok()));
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            // It may have ended in the meantime.
            let _ = kill_process(pid, signal);
        }
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let ended = super::system_commands::wait_until(&self.start.node, EXIT_TIMEOUT, || {
            child.try_wait().is_ok_and(|status| status.is_some())
        });
        if ended.is_err() {
            child.kill()?;
            child.wait()?;
        }
        fake_clock::remove_files(child.id());
        ended.map(drop)
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// Processor time of the process and its descendants, those that have ended included.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let tree = process_tree(self.pid()?.as_raw_nonzero().get())?;
        Ok(tree.into_iter().filter_map(|pid| ProcessStat::read(pid).ok()).map(|stat| stat.cpu_seconds).sum())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
            fake_clock::remove_files(child.id());
        }
    }
}

struct ProcessStat {
    parent: i32,
    cpu_seconds: f64,
}

impl ProcessStat {
    fn read(pid: i32) -> Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat"))?).context("an unknown format of /proc")
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in brackets may contain spaces.
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Time in user and kernel mode, then both of the children that were waited for.
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u32>().ok());
        let ticks: u32 = ticks.sum();
        Some(Self { parent: fields.get(1)?.parse().ok()?, cpu_seconds: f64::from(ticks) / TICKS_PER_SECOND })
    }
}

/// Processor time of this process.
pub fn own_cpu_seconds() -> Result<f64> {
    Ok(ProcessStat::read(i32::try_from(std::process::id())?)?.cpu_seconds)
}

/// Direct and indirect children of a process, after the process itself.
fn process_tree(root: i32) -> Result<Vec<i32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Ok(stat) = ProcessStat::read(pid) {
            parents.push((pid, stat.parent));
        }
    }
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_process_with_a_strange_name() {
        let text = "42 (a ) b) S 7 42 42 0 -1 4194304 100 0 0 0 150 50 25 25 20 0 1 0 100 0 0";
        let stat = ProcessStat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.cpu_seconds), (7, 2.5));
    }
}
