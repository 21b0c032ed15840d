//! Log of a background hub: its standard error, in a file of limited size.

use rustix::fs::fstat;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAX_LOG_BYTES: i64 = 8 << 20;

/// Opens the log to append to it.
pub fn open_log(path: &Path) -> io::Result<File> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(nofollow).open(path)
}

/// Path of the previous log.
pub fn previous_log(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Moves a full log away, and continues in a new one.
pub fn rotate_if_full(path: &Path) -> io::Result<()> {
    if fstat(io::stderr())?.st_size < MAX_LOG_BYTES {
        return Ok(());
    }
    std::fs::rename(path, previous_log(path))?;
    redirect(&open_log(path)?)
}

/// Sends standard output and standard error to the log.
pub fn redirect(log: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdout(log)?;
    Ok(rustix::stdio::dup2_stderr(log)?)
}
