//! Directory trees, traversed by descriptors; links are never followed.

use super::file_fingerprint::{self, FileFingerprint};
use super::name_locks::lock_names;
use super::open_beneath::open_entry;
use super::protected_paths::protected_error;
use super::read_files::{FolderEntry, entries};
use super::resolve::{LinkPolicy, TargetEntry, errno_error};
use super::{EntryKind, Fs, RootedPath, temp_names};
use octo_model::ToolError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Each level holds a descriptor.
const MAX_DEPTH: usize = 256;

const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeEvent {
    /// A directory, before its contents.
    Enter,
    /// The same directory, after its contents.
    Leave,
    /// Anything else.
    Entry,
}

pub(super) struct TreeItem<'a> {
    pub event: TreeEvent,
    pub folder: BorrowedFd<'a>,
    pub name: &'a OsStr,
    /// Relative to the top of the tree.
    pub path: &'a Path,
    pub seen: FileFingerprint,
}

struct Level {
    fd: OwnedFd,
    left: Vec<FolderEntry>,
    name: OsString,
    seen: FileFingerprint,
}

impl Level {
    fn open(folder: impl AsFd, name: &OsStr, seen: FileFingerprint) -> Result<Self, Errno> {
        let fd = open_entry(folder, name, FOLDER_FLAGS)?;
        Ok(Self { left: entries(&fd, usize::MAX)?, fd, name: name.to_owned(), seen })
    }
}

/// Traverses a directory depth first, without recursion. `fail` makes an error for a path relative to the top.
pub(super) fn walk_tree<E>(
    folder: impl AsFd,
    name: &OsStr,
    fail: &dyn Fn(&Path, Errno) -> E,
    visit: &mut dyn FnMut(&TreeItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut path = PathBuf::new();
    let top =
        file_fingerprint::of_entry(folder.as_fd(), name).and_then(|seen| Level::open(folder, name, seen));
    let mut levels = vec![top.map_err(|errno| fail(&path, errno))?];
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.left.pop() else {
            let Some(Level { name, seen, .. }) = levels.pop() else { break };
            if let Some(above) = levels.last() {
                visit(&TreeItem {
                    event: TreeEvent::Leave,
                    folder: above.fd.as_fd(),
                    name: &name,
                    path: &path,
                    seen,
                })?;
                path.pop();
            }
            continue;
        };
        path.push(&entry.name);
        let seen = match file_fingerprint::of_entry(&level.fd, &entry.name) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => {
                path.pop();
                continue;
            }
            Err(errno) => return Err(fail(&path, errno)),
        };
        let event = if seen.kind() == EntryKind::Folder { TreeEvent::Enter } else { TreeEvent::Entry };
        visit(&TreeItem { event, folder: level.fd.as_fd(), name: &entry.name, path: &path, seen })?;
        if event == TreeEvent::Entry {
            path.pop();
            continue;
        }
        let below = Level::open(&level.fd, &entry.name, seen).map_err(|errno| fail(&path, errno))?;
        levels.push(below);
        if levels.len() > MAX_DEPTH {
            return Err(fail(&path, Errno::OVERFLOW));
        }
    }
    Ok(())
}

/// Removes one of our own directories with its contents, including read-only ones.
pub(super) fn remove_forced(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    let folder = folder.as_fd();
    let open = |folder: BorrowedFd<'_>, name: &OsStr| {
        let fd = open_entry(folder, name, FOLDER_FLAGS)?;
        rustix::fs::fchmod(&fd, Mode::RWXU)
    };
    open(folder, name)?;
    walk_tree(folder, name, &|_, errno| errno, &mut |item| match item.event {
        TreeEvent::Enter => open(item.folder, item.name),
        TreeEvent::Leave => rustix::fs::unlinkat(item.folder, item.name, AtFlags::REMOVEDIR),
        TreeEvent::Entry => rustix::fs::unlinkat(item.folder, item.name, AtFlags::empty()),
    })?;
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

impl Fs<super::Write> {
    fn refuse_protected_item(&self, spot: &TargetEntry, item: &TreeItem<'_>) -> Result<(), ToolError> {
        match self.workspace().protection(spot.place.root(), &spot.real_path.join(item.path)) {
            Some(protection) => Err(protected_error(&spot.place.join(item.path).display(), &protection)),
            None => Ok(()),
        }
    }

    /// Refuses a directory that contains something protected.
    pub(super) fn refuse_protected(&self, spot: &TargetEntry) -> Result<(), ToolError> {
        walk_tree(&spot.folder, &spot.name, &spot.error_at(), &mut |item| {
            self.refuse_protected_item(spot, item)
        })
    }

    /// Removes a directory tree by descriptors; returns the number of entries. Links are not followed.
    pub fn remove_tree(&self, place: &RootedPath) -> Result<u64, ToolError> {
        let spot = TargetEntry::new(place, LinkPolicy::Keep)?;
        self.workspace().check_writable(&spot)?;
        if spot.stat_existing()?.kind() != EntryKind::Folder {
            return Err(ToolError::invalid(format!("`{}` is not a directory.", place.display()))
                .hint("Remove it as a file; the target of a link is not removed."));
        }
        let _lock = lock_names(std::iter::once(&spot))?;
        // Checks the whole tree first, so that nothing is removed if something is protected.
        self.refuse_protected(&spot)?;
        let mut count = 1;
        walk_tree(&spot.folder, &spot.name, &spot.error_at(), &mut |item| {
            self.refuse_protected_item(&spot, item)?;
            let flags = match item.event {
                TreeEvent::Enter => return Ok(()),
                TreeEvent::Leave => AtFlags::REMOVEDIR,
                TreeEvent::Entry => AtFlags::empty(),
            };
            count += 1;
            match rustix::fs::unlinkat(item.folder, item.name, flags) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => Err(spot.error_at()(item.path, errno)),
            }
        })?;
        rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::REMOVEDIR)
            .map_err(|errno| errno_error(place, errno))?;
        temp_names::sync_folder(&spot.folder).map_err(|errno| errno_error(place, errno))?;
        Ok(count)
    }
}
