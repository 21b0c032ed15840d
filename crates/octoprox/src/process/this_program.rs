//! Path of this program, to start it as a child process.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the system's link to the running program, if available: it stays valid after an upgrade replaces the file.
pub fn this_program() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}
