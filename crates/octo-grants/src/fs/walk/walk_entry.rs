//! One entry of a walk, and what can be asked of it through its folder's descriptor.

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
    /// Relative to where the walk began; empty when it began at a file.
    pub path: &'a Path,
    pub kind: EntryKind,
    /// 1 is what the folder itself holds; 0 when the walk began at a file.
    pub depth: usize,
    /// Left out by the rules, and here only because the options asked to be told.
    pub ignored: bool,
    pub(super) at: EntryLocation<'a>,
    pub(super) hard_links: HardLinks,
}

/// Where an entry is found when it is wanted.
#[derive(Clone, Copy)]
pub(super) enum EntryLocation<'a> {
    Child(BorrowedFd<'a>, &'a CStr),
    /// Where the walk began.
    Start(&'a RootedPath),
}

impl WalkEntry<'_> {
    /// Opens a regular file through its folder's descriptor, never through a link.
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

    /// About the entry itself; a link is not followed.
    pub fn stat(&self) -> Result<Stat, ToolError> {
        match self.at {
            EntryLocation::Child(folder, name) => file_fingerprint::of_entry(folder, name)
                .as_ref()
                .map(FileFingerprint::stat)
                .map_err(|e| unreadable(*e)),
            EntryLocation::Start(place) => place.find().map(|found| found.fingerprint.stat()),
        }
    }

    /// Where a link points to, as written in it.
    pub fn link_target(&self) -> Result<String, ToolError> {
        let EntryLocation::Child(folder, name) = self.at else { return Err(unreadable(Errno::INVAL)) };
        let target = rustix::fs::readlinkat(folder, name, Vec::new()).map_err(unreadable)?;
        Ok(target.to_string_lossy().into_owned())
    }
}

/// Entries come, go and change while a walk is under way; callers pass over such.
fn unreadable(errno: Errno) -> ToolError {
    ToolError::not_found("This entry cannot be read.")
        .hint("It may have been changed meanwhile, or it is no regular file.")
        .detail(errno)
}
