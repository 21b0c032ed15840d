//! Path resolution beneath a root by the kernel. Containment is never decided by comparing strings.

mod path_suggest;

use super::file_fingerprint::{self, FileFingerprint};
use super::open_beneath::{LOOKUP_FLAGS, MAX_ATTEMPTS, open_beneath, open_real, path_of};
use super::root::Root;
use super::{EntryKind, HardLinks, RootedPath, Workspace, temp_names};
use octo_model::{Kind, ToolError};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Real path of a descriptor beneath its root.
fn real_path(place: &RootedPath, fd: BorrowedFd<'_>) -> Result<PathBuf, ToolError> {
    let root = place.root();
    let gone = || {
        ToolError::new(Kind::Conflict, format!("`{}` was moved or removed in the meantime.", place.display()))
            .hint("List the directory again and use the new path.")
    };
    root.check_in_place()?;
    let path = path_of(fd)?;
    let real = path.strip_prefix(&root.path).map_err(|_| gone())?;
    // The kernel appends this suffix, but a real name may end like that as well.
    if path.as_os_str().as_bytes().ends_with(b" (deleted)") && !is_same_entry(root, real, fd) {
        return Err(gone());
    }
    Ok(if real.as_os_str().is_empty() { PathBuf::from(".") } else { real.to_owned() })
}

fn is_same_entry(root: &Root, real: &Path, fd: BorrowedFd<'_>) -> bool {
    let entry = real.file_name().ok_or(Errno::NOENT).and_then(|leaf| {
        let folder = open_real(root.fd(), parent_of(real))?;
        file_fingerprint::of_entry(folder, leaf)
    });
    entry.is_ok_and(|entry| file_fingerprint::of_fd(fd).is_ok_and(|held| held.inode() == entry.inode()))
}

/// A resolved entry, held by an `O_PATH` descriptor.
pub(super) struct FoundEntry {
    pub fd: OwnedFd,
    pub fingerprint: FileFingerprint,
}

impl Root {
    /// Refuses a root that is no longer at its path.
    pub(crate) fn check_in_place(&self) -> Result<(), ToolError> {
        if path_of(self.fd())? == self.path {
            return Ok(());
        }
        Err(ToolError::denied(format!("The root `{}` was moved or removed.", self.name))
            .hint("Move it back, or ask the operator to restart the hub with the root's new path."))
    }

    /// Opens a directory beneath the root by its real path, as a descriptor; a link on the way is an error.
    pub(crate) fn open_folder(&self, real: &Path) -> Result<OwnedFd, Errno> {
        open_real(self.fd(), real)
    }
}

impl RootedPath {
    /// Resolves the path, through links that stay beneath the root.
    pub(super) fn find(&self) -> Result<FoundEntry, ToolError> {
        self.find_with(LOOKUP_FLAGS)
    }

    /// Like [`Self::find`], without following a link at the end.
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

    /// Resolves the path and its real location, spelled like this path. A file that is just being replaced has no
    /// name or a temporary one; then the new file is looked up.
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

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    Follow,
    Keep,
}

/// A name in an open directory: the target of a change.
pub(super) struct TargetEntry {
    pub place: RootedPath,
    pub folder: OwnedFd,
    /// A plain name, never `.` or `..`.
    pub name: OsString,
    /// Path beneath the root, without links.
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

    /// Resolves the directory; the last name stays as written.
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

    /// Target of the link at the end; `None` if it changed concurrently.
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
        let Ok(folder) = open_real(self.place.root.fd(), parent_of(&real)) else { return Ok(None) };
        let same = file_fingerprint::of_entry(&folder, leaf).is_ok_and(|there| there.inode() == seen.inode());
        let leaf = leaf.to_owned();
        Ok(same.then(|| Self { place: self.place.clone(), folder, name: leaf, real_path: real }))
    }

    /// Current metadata of this name, if it exists; links are not followed.
    pub fn stat(&self) -> Result<Option<FileFingerprint>, ToolError> {
        match file_fingerprint::of_entry(&self.folder, &self.name) {
            Ok(seen) => Ok(Some(seen)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno_error(&self.place, errno)),
        }
    }

    /// Like `stat`, but the entry must exist.
    pub fn stat_existing(&self) -> Result<FileFingerprint, ToolError> {
        self.stat()?.ok_or_else(|| errno_error(&self.place, Errno::NOENT))
    }

    /// Returns a function that creates an error for a path beneath this one.
    pub(super) fn error_at(&self) -> impl Fn(&Path, Errno) -> ToolError + '_ {
        |path, errno| errno_error(&self.place.join(path), errno)
    }
}

