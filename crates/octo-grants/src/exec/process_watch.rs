//! Waits for the end of a process that this one did not start.

use super::sys::register_async;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// One process, also if its number is used again later.
pub struct ProcessWatch(AsyncFd<OwnedFd>);

impl ProcessWatch {
    /// Needs a runtime.
    pub fn new(pid: Pid) -> io::Result<Self> {
        register_async(pidfd_open(pid, PidfdFlags::NONBLOCK)?).map(Self)
    }

    pub fn has_ended(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
        Ok(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        let _ = self.0.readable().await;
    }
}
