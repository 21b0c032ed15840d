//! The three things that cannot be said without `unsafe`.

#![expect(
    unsafe_code,
    reason = "closing what nobody here owns, work between fork and exec, and a terminal for the runtime"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tokio::io::unix::AsyncFd;

/// Closes every descriptor but the first three, whoever left it open.
pub(super) fn close_others() -> io::Result<()> {
    // SAFETY: called at the very beginning of a process that has opened nothing itself, so no value owns any of them.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Does `work` in the new process before it becomes the program. Only for a process with a single thread.
pub(super) fn before_exec(
    command: &mut Command,
    work: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> &mut Command {
    // SAFETY: the launcher has one thread, so no lock can be held by another one at the fork, and all that `work` does
    // with descriptors concerns those that it owns.
    unsafe { command.pre_exec(work) }
}

/// Lets the runtime wait for a descriptor.
pub(super) fn awaited(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and the same until it is dropped, which its new owner does.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
