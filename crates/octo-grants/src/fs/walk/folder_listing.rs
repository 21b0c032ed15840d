//! Directories by descriptor: opened from their parent, never through a link, and read at once.

use crate::fs::{EntryKind, file_fingerprint};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of directories that a walk keeps open for their children; others are reopened by path.
const MAX_OPEN_FOLDERS: usize = 64;

/// Buffer size per `getdents64` call.
pub(super) const READ_BUFFER_BYTES: usize = 32 * 1024;

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open directory, counted while it lives.
pub(super) struct FolderHandle {
    fd: OwnedFd,
    open: Arc<AtomicUsize>,
}

impl FolderHandle {
    pub fn new(fd: OwnedFd, open: &Arc<AtomicUsize>) -> Arc<Self> {
        open.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { fd, open: Arc::clone(open) })
    }

    /// Opens a subdirectory. Fails if it was replaced by a link.
    pub fn enter(&self, name: &[u8]) -> Result<Arc<Self>, Errno> {
        let fd = rustix::fs::openat(&self.fd, name, FOLDER_FLAGS, Mode::empty())?;
        Ok(Self::new(fd, &self.open))
    }

    /// Like [`Self::enter`] over several components, none of which may be a link.
    pub fn descend(&self, path: &[u8]) -> Result<Arc<Self>, Errno> {
        Ok(Self::new(descend(self.fd.as_fd(), path)?, &self.open))
    }

    /// Whether children may keep it open.
    pub fn has_room(&self) -> bool {
        self.open.load(Ordering::Relaxed) <= MAX_OPEN_FOLDERS
    }
}

impl Drop for FolderHandle {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsFd for FolderHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a directory several levels below, following no links.
pub(super) fn descend(from: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(from, path, FOLDER_FLAGS, Mode::empty(), RESOLVE_STRICT)
}

/// Beneath, and without following any link.
pub(super) const RESOLVE_STRICT: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Entries of a directory: all names in one buffer, each NUL-terminated.
#[derive(Default)]
pub(super) struct FolderListing {
    names: Vec<u8>,
    entries: Vec<(usize, FileType)>,
    pub ignore_files: IgnoreFiles,
}

/// Which of the files that define ignore rules a directory contains.
#[derive(Default, Clone, Copy)]
pub(super) struct IgnoreFiles {
    pub gitignore: bool,
    pub ignore: bool,
    pub git: bool,
}

impl FolderListing {
    /// Reads a directory. On an error, the entries before it are returned.
    pub fn read(folder: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> (Self, Result<(), Errno>) {
        let mut listing = Self::default();
        let mut entries = RawDir::new(folder, buffer);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => listing.add(entry.file_name(), entry.file_type()),
                Err(errno) => return (listing, Err(errno)),
            }
        }
        (listing, Ok(()))
    }

    fn add(&mut self, name: &CStr, kind: FileType) {
        match name.to_bytes() {
            b"." | b".." => return,
            b".gitignore" => self.ignore_files.gitignore = true,
            b".ignore" => self.ignore_files.ignore = true,
            b".git" => self.ignore_files.git = true,
            _ => {}
        }
        self.entries.push((self.names.len(), kind));
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, index: usize) -> Option<(&CStr, FileType)> {
        let (start, kind) = *self.entries.get(index)?;
        let name = CStr::from_bytes_until_nul(self.names.get(start..)?).ok()?;
        Some((name, kind))
    }
}

/// The type from the listing or, if the file system does not report it, from stat.
pub(super) fn kind_of(folder: BorrowedFd<'_>, name: &CStr, listed: FileType) -> Option<EntryKind> {
    Some(match listed {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Symlink,
        FileType::Unknown => file_fingerprint::of_entry(folder, name).ok()?.kind(),
        _ => EntryKind::Other,
    })
}

/// Opens an entry for reading, without blocking and never through a link. The caller must check its type.
pub(super) fn open_file(folder: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(folder, name, flags, Mode::empty(), RESOLVE_STRICT)
}
