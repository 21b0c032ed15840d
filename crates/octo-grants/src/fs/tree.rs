//! Folders with everything in them, by descriptors: links are seen, never followed.

use super::batch::lock;
use super::protect::protected;
use super::read::{FolderEntry, entries};
use super::resolve::{Links, Spot, open_entry, refusal};
use super::seen::{self, Seen};
use super::{EntryKind, Fs, RootedPath, names};
use octo_model::ToolError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Every level holds a descriptor.
const DEEPEST: usize = 256;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A folder, before what is in it.
    Enter,
    /// The same folder, after what is in it.
    Leave,
    /// Anything else.
    Entry,
}

pub(super) struct Item<'a> {
    pub event: Event,
    pub folder: BorrowedFd<'a>,
    pub name: &'a OsStr,
    /// Beneath the top of the tree.
    pub path: &'a Path,
    pub seen: Seen,
}

struct Level {
    fd: OwnedFd,
    left: Vec<FolderEntry>,
    name: OsString,
    seen: Seen,
}

impl Level {
    fn open(folder: impl AsFd, name: &OsStr, seen: Seen) -> Result<Self, Errno> {
        let fd = open_entry(folder, name, FOLDER)?;
        Ok(Self { left: entries(&fd, usize::MAX)?, fd, name: name.to_owned(), seen })
    }
}

/// Goes through a folder, depth first, without recursion. `fail` makes an error for a path beneath the top.
pub(super) fn walk<E>(
    folder: impl AsFd,
    name: &OsStr,
    fail: &dyn Fn(&Path, Errno) -> E,
    visit: &mut dyn FnMut(&Item<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut path = PathBuf::new();
    let top = seen::entry(folder.as_fd(), name).and_then(|seen| Level::open(folder, name, seen));
    let mut levels = vec![top.map_err(|errno| fail(&path, errno))?];
    while let Some(level) = levels.last_mut() {
        let Some(entry) = level.left.pop() else {
            let Some(Level { name, seen, .. }) = levels.pop() else { break };
            if let Some(above) = levels.last() {
                visit(&Item {
                    event: Event::Leave,
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
        let seen = match seen::entry(&level.fd, &entry.name) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => {
                path.pop();
                continue;
            }
            Err(errno) => return Err(fail(&path, errno)),
        };
        let event = if seen.kind() == EntryKind::Folder { Event::Enter } else { Event::Entry };
        visit(&Item { event, folder: level.fd.as_fd(), name: &entry.name, path: &path, seen })?;
        if event == Event::Entry {
            path.pop();
            continue;
        }
        let below = Level::open(&level.fd, &entry.name, seen).map_err(|errno| fail(&path, errno))?;
        levels.push(below);
        if levels.len() > DEEPEST {
            return Err(fail(&path, Errno::OVERFLOW));
        }
    }
    Ok(())
}

/// Removes a folder of our own with everything in it, also what was made read-only.
pub(super) fn clear(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    let folder = folder.as_fd();
    let open = |folder: BorrowedFd<'_>, name: &OsStr| {
        let fd = open_entry(folder, name, FOLDER)?;
        rustix::fs::fchmod(&fd, Mode::RWXU)
    };
    open(folder, name)?;
    walk(folder, name, &|_, errno| errno, &mut |item| match item.event {
        Event::Enter => open(item.folder, item.name),
        Event::Leave => rustix::fs::unlinkat(item.folder, item.name, AtFlags::REMOVEDIR),
        Event::Entry => rustix::fs::unlinkat(item.folder, item.name, AtFlags::empty()),
    })?;
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

impl Spot {
    /// Makes an error for something beneath this.
    pub(super) fn fail(&self) -> impl Fn(&Path, Errno) -> ToolError + '_ {
        |path, errno| refusal(&self.place.join(path), errno)
    }
}

impl Fs<super::Write> {
    fn not_protected(&self, spot: &Spot, item: &Item<'_>) -> Result<(), ToolError> {
        match self.workspace().protects(spot.place.root(), &spot.real.join(item.path)) {
            Some(pattern) => Err(protected(&spot.place.join(item.path).display(), pattern)),
            None => Ok(()),
        }
    }

    /// Refuses a folder that could not be removed because something in it is protected.
    pub(super) fn nothing_protected(&self, spot: &Spot) -> Result<(), ToolError> {
        walk(&spot.folder, &spot.leaf, &spot.fail(), &mut |item| self.not_protected(spot, item))
    }

    /// Removes a folder with everything in it, by descriptors; tells how many entries. Links are not followed.
    pub fn remove_tree(&self, place: &RootedPath) -> Result<u64, ToolError> {
        let spot = Spot::new(place, Links::Keep)?;
        self.workspace().guard(&spot)?;
        if spot.must()?.kind() != EntryKind::Folder {
            return Err(ToolError::invalid(format!("`{}` is not a folder.", place.display()))
                .hint("Remove it as a file; a link is removed without what it points to."));
        }
        let _lock = lock(std::iter::once(&spot))?;
        // First a look at all of it, so that nothing is gone when something is protected.
        self.nothing_protected(&spot)?;
        let mut count = 1;
        walk(&spot.folder, &spot.leaf, &spot.fail(), &mut |item| {
            self.not_protected(&spot, item)?;
            let flags = match item.event {
                Event::Enter => return Ok(()),
                Event::Leave => AtFlags::REMOVEDIR,
                Event::Entry => AtFlags::empty(),
            };
            count += 1;
            match rustix::fs::unlinkat(item.folder, item.name, flags) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(errno) => Err(spot.fail()(item.path, errno)),
            }
        })?;
        rustix::fs::unlinkat(&spot.folder, &spot.leaf, AtFlags::REMOVEDIR)
            .map_err(|errno| refusal(place, errno))?;
        names::settle(&spot.folder).map_err(|errno| refusal(place, errno))?;
        Ok(count)
    }
}
