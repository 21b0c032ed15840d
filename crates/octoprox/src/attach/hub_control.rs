//! The running background hubs of this user: their state, their logs, and how to stop them.

use super::hub_client::HubStream;
use super::hub_protocol::{Hello, HubReport, Purpose};
use super::hub_socket::{HubFiles, RuntimeDir};
use crate::settings::Environment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A hub lets calls finish and stops its servers; one that does not react is killed.
const STOP_TIMEOUT: Timespec = Timespec { tv_sec: 25, tv_nsec: 0 };
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// A running hub.
pub struct BackgroundHub {
    pub files: HubFiles,
    pub pid: i32,
    process: OwnedFd,
    /// Absent if it does not respond.
    pub report: Option<HubReport>,
}

/// Returns the files of all hubs of this user, also of those that have ended.
pub fn hub_files() -> io::Result<Vec<HubFiles>> {
    RuntimeDir::open(Environment::current().variable("XDG_RUNTIME_DIR"))?.all()
}

/// Returns the running hubs.
pub fn background_hubs() -> io::Result<Vec<BackgroundHub>> {
    Ok(hub_files()?.into_iter().filter_map(|files| BackgroundHub::find(files).ok()).collect())
}

impl BackgroundHub {
    fn find(files: HubFiles) -> io::Result<Self> {
        let stream = files.connect()?;
        let pid = socket_peercred(&stream)?.pid;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let report = match HubStream::open(stream, &Hello::new(Purpose::Status), STATUS_TIMEOUT) {
            Ok((_, reply)) => reply.status,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => None,
            Err(error) => return Err(error),
        };
        Ok(Self { files, pid: pid.as_raw_nonzero().get(), process, report })
    }

    /// Stops the hub and waits for its end.
    pub fn stop(&self) -> io::Result<()> {
        for signal in [Signal::TERM, Signal::KILL] {
            pidfd_send_signal(&self.process, signal)?;
            if self.has_ended() {
                return Ok(());
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn has_ended(&self) -> bool {
        let waited = poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&STOP_TIMEOUT));
        waited.is_ok_and(|count| count > 0)
    }
}
