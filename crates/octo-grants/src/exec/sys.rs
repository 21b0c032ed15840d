//! The things that cannot be said without `unsafe`.

#![expect(
    unsafe_code,
    reason = "closing what nobody here owns, work between fork and exec, namespaces, and a terminal for the runtime"
)]

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tokio::io::unix::AsyncFd;

/// Closes every descriptor but the first three, whoever left it open.
pub(super) fn close_inherited_fds() -> io::Result<()> {
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
pub(super) fn register_async(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and the same until it is dropped, which its new owner does.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Gives this process a mount namespace of its own. Only for a process with a single thread.
pub(super) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: only what the process sees of mounts changes; no descriptor is shared or closed.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// What `mount_setattr` reads.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Maps the owners of files in a tree of mounts that is attached nowhere as the user namespace says.
pub(super) fn idmap_mount(tree: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let namespace = u64::try_from(user_namespace.as_raw_fd()).map_err(io::Error::other)?;
    let attributes =
        MountAttributes { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, user_namespace: namespace };
    // SAFETY: the descriptors are open, the path is a text with an end, and the structure is what the kernel expects, as long as
    // it is told.
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

/// A child in a new user namespace that says so, and ends when it hears the end of `hears`. Only for a process with a single
/// thread.
pub(super) fn fork_user_namespace(mut says: PipeWriter, mut hears: PipeReader) -> io::Result<i32> {
    // SAFETY: the process has one thread, so that the child finds no lock held; it ends without running anything of its parent's.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                if unshare_unsafe(UnshareFlags::NEWUSER).is_ok() && says.write_all(&[0]).is_ok() {
                    drop(says);
                    // The other end is open in this process as well, so the parent ends it; see `kill_and_wait`.
                    let _ = hears.read(&mut [0]);
                }
                libc::_exit(0)
            }
            child => Ok(child),
        }
    }
}

/// Ends such a child.
pub(super) fn kill_and_wait(child: i32) {
    // SAFETY: the number is that of a child that was not waited for, so it means no other process.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
