//! This very program, for what it starts again as a process of its own.

use std::io;
use std::path::{Path, PathBuf};

/// Where the system offers it, the link to the running program: it leads there even after an upgrade has replaced the
/// file.
pub fn this_program() -> io::Result<PathBuf> {
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}
