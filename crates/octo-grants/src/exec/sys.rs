//! Operations that need `unsafe`.

#![expect(
    unsafe_code,
    reason = "inherited descriptors, code between fork and exec, namespaces, and registering a terminal"
)]

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tokio::io::unix::AsyncFd;

/// Closes every inherited descriptor except the first three.
pub fn close_inherited_fds() -> io::Result<()> {
    // SAFETY: called at the very beginning of a process that has opened nothing itself, so no value owns any of them.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes over an inherited socket.
pub(super) fn inherited_socket(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: called at the very beginning of a process that has opened nothing itself; whether the descriptor is open is
    // checked next, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(number.max(3)) };
    match rustix::net::sockopt::socket_type(&socket) {
        Ok(_) => Ok(socket),
        Err(errno) => {
            std::mem::forget(socket);
            Err(errno.into())
        }
    }
}

/// Runs `work` in the child between fork and exec. Only for a single-threaded process.
pub(super) fn before_exec(
    command: &mut Command,
    work: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> &mut Command {
    // SAFETY: the launcher has one thread, so no other thread can hold a lock at the fork, and `work` uses only
    // descriptors that it owns.
    unsafe { command.pre_exec(work) }
}

/// Registers a descriptor with the runtime.
pub(super) fn register_async(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open and unchanged until it is dropped, which its new owner does.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Moves this process into a new mount namespace. Only for a single-threaded process.
pub(super) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: only the process's view of mounts changes; no descriptor is shared or closed.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// Argument of `mount_setattr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Maps the file owners of a detached mount tree according to the user namespace.
pub(super) fn idmap_mount(tree: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let namespace = u64::try_from(user_namespace.as_raw_fd()).map_err(io::Error::other)?;
    let attributes =
        MountAttributes { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, user_namespace: namespace };
    // SAFETY: the descriptors are open, the path is NUL-terminated, and the structure matches the kernel's, with its
    // size passed along.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Forks a child in a new user namespace that signals on `says` and exits at the end of `hears`. Only for a
/// single-threaded process.
pub(super) fn fork_user_namespace(mut says: PipeWriter, mut hears: PipeReader) -> io::Result<i32> {
    // SAFETY: the process has one thread, so the child finds no lock held; it exits without running any of its parent's
    // code.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                if unshare_unsafe(UnshareFlags::NEWUSER).is_ok() && says.write_all(&[0]).is_ok() {
                    drop(says);
                    // The other end is open in this process as well, so the parent kills it; see `kill_and_wait`.
                    let _ = hears.read(&mut [0]);
                }
                libc::_exit(0)
            }
            child => Ok(child),
        }
    }
}

/// Kills such a child.
pub(super) fn kill_and_wait(child: i32) {
    // SAFETY: the PID is that of a child that has not been waited for, so it cannot refer to another process.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
