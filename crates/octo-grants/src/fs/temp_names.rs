//! Temporary names beside a file, and replacing a file: atomically where the file system supports it.

use super::file_fingerprint;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

const TEMP_PREFIX: &str = ".octoprox-";

/// Sixteen random hexadecimal digits.
pub(super) fn random_hex() -> Result<String, std::io::Error> {
    crate::random::hex::<8>()
}

/// Name of a new file, or of a directory that is being copied, before it gets its final name.
pub(super) fn new_temp_name() -> Result<OsString, std::io::Error> {
    Ok(format!("{TEMP_PREFIX}{}.tmp", random_hex()?).into())
}

/// Name of the replaced file until the change is complete.
pub(super) fn new_backup_name() -> Result<OsString, std::io::Error> {
    Ok(format!("{TEMP_PREFIX}{}.old", random_hex()?).into())
}

/// Whether a name was made by this module; recovery removes nothing else.
pub(super) fn is_temp_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(TEMP_PREFIX));
    let digits = digits.and_then(|rest| rest.strip_suffix(".tmp").or_else(|| rest.strip_suffix(".old")));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Errors of file systems without `renameat2` flags.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Points at which a test kills the process, to cover every moment of a change.
#[cfg(test)]
pub(super) mod dying {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Number of points left; 0 to disable.
    pub static POINTS_LEFT: AtomicU64 = AtomicU64::new(0);

    pub fn crash_point() {
        if POINTS_LEFT.load(Ordering::SeqCst) > 0 && POINTS_LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// A moment between two steps that affect the disk.
pub(super) fn crash_point() {
    #[cfg(test)]
    dying::crash_point();
}

#[cfg(test)]
thread_local! {
    /// Simulates a file system that supports only plain renames.
    pub(super) static FORCE_PLAIN_RENAME: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn rename(
    from: BorrowedFd<'_>,
    old: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
    how: RenameFlags,
) -> Result<(), Errno> {
    crash_point();
    #[cfg(test)]
    if FORCE_PLAIN_RENAME.get() {
        return Err(Errno::INVAL);
    }
    rustix::fs::renameat_with(from, old, to, new, how)
}

/// Renames; the new name must not exist.
pub(super) fn rename_new(from: impl AsFd, old: &OsStr, to: impl AsFd, new: &OsStr) -> Result<(), Errno> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rename(from, old, to, new, RenameFlags::NOREPLACE) {
        Err(errno) if is_unsupported(errno) => {}
        other => return other,
    }
    // Like `RENAME_NOREPLACE`, link(2) fails if the name exists; directories cannot be linked.
    match rustix::fs::linkat(from, old, to, new, AtFlags::empty()) {
        Ok(()) => {
            crash_point();
            rustix::fs::unlinkat(from, old, AtFlags::empty())
        }
        Err(Errno::EXIST) => Err(Errno::EXIST),
        Err(_) => match file_fingerprint::of_entry(to, new) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
            Err(errno) => Err(errno),
        },
    }
}

/// Replaces `name` with `temp` and returns the new name of the old file: `temp` itself, or `spare`.
pub(super) fn exchange<'a>(
    folder: impl AsFd,
    temp: &'a OsStr,
    name: &OsStr,
    spare: &'a OsStr,
) -> Result<&'a OsStr, Errno> {
    let folder = folder.as_fd();
    match rename(folder, temp, folder, name, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(temp),
        Err(errno) if is_unsupported(errno) => {}
        Err(errno) => return Err(errno),
    }
    if rustix::fs::linkat(folder, name, folder, spare, AtFlags::empty()).is_err() {
        copy_content(folder, name, spare)?;
    }
    crash_point();
    rustix::fs::renameat(folder, temp, folder, name)?;
    Ok(spare)
}

fn copy_content(folder: BorrowedFd<'_>, name: &OsStr, spare: &OsStr) -> Result<(), Errno> {
    let code = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut from =
        File::from(super::open_beneath::open_entry(folder, name, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let mode = Mode::from_raw_mode(file_fingerprint::of_fd(&from)?.mode());
    let mut to = create(folder, spare, Mode::RUSR | Mode::WUSR)?;
    std::io::copy(&mut from, &mut to).map_err(code)?;
    rustix::fs::fchmod(&to, mode)?;
    rustix::fs::fsync(&to)
}

/// Creates a new file for writing.
pub(super) fn create(folder: impl AsFd, name: &OsStr, mode: Mode) -> Result<File, Errno> {
    crash_point();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, mode).map(File::from)
}

/// Makes the names in a directory durable. Unreadable directories and unsupported file systems are ignored.
pub(super) fn sync_folder(folder: impl AsFd) -> Result<(), Errno> {
    crash_point();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, c".", flags, Mode::empty()).and_then(rustix::fs::fsync) {
        Err(Errno::ACCESS | Errno::INVAL) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        assert!(is_temp_name(&new_temp_name().unwrap()) && is_temp_name(&new_backup_name().unwrap()));
        for name in [
            ".octoprox-1.tmp",
            ".octoprox-0123456789abcdeg.tmp",
            "x.octoprox-0123456789abcdef.tmp",
            ".octoprox-",
        ] {
            assert!(!is_temp_name(OsStr::new(name)), "{name}");
        }
    }
}
