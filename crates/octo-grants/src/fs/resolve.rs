//! Asks the kernel where a path leads, beneath a root. Nothing here compares strings to decide what is inside.

use super::file_fingerprint::{self, FileFingerprint};
use super::{EntryKind, HardLinks, Root, RootedPath, Workspace, path_suggest, temp_names};
use octo_model::{Kind, ToolError};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

const RESOLVE_BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
const LOOKUP_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// How often a path is tried again when something beneath it is being renamed.
const MAX_ATTEMPTS: usize = 256;

/// Opens beneath a folder. The kernel answers `EAGAIN` when it cannot tell whether a `..` raced with a rename.
fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    how: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_ATTEMPTS {
        match rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), RESOLVE_BENEATH | how)
        {
            Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens an entry of a folder without following it anywhere.
pub(super) fn open_entry(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    open_beneath(folder.as_fd(), Path::new(name), flags | OFlags::NOFOLLOW, how)
}

/// A folder of a root by its real path: a link on the way is an error.
pub(super) fn open_real(root: &Root, real: &Path) -> Result<OwnedFd, Errno> {
    open_beneath(root.fd(), real, LOOKUP_FLAGS | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
}

/// The path of a descriptor, as the kernel knows it now.
pub(crate) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, ToolError> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())
        .map_err(|errno| ToolError::internal(format!("reading a descriptor's path in /proc: {errno}")))?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// The real path of a folder that is no part of a root.
pub(super) fn canonical_folder(path: &Path) -> Result<PathBuf, ToolError> {
    let fd = rustix::fs::open(path, LOOKUP_FLAGS | OFlags::DIRECTORY, Mode::empty())
        .map_err(ToolError::internal)?;
    path_of(fd.as_fd())
}

/// Where a descriptor really is beneath its root.
fn real_path(place: &RootedPath, fd: BorrowedFd<'_>) -> Result<PathBuf, ToolError> {
    let root = place.root();
    let gone = || {
        ToolError::new(Kind::Conflict, format!("`{}` was moved or removed meanwhile.", place.display()))
            .hint("List the folder again and use the new path.")
    };
    root.check_in_place()?;
    let path = path_of(fd)?;
    let real = path.strip_prefix(&root.path).map_err(|_| gone())?;
    // The kernel says so at the end of the path, but a name may end like that as well.
    if path.as_os_str().as_bytes().ends_with(b" (deleted)") && !is_same_entry(root, real, fd) {
        return Err(gone());
    }
    Ok(if real.as_os_str().is_empty() { PathBuf::from(".") } else { real.to_owned() })
}

fn is_same_entry(root: &Root, real: &Path, fd: BorrowedFd<'_>) -> bool {
    let entry = real.file_name().ok_or(Errno::NOENT).and_then(|leaf| {
        let folder = open_real(root, parent_of(real))?;
        file_fingerprint::of_entry(folder, leaf)
    });
    entry.is_ok_and(|entry| file_fingerprint::of_fd(fd).is_ok_and(|held| held.inode() == entry.inode()))
}

/// An entry that was found, held by a descriptor that has no effect on it.
pub(super) struct FoundEntry {
    pub fd: OwnedFd,
    pub fingerprint: FileFingerprint,
}

impl Root {
    /// Refuses a root that does not have its path any more.
    pub(crate) fn check_in_place(&self) -> Result<(), ToolError> {
        if path_of(self.fd())? == self.path {
            return Ok(());
        }
        Err(ToolError::denied(format!("The root `{}` was moved or removed.", self.name))
            .hint("Move it back, or ask the operator to restart the hub with the root's new path."))
    }

    /// A folder beneath it by its real path, held by a descriptor; a link on the way is an error.
    pub(crate) fn open_folder(&self, real: &Path) -> Result<OwnedFd, Errno> {
        open_real(self, real)
    }
}

impl RootedPath {
    /// Finds what is there, through links that stay beneath the root.
    pub(super) fn find(&self) -> Result<FoundEntry, ToolError> {
        self.find_with(LOOKUP_FLAGS)
    }

    /// The same without following a link at the end.
    pub(super) fn find_link(&self) -> Result<FoundEntry, ToolError> {
        self.find_with(LOOKUP_FLAGS | OFlags::NOFOLLOW)
    }

    fn find_with(&self, flags: OFlags) -> Result<FoundEntry, ToolError> {
        let fd = self.lookup(flags).map_err(|errno| errno_error(self, errno))?;
        let seen = file_fingerprint::of_fd(&fd).map_err(|errno| errno_error(self, errno))?;
        Ok(FoundEntry { fd, fingerprint: seen })
    }

    pub(super) fn lookup(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_beneath(self.root.fd(), &self.relative, flags, ResolveFlags::empty())
    }

    /// Finds what is there and where it really is, spelled like this place. A file that is just being replaced has no
    /// name any more, or one of ours; then the new one is looked for.
    pub(super) fn find_real(&self) -> Result<(FoundEntry, RootedPath), ToolError> {
        for _ in 0..MAX_ATTEMPTS {
            let found = self.find()?;
            match real_path(self, found.fd.as_fd()) {
                Ok(path) if !path.file_name().is_some_and(temp_names::is_temp_name) => {
                    return Ok((found, self.at(&path)));
                }
                Err(error) if error.kind != Kind::Conflict => return Err(error),
                Ok(_) | Err(_) => std::thread::yield_now(),
            }
        }
        Err(changed_while_reading(self))
    }
}

/// Opens for reading what a lookup has found; the very same file, whatever its name means by now.
pub(super) fn reopen(found: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", found.as_fd().as_raw_fd());
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    Follow,
    Keep,
}

/// A name in an open folder: what a change is made to.
pub(super) struct TargetEntry {
    pub place: RootedPath,
    pub folder: OwnedFd,
    /// A plain name, never `.` or `..`.
    pub name: OsString,
    /// The path beneath the root, without links.
    pub real_path: PathBuf,
}

impl TargetEntry {
    pub fn new(place: &RootedPath, links: LinkPolicy) -> Result<Self, ToolError> {
        for _ in 0..MAX_ATTEMPTS {
            let spot = Self::unresolved(place)?;
            if links == LinkPolicy::Keep || spot.stat()?.is_none_or(|seen| seen.kind() != EntryKind::Symlink)
            {
                return Ok(spot);
            }
            if let Some(spot) = spot.resolve_link()? {
                return Ok(spot);
            }
        }
        Err(changed_while_reading(place))
    }

    /// The folder resolved, the last name as written.
    fn unresolved(place: &RootedPath) -> Result<Self, ToolError> {
        let (parent, leaf) = split(place)?;
        let folder = place
            .at(parent)
            .lookup(LOOKUP_FLAGS | OFlags::DIRECTORY)
            .map_err(|errno| errno_error(place, errno))?;
        Self::in_folder(place, folder, leaf)
    }

    pub fn in_folder(place: &RootedPath, folder: OwnedFd, leaf: &OsStr) -> Result<Self, ToolError> {
        let real = real_path(place, folder.as_fd())?;
        let real = if real == Path::new(".") { PathBuf::from(leaf) } else { real.join(leaf) };
        Ok(Self { place: place.clone(), folder, name: leaf.to_owned(), real_path: real })
    }

    /// Where the link at the end leads; nothing when it changed while we looked.
    fn resolve_link(&self) -> Result<Option<Self>, ToolError> {
        let target = match self.place.lookup(LOOKUP_FLAGS) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if self.stat()?.is_some() => return Err(dangling_link(&self.place)),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno_error(&self.place, errno)),
        };
        let seen = file_fingerprint::of_fd(&target).map_err(|errno| errno_error(&self.place, errno))?;
        let Ok(real) = real_path(&self.place, target.as_fd()) else { return Ok(None) };
        let Some(leaf) = real.file_name() else {
            return Err(errno_error(&self.place, Errno::ISDIR));
        };
        if temp_names::is_temp_name(leaf) {
            return Ok(None);
        }
        let Ok(folder) = open_real(&self.place.root, parent_of(&real)) else { return Ok(None) };
        let same = file_fingerprint::of_entry(&folder, leaf).is_ok_and(|there| there.inode() == seen.inode());
        let leaf = leaf.to_owned();
        Ok(same.then(|| Self { place: self.place.clone(), folder, name: leaf, real_path: real }))
    }

    /// What has this name now, if anything; links are not followed.
    pub fn stat(&self) -> Result<Option<FileFingerprint>, ToolError> {
        match file_fingerprint::of_entry(&self.folder, &self.name) {
            Ok(seen) => Ok(Some(seen)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno_error(&self.place, errno)),
        }
    }

    /// Like `stat`, where something must be there.
    pub fn stat_existing(&self) -> Result<FileFingerprint, ToolError> {
        self.stat()?.ok_or_else(|| errno_error(&self.place, Errno::NOENT))
    }
}

