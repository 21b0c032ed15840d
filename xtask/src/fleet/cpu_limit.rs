//! Limits of processor time by control groups, version 1 or 2.

use crate::fleet::private_network::NAME_PREFIX;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PERIOD_US: u32 = 100_000;
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);

enum Version {
    One,
    Two,
}

/// A control group, removed when dropped. Its processes must have ended by then.
pub struct CpuLimit {
    folder: PathBuf,
}

fn hierarchy() -> Result<(Version, PathBuf)> {
    let unified = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpu") {
        return Ok((Version::Two, unified.join(NAME_PREFIX)));
    }
    let folder = unified.join("cpu");
    if folder.join("cpu.cfs_quota_us").is_file() || folder.join("tasks").is_file() {
        return Ok((Version::One, folder.join(NAME_PREFIX)));
    }
    bail!("no control group limits processor time on this machine")
}

impl CpuLimit {
    /// Limits the processes that join to this many cores.
    pub fn create(name: &str, cores: f64) -> Result<Self> {
        let (version, parent) = hierarchy()?;
        let quota = (f64::from(PERIOD_US) * cores).round();
        fs::create_dir_all(&parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let folder = parent.join(name);
        if matches!(version, Version::Two) {
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")?;
            fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        fs::create_dir_all(&folder)?;
        match version {
            Version::One => {
                fs::write(folder.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), format!("{quota}"))?;
            }
            Version::Two => fs::write(folder.join("cpu.max"), format!("{quota} {PERIOD_US}"))?,
        }
        Ok(Self { folder })
    }

    /// A process joins by writing its id to this file.
    pub fn members_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Periods so far, and those of them in which the limit was reached.
    pub fn periods(&self) -> Result<[u64; 2]> {
        let text = fs::read_to_string(self.folder.join("cpu.stat"))?;
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().parse().ok()).unwrap_or_default()
        };
        Ok([number("nr_periods "), number("nr_throttled ")])
    }
}

impl Drop for CpuLimit {
    fn drop(&mut self) {
        let removed = super::system_commands::wait_until("the control group", REMOVE_TIMEOUT, || {
            fs::remove_dir(&self.folder).is_ok() || !self.folder.exists()
        });
        if let Err(error) = removed {
            eprintln!("fleet: {error:#}");
        }
        // Fails until the last one is gone.
        let _ = self.folder.parent().map(fs::remove_dir);
    }
}

/// Removes the control groups of a fleet that is gone. Returns whether there were any.
pub fn remove_all() -> Result<bool> {
    let Ok((_, parent)) = hierarchy() else { return Ok(false) };
    if !parent.exists() {
        return Ok(false);
    }
    for entry in fs::read_dir(&parent)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir(entry.path())?;
        }
    }
    fs::remove_dir(&parent)?;
    Ok(true)
}
