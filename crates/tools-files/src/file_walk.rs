//! Shared code of the tools that walk directories.

pub mod glob_pattern;
pub mod top_n;
pub mod walk_progress;

use octo_toolkit::RootedPath;
use octo_toolkit::fs::Walked;
use std::path::Path;

/// Path of an entry beneath a place, in the caller's spelling.
pub fn display_path(place: &RootedPath, path: &Path) -> String {
    if path.as_os_str().is_empty() { place.display() } else { place.join(path).display() }
}

/// Notes about what a walk could not read.
pub fn unread_notes(place: &RootedPath, walked: &Walked) -> Vec<String> {
    if walked.unread == 0 {
        return Vec::new();
    }
    let named: Vec<String> =
        walked.unread_paths.iter().take(5).map(|path| display_path(place, path)).collect();
    let more = if walked.unread > named.len() { ", …" } else { "" };
    vec![format!("Directories that could not be read: {} ({}{more}).", walked.unread, named.join(", "))]
}

#[cfg(test)]
mod tests;
