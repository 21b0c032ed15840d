//! Registry of running hubs: each holds a lock on its own file in the state directory, which the system releases when
//! the hub exits.

use crate::reloader::ReloadReport;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{
    Flock, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal,
};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const HUB_FILE_PREFIX: &str = "hub-";
const MAX_REPORT_BYTES: u64 = 1 << 20;
const RELOAD_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Content of a hub's file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HubStatus {
    /// Number of reloads.
    reloads: u64,
    last: Option<ReloadReport>,
}

/// File of this hub, locked until dropped. It must not be opened again in this process: closing it would release the
/// lock.
pub struct HubFile {
    path: PathBuf,
    file: File,
    reloads: Mutex<u64>,
}

impl HubFile {
    pub fn create(state: &Path) -> io::Result<Self> {
        let name = crate::bearer_token::generate_token()
            .map_err(|_| io::Error::other("system random number generator unavailable"))?;
        let path = state.join(format!("{HUB_FILE_PREFIX}{}.json", name.get(5..21).unwrap_or(&name)));
        // A file without a lock was left behind by a hub that exited.
        let fresh = path.with_extension("new");
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&fresh)?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let created = Self { path, file, reloads: Mutex::default() };
        created.write(&HubStatus::default())?;
        std::fs::rename(&fresh, &created.path)?;
        Ok(created)
    }

    /// Records the result of a reload.
    pub fn report(&self, report: &ReloadReport) -> io::Result<()> {
        let mut reloads = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        *reloads += 1;
        self.write(&HubStatus { reloads: *reloads, last: Some(report.clone()) })
    }

    /// Not atomic: readers that see a partial file read again.
    fn write(&self, note: &HubStatus) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(&serde_json::to_vec(note)?, 0)
    }
}

impl Drop for HubFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A running hub, as seen from another process.
pub struct RunningHub {
    file: File,
    path: PathBuf,
    pub pid: Pid,
}

/// Returns the running hubs of this state directory. Removes files left by killed hubs.
pub fn running_hubs(state: &Path) -> io::Result<Vec<RunningHub>> {
    let mut hubs = Vec::new();
    let entries = match std::fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(hubs),
        entries => entries?,
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(HUB_FILE_PREFIX) && name.ends_with(".json")) {
            continue;
        }
        let path = entry.path();
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new().read(true).write(true).custom_flags(nofollow).open(&path);
        let Ok(file) = opened else { continue };
        match current_lock(&file)? {
            Some(lock) => hubs.extend(lock.pid.map(|pid| RunningHub { file, path, pid })),
            None => drop(std::fs::remove_file(&path)),
        }
    }
    Ok(hubs)
}

/// Returns the lock on a hub's file and its holder. A process in another container has no PID here.
fn current_lock(file: &File) -> io::Result<Option<Flock>> {
    Ok(fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?)
}

impl RunningHub {
    /// Makes the hub reload its settings and waits for the result.
    pub fn reload(&self) -> io::Result<ReloadReport> {
        let before = self.read_status().map_or(0, |note| note.reloads);
        let process = pidfd_open(self.pid, PidfdFlags::empty())?;
        // The PID belongs to the hub while it holds the lock; from here on the pidfd identifies that process.
        if !self.is_running()? {
            return Err(io::Error::other("the hub has just stopped"));
        }
        pidfd_send_signal(&process, Signal::HUP)?;
        let deadline = Instant::now() + RELOAD_TIMEOUT;
        loop {
            if let Some(HubStatus { last: Some(report), .. }) =
                self.read_status().filter(|note| note.reloads > before)
            {
                return Ok(report);
            }
            if !self.is_running()? {
                return Err(io::Error::other("the hub stopped in the meantime"));
            }
            if Instant::now() > deadline {
                return Err(io::Error::other("the hub does not respond; see its log"));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_running(&self) -> io::Result<bool> {
        Ok(current_lock(&self.file)?.is_some_and(|lock| lock.pid == Some(self.pid)))
    }

    fn read_status(&self) -> Option<HubStatus> {
        let mut text = Vec::new();
        File::open(&self.path).ok()?.take(MAX_REPORT_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