/// Directory of a real path.
pub(super) fn parent_of(real: &Path) -> &Path {
    real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Directory and last name of a path as written.
pub(super) fn split(place: &RootedPath) -> Result<(&Path, &OsStr), ToolError> {
    match place.relative.components().next_back() {
        Some(Component::Normal(leaf)) => Ok((parent_of(&place.relative), leaf)),
        _ => Err(ToolError::invalid(format!("`{}` does not end in a name.", place.display()))
            .hint("Name the file or directory itself; a root, `.` and `..` cannot be changed.")),
    }
}

impl Workspace {
    /// Refuses anything but a regular file, and hard links if the settings forbid them.
    pub(super) fn check_file(&self, place: &RootedPath, seen: &FileFingerprint) -> Result<(), ToolError> {
        match seen.kind() {
            EntryKind::File if self.hard_links() == HardLinks::Refuse && seen.links() > 1 => {
                Err(ToolError::denied(format!("`{}` has several hard links.", place.display()))
                    .hint("Copy it to a new file, or ask the operator about the setting `files.hard_links`."))
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
    ToolError::new(Kind::Conflict, format!("`{}` changed while it was being accessed.", place.display()))
        .hint("Try again when nothing else is changing it.")
}

fn dangling_link(place: &RootedPath) -> ToolError {
    ToolError::denied(format!("`{}` is a dangling link.", place.display()))
        .hint("Use the file that the link points to, or remove the link first.")
}

/// Maps an errno to an error for the caller.
pub(super) fn errno_error(place: &RootedPath, errno: Errno) -> ToolError {
    let told = place.display();
    match errno {
        Errno::NOENT => path_suggest::not_found(place),
        Errno::XDEV => ToolError::denied(format!("`{told}` leaves the workspace."))
            .hint("Use a path beneath a root; links to the outside are not followed."),
        Errno::LOOP => ToolError::denied(format!(
            "`{told}` passes through too many links, or through one that is not followed."
        ))
        .hint("Use the real file instead of the link."),
        Errno::NOTDIR => {
            ToolError::invalid(format!("A component of the path `{told}` is a file, not a directory."))
                .hint("List the parent directory.")
        }
        Errno::ISDIR => ToolError::invalid(format!("`{told}` is a directory, not a file."))
            .hint("List it, or name a file in it."),
        Errno::ACCESS | Errno::PERM => {
            ToolError::denied(format!("The operating system refuses access to `{told}`."))
                .hint("Ask the operator to change the permissions, or use another file.")
        }
        Errno::ROFS => ToolError::denied(format!("`{told}` is on a file system that is mounted read-only."))
            .hint("Write somewhere else."),
        Errno::EXIST => ToolError::new(Kind::Conflict, format!("`{told}` already exists."))
            .hint("Choose another name, or allow overwriting."),
        Errno::NOTEMPTY => ToolError::new(Kind::Conflict, format!("`{told}` is not empty."))
            .hint("Remove its contents first, or remove the whole directory."),
        Errno::NAMETOOLONG => ToolError::invalid(format!("`{told}` is too long for the file system."))
            .hint("Use shorter names."),
        Errno::INVAL => ToolError::invalid(format!("The file system does not support this on `{told}`."))
            .hint("A directory cannot be moved into itself, and some file systems reject some names."),
        Errno::NOSPC | Errno::DQUOT => ToolError::unavailable("The disk is full.")
            .hint("Free some disk space, or ask the operator for more."),
        Errno::FBIG => {
            ToolError::new(Kind::TooLarge, format!("`{told}` would be larger than the system allows."))
                .hint("Write less at once.")
        }
        Errno::OVERFLOW => ToolError::new(Kind::TooLarge, format!("`{told}` exceeds 256 directory levels."))
            .hint("Start at a subdirectory."),
        Errno::AGAIN => changed_while_reading(place),
        Errno::BUSY => ToolError::denied(format!("`{told}` is mounted or in use by the system."))
            .hint("Use another file or directory."),
        Errno::MFILE | Errno::NFILE => {
            ToolError::unavailable("Too many files are open.").hint("Try again in a moment.")
        }
        errno => {
            ToolError::internal(format!("{} in root {}: {errno}", place.relative.display(), place.root.name))
        }
    }
}

/// Maps an I/O error to an error for the caller.
pub(super) fn io_error(place: &RootedPath, error: std::io::Error) -> ToolError {
    match error.raw_os_error() {
        Some(code) => errno_error(place, Errno::from_raw_os_error(code)),
        None => ToolError::internal(error),
    }
}
