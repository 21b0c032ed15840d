//! Metadata of a directory entry, as reported by the kernel.

use super::{EntryKind, Stat};
use jiff::Timestamp;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// State of an entry at one moment; sufficient to recognize it and to detect a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileFingerprint(Statx);

/// Metadata of a descriptor, including `O_PATH` descriptors.
pub(super) fn of_fd(fd: impl AsFd) -> Result<FileFingerprint, Errno> {
    statx(fd, c"", AtFlags::EMPTY_PATH)
}

/// Metadata of a directory entry, without following a link.
pub(super) fn of_entry(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<FileFingerprint, Errno> {
    statx(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn statx(fd: impl AsFd, name: impl rustix::path::Arg, flags: AtFlags) -> Result<FileFingerprint, Errno> {
    rustix::fs::statx(fd, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME).map(FileFingerprint)
}

impl FileFingerprint {
    pub fn kind(&self) -> EntryKind {
        match FileType::from_raw_mode(u32::from(self.0.stx_mode)) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Other,
        }
    }

    pub fn mode(&self) -> u32 {
        u32::from(self.0.stx_mode) & 0o7777
    }

    pub fn size(&self) -> u64 {
        self.0.stx_size
    }

    pub fn links(&self) -> u64 {
        u64::from(self.0.stx_nlink)
    }

    pub fn owner(&self) -> (u32, u32) {
        (self.0.stx_uid, self.0.stx_gid)
    }

    /// Identity of a file or directory while it exists.
    pub fn inode(&self) -> (u32, u32, u64) {
        (self.0.stx_dev_major, self.0.stx_dev_minor, self.0.stx_ino)
    }

    /// Identity across a restart, when the inode number may have been reused.
    pub fn persistent_id(&self) -> String {
        let born = self.0.stx_btime;
        format!("{}.{}.{}", self.0.stx_ino, born.tv_sec, born.tv_nsec)
    }

    /// Whether it is the same file with the same content, as far as its times show.
    pub fn is_unchanged(&self, later: &Self) -> bool {
        let face =
            |seen: &Self| (seen.inode(), seen.0.stx_size, seen.0.stx_mtime.tv_sec, seen.0.stx_mtime.tv_nsec);
        self.kind() == later.kind() && face(self) == face(later)
    }

    pub fn stat(&self) -> Stat {
        let known = StatxFlags::from_bits_retain(self.0.stx_mask);
        Stat {
            kind: self.kind(),
            size: self.size(),
            mode: self.mode(),
            modified: timestamp(self.0.stx_mtime),
            created: known.contains(StatxFlags::BTIME).then(|| timestamp(self.0.stx_btime)),
            links: self.links(),
        }
    }
}

/// A time outside the calendar's range becomes the epoch.
fn timestamp(at: StatxTimestamp) -> Timestamp {
    i32::try_from(at.tv_nsec).ok().and_then(|nanos| Timestamp::new(at.tv_sec, nanos).ok()).unwrap_or_default()
}
