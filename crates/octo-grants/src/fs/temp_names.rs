//! Names of our own beside a file, and how a name gets another file: atomically wherever the file system can.

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

/// A new file, or a folder that is being copied, before it gets its name.
pub(super) fn new_temp_name() -> Result<OsString, std::io::Error> {
    Ok(format!("{TEMP_PREFIX}{}.tmp", random_hex()?).into())
}

/// What had the name before, until the change is complete.
pub(super) fn new_backup_name() -> Result<OsString, std::io::Error> {
    Ok(format!("{TEMP_PREFIX}{}.old", random_hex()?).into())
}

/// Whether a name is one that this file makes; nothing else is ever swept away.
pub(super) fn is_temp_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(TEMP_PREFIX));
    let digits = digits.and_then(|rest| rest.strip_suffix(".tmp").or_else(|| rest.strip_suffix(".old")));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// File systems without the newer kinds of renaming say so in one of these ways.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Places where a test lets the process die, so that every moment of a change is tried.
#[cfg(test)]
pub(super) mod dying {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// How many moments are left; 0 for no end.
    pub static POINTS_LEFT: AtomicU64 = AtomicU64::new(0);

    pub fn crash_point() {
        if POINTS_LEFT.load(Ordering::SeqCst) > 0 && POINTS_LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// A moment between two steps that the disk can see.
pub(super) fn crash_point() {
    #[cfg(test)]
    dying::crash_point();
}

#[cfg(test)]
thread_local! {
    /// Lets a test see what happens on a file system that can only rename.
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

/// Renames; the new name must be free.
pub(super) fn rename_new(from: impl AsFd, old: &OsStr, to: impl AsFd, new: &OsStr) -> Result<(), Errno> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rename(from, old, to, new, RenameFlags::NOREPLACE) {
        Err(errno) if is_unsupported(errno) => {}
        other => return other,
    }
    // A link is refused when the name is taken, just like that kind of renaming; folders cannot have one.
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

/// Puts `temp` in the place of `name` and tells under which name the old file is now: `temp` itself, or `spare`.
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
    let mut from = File::from(super::resolve::open_entry(folder, name, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let mode = Mode::from_raw_mode(file_fingerprint::of_fd(&from)?.mode());
    let mut to = create(folder, spare, Mode::RUSR | Mode::WUSR)?;
    std::io::copy(&mut from, &mut to).map_err(code)?;
    rustix::fs::fchmod(&to, mode)?;
    rustix::fs::fsync(&to)
}

/// A file that nobody had before, for writing.
pub(super) fn create(folder: impl AsFd, name: &OsStr, mode: Mode) -> Result<File, Errno> {
    crash_point();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, mode).map(File::from)
}

/// Makes the names in a folder durable. A folder that cannot be read, or a file system that cannot do it, is let be.
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
