//! Opening entries beneath a descriptor with `openat2`.

use octo_model::ToolError;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const RESOLVE_BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
pub(super) const LOOKUP_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Maximum attempts to resolve a path while something beneath it is being renamed.
pub(super) const MAX_ATTEMPTS: usize = 256;

/// Opens a path beneath a directory. The kernel returns `EAGAIN` if a `..` may have raced with a rename.
pub(super) fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    how: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_ATTEMPTS {
        match rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), RESOLVE_BENEATH | how)
        {
            Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens a directory entry without following links.
pub(super) fn open_entry(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    open_beneath(folder.as_fd(), Path::new(name), flags | OFlags::NOFOLLOW, how)
}

/// Opens a directory of a root by its real path; a link on the way is an error.
pub(super) fn open_real(root: BorrowedFd<'_>, real: &Path) -> Result<OwnedFd, Errno> {
    open_beneath(root, real, LOOKUP_FLAGS | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
}

/// Current path of a descriptor according to the kernel.
pub(crate) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, ToolError> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())
        .map_err(|errno| ToolError::internal(format!("reading a descriptor's path in /proc: {errno}")))?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// Real path of a directory outside the roots.
pub(super) fn canonical_folder(path: &Path) -> Result<PathBuf, ToolError> {
    let fd = rustix::fs::open(path, LOOKUP_FLAGS | OFlags::DIRECTORY, Mode::empty())
        .map_err(ToolError::internal)?;
    path_of(fd.as_fd())
}

/// Opens a resolved entry for reading: the same file, even if its name now refers to another.
pub(super) fn reopen(found: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", found.as_fd().as_raw_fd());
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}
