//! Entry of a walk, with access through its directory's descriptor.

use super::folder_listing::open_file;
use crate::fs::file_fingerprint::{self, FileFingerprint};
use crate::fs::{EntryKind, HardLinks, RootedPath, Stat};
use octo_model::ToolError;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// One entry of the walk.
pub struct WalkEntry<'a> {
    /// Relative to the start of the walk; empty if that is a file.
    pub path: &'a Path,
    pub kind: EntryKind,
    /// 1 for the direct entries of the directory; 0 if the walk started at a file.
    pub depth: usize,
    /// Matched by an ignore rule, and visited only because of `tell_ignored`.
    pub ignored: bool,
    pub(super) at: EntryLocation<'a>,
    pub(super) hard_links: HardLinks,
}

/// Where to find an entry on demand.
#[derive(Clone, Copy)]
pub(super) enum EntryLocation<'a> {
    Child(BorrowedFd<'a>, &'a CStr),
    /// The start of the walk.
    Start(&'a RootedPath),
}

impl WalkEntry<'_> {
    /// Opens a regular file through its directory's descriptor, never through a link.
    pub fn open(&self) -> Result<(File, Stat), ToolError> {
        let fd = match self.at {
            EntryLocation::Child(folder, name) => open_file(folder, name),
            EntryLocation::Start(place) => place.lookup(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY),
        };
        let fd = fd.map_err(unreadable)?;
        let seen = file_fingerprint::of_fd(&fd).map_err(unreadable)?;
        if seen.kind() != EntryKind::File || (self.hard_links == HardLinks::Refuse && seen.links() > 1) {
            return Err(unreadable(Errno::ACCESS));
        }
        Ok((File::from(fd), seen.stat()))
    }

    /// Metadata of the entry itself; a link is not followed.
    pub fn stat(&self) -> Result<Stat, ToolError> {
        match self.at {
            EntryLocation::Child(folder, name) => file_fingerprint::of_entry(folder, name)
                .as_ref()
                .map(FileFingerprint::stat)
                .map_err(|e| unreadable(*e)),
            EntryLocation::Start(place) => place.find().map(|found| found.fingerprint.stat()),
        }
    }

    /// Target of a link, as stored in it.
    pub fn link_target(&self) -> Result<String, ToolError> {
        let EntryLocation::Child(folder, name) = self.at else { return Err(unreadable(Errno::INVAL)) };
        let target = rustix::fs::readlinkat(folder, name, Vec::new()).map_err(unreadable)?;
        Ok(target.to_string_lossy().into_owned())
    }
}

/// Entries appear, vanish and change during a walk; callers skip those.
fn unreadable(errno: Errno) -> ToolError {
    ToolError::not_found("This entry cannot be read.")
        .hint("It may have changed in the meantime, or is not a regular file.")
        .detail(errno)
}
