//! Read access to files and directories.

use super::open_beneath::reopen;
use super::resolve::{FoundEntry, errno_error, io_error};
use super::{Fs, RootedPath, file_fingerprint};
use jiff::Timestamp;
use octo_model::{Kind, ToolError};
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

impl EntryKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "directory",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub kind: EntryKind,
    pub size: u64,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    pub modified: Timestamp,
    /// Absent if the file system does not record it.
    pub created: Option<Timestamp>,
    pub links: u64,
}

/// A regular file that is open for reading, with its metadata at that time.
pub struct OpenFile {
    pub file: File,
    pub stat: Stat,
    /// Real path beneath the root, links resolved.
    pub real: RootedPath,
}

/// An open directory.
pub struct Folder {
    pub real: RootedPath,
    fd: OwnedFd,
}

#[derive(Debug, Clone)]
pub struct FolderEntry {
    pub name: OsString,
    pub kind: EntryKind,
}

impl Folder {
    /// The directory, open for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Entries in unspecified order. Names that are not UTF-8 are included.
    pub fn entries(&self) -> Result<Vec<FolderEntry>, ToolError> {
        entries(&self.fd, usize::MAX).map_err(|errno| errno_error(&self.real, errno))
    }

    /// Metadata of one entry, without following a link.
    pub fn stat(&self, name: &OsStr) -> Result<Stat, ToolError> {
        if name.as_bytes().contains(&b'/') {
            return Err(ToolError::invalid("The name of a directory entry cannot contain a slash.")
                .hint("Use a single entry of the directory."));
        }
        let seen = file_fingerprint::of_entry(&self.fd, name)
            .map_err(|errno| errno_error(&self.real.join(name), errno))?;
        Ok(seen.stat())
    }
}

/// Reads a whole directory, or up to `most` entries.
pub(super) fn entries(folder: impl AsFd, most: usize) -> Result<Vec<FolderEntry>, Errno> {
    let mut dir = Dir::read_from(folder)?;
    let mut found = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == most {
            break;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Symlink,
            // Some file systems do not report the type in the listing.
            FileType::Unknown => match file_fingerprint::of_entry(dir.fd()?, name) {
                Ok(seen) => seen.kind(),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            _ => EntryKind::Other,
        };
        found.push(FolderEntry { name: name.to_owned(), kind });
    }
    Ok(found)
}

impl<M: 'static> Fs<M> {
    /// Metadata of a file or directory; links are followed if they stay beneath the root.
    pub fn stat(&self, place: &RootedPath) -> Result<Stat, ToolError> {
        place.find().map(|found| found.fingerprint.stat())
    }

    /// Metadata of a link itself.
    pub fn link_stat(&self, place: &RootedPath) -> Result<Stat, ToolError> {
        place.find_link().map(|found| found.fingerprint.stat())
    }

    /// Target of a link, as stored in it.
    pub fn link_target(&self, place: &RootedPath) -> Result<String, ToolError> {
        let found = place.find_link()?;
        if found.fingerprint.kind() != EntryKind::Symlink {
            return Err(
                ToolError::invalid(format!("`{}` is not a link.", place.display())).hint("Read it instead.")
            );
        }
        let target =
            rustix::fs::readlinkat(&found.fd, c"", Vec::new()).map_err(|errno| errno_error(place, errno))?;
        Ok(String::from_utf8_lossy(target.as_bytes()).into_owned())
    }

    /// Opens a regular file; refuses anything else without blocking.
    pub fn open_file(&self, place: &RootedPath) -> Result<OpenFile, ToolError> {
        let (FoundEntry { fd, fingerprint: seen }, real) = place.find_real()?;
        self.workspace().check_readable(&real, &place.display())?;
        self.workspace().check_file(place, &seen)?;
        let file = File::from(reopen(&fd, OFlags::empty()).map_err(|errno| errno_error(place, errno))?);
        Ok(OpenFile { file, stat: seen.stat(), real })
    }

    /// Reads a whole file of at most `cap` bytes; a larger one is `too_large`.
    pub fn read(&self, place: &RootedPath, cap: u64) -> Result<(Vec<u8>, Stat), ToolError> {
        let OpenFile { file, stat, .. } = self.open_file(place)?;
        let too_large = |size: u64| {
            ToolError::new(
                Kind::TooLarge,
                format!("`{}` has {size} bytes; the limit for one read is {cap}.", place.display()),
            )
            .hint("Read a range of lines or bytes, or search in it.")
        };
        if stat.size > cap {
            return Err(too_large(stat.size));
        }
        // One byte more than allowed, to detect a file that has grown since.
        let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or_default());
        file.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| io_error(place, error))?;
        let size = bytes.len() as u64;
        if size > cap { Err(too_large(size)) } else { Ok((bytes, Stat { size, ..stat })) }
    }

    pub fn open_folder(&self, place: &RootedPath) -> Result<Folder, ToolError> {
        let (FoundEntry { fd, fingerprint: seen }, real) = place.find_real()?;
        if seen.kind() != EntryKind::Folder {
            return Err(ToolError::invalid(format!("`{}` is not a directory.", place.display()))
                .hint("Read it as a file, or use its parent directory."));
        }
        self.workspace().check_readable(&real, &place.display())?;
        let fd = reopen(&fd, OFlags::DIRECTORY).map_err(|errno| errno_error(place, errno))?;
        Ok(Folder { real, fd })
    }
}