/// The folder of a real path.
pub(super) fn parent_of(real: &Path) -> &Path {
    real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Folder and last name of a path as written.
pub(super) fn split(place: &RootedPath) -> Result<(&Path, &OsStr), ToolError> {
    match place.relative.components().next_back() {
        Some(Component::Normal(leaf)) => Ok((parent_of(&place.relative), leaf)),
        _ => Err(ToolError::invalid(format!("`{}` does not end in a name.", place.display()))
            .hint("Name the file or folder itself; a root, `.` and `..` cannot be changed.")),
    }
}

impl Workspace {
    /// Refuses what is not a regular file, and hard links where the settings say so.
    pub(super) fn check_file(&self, place: &RootedPath, seen: &FileFingerprint) -> Result<(), ToolError> {
        match seen.kind() {
            EntryKind::File if self.hard_links() == HardLinks::Refuse && seen.links() > 1 => {
                Err(ToolError::denied(format!("`{}` has several names (hard links).", place.display())).hint(
                    "Copy it to a file of its own, or ask the operator about the setting `files.hard_links`.",
                ))
            }
            EntryKind::File => Ok(()),
            EntryKind::Folder => Err(errno_error(place, Errno::ISDIR)),
            EntryKind::Symlink => Err(changed_while_reading(place)),
            EntryKind::Other => {
                Err(ToolError::denied(format!("`{}` is not a regular file.", place.display()))
                    .hint("FIFOs, sockets and devices are never opened; name a regular file."))
            }
        }
    }
}

pub(super) fn changed_while_reading(place: &RootedPath) -> ToolError {
    ToolError::new(Kind::Conflict, format!("`{}` changed while it was looked at.", place.display()))
        .hint("Try again when nothing else is changing it.")
}

fn dangling_link(place: &RootedPath) -> ToolError {
    ToolError::denied(format!("`{}` is a link to something that does not exist.", place.display()))
        .hint("Name the file that the link points to, or remove the link first.")
}

/// What an errno means for a place, said to the caller.
pub(super) fn errno_error(place: &RootedPath, errno: Errno) -> ToolError {
    let told = place.display();
    match errno {
        Errno::NOENT => path_suggest::not_found(place),
        Errno::XDEV => ToolError::denied(format!("`{told}` leaves the workspace."))
            .hint("Use a path that stays beneath its root; links to the outside are not followed."),
        Errno::LOOP => ToolError::denied(format!(
            "`{told}` goes through too many links, or through one that is not followed."
        ))
        .hint("Name the real file instead of the link."),
        Errno::NOTDIR => {
            ToolError::invalid(format!("Something on the way to `{told}` is a file, not a folder."))
                .hint("List the folder above to see what is there.")
        }
        Errno::ISDIR => ToolError::invalid(format!("`{told}` is a folder, not a file."))
            .hint("List it, or name a file in it."),
        Errno::ACCESS | Errno::PERM => {
            ToolError::denied(format!("The operating system refuses access to `{told}`."))
                .hint("Ask the operator to change the permissions, or use another file.")
        }
        Errno::ROFS => ToolError::denied(format!("`{told}` is on a file system that is mounted read-only."))
            .hint("Write somewhere else."),
        Errno::EXIST => ToolError::new(Kind::Conflict, format!("`{told}` exists already."))
            .hint("Choose another name, or say that it may be overwritten."),
        Errno::NOTEMPTY => ToolError::new(Kind::Conflict, format!("`{told}` is not empty."))
            .hint("Remove what is in it first, or remove the whole folder."),
        Errno::NAMETOOLONG => ToolError::invalid(format!("`{told}` is too long for the file system."))
            .hint("Use shorter names."),
        Errno::INVAL => ToolError::invalid(format!("The file system cannot do this with `{told}`."))
            .hint("A folder cannot be moved into itself, and some file systems refuse some names."),
        Errno::NOSPC | Errno::DQUOT => ToolError::unavailable("The disk is full.")
            .hint("Remove something, or ask the operator for room."),
        Errno::FBIG => {
            ToolError::new(Kind::TooLarge, format!("`{told}` would be larger than the system allows."))
                .hint("Write less at once.")
        }
        Errno::OVERFLOW => ToolError::new(Kind::TooLarge, format!("`{told}` goes deeper than 256 folders."))
            .hint("Work on a folder further down."),
        Errno::AGAIN => changed_while_reading(place),
        Errno::BUSY => ToolError::denied(format!("`{told}` is mounted or in use by the system."))
            .hint("Use another file or folder."),
        Errno::MFILE | Errno::NFILE => {
            ToolError::unavailable("Too many files are open.").hint("Try again in a moment.")
        }
        errno => {
            ToolError::internal(format!("{} in root {}: {errno}", place.relative.display(), place.root.name))
        }
    }
}

/// The same for what the standard library reports.
pub(super) fn io_error(place: &RootedPath, error: std::io::Error) -> ToolError {
    match error.raw_os_error() {
        Some(code) => errno_error(place, Errno::from_raw_os_error(code)),
        None => ToolError::internal(error),
    }
}
