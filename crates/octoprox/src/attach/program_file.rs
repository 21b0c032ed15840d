//! The file of this program: its identity, and a newer version that replaced it.

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program file, by its content at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    pub path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
}

/// An open program file, which is started even if another file gets its name.
pub struct OpenProgram(File);

impl ProgramFile {
    /// Returns the file that this process runs, which may have been replaced since.
    pub fn own() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        // The system marks the name of a file that no longer exists.
        let name = path.to_string_lossy();
        let path = name.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path.clone());
        Self::with_metadata(path, &std::fs::metadata("/proc/self/exe")?)
    }

    /// Returns the file that has this file's name now, if it is another one that can be run.
    pub fn successor(&self) -> Option<Self> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        let is_owned = [0, geteuid().as_raw()].contains(&metadata.uid());
        let mode = metadata.permissions().mode();
        if !metadata.is_file() || !is_owned || mode & 0o111 == 0 || mode & 0o022 != 0 {
            return None;
        }
        Self::with_metadata(self.path.clone(), &metadata).ok().filter(|found| found != self)
    }

    fn with_metadata(path: PathBuf, metadata: &std::fs::Metadata) -> io::Result<Self> {
        Ok(Self {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        })
    }

    /// Opens the file, if it is still the same.
    pub fn open(&self) -> io::Result<OpenProgram> {
        let is_running = self == &Self::own()?;
        let file = File::open(if is_running { Path::new("/proc/self/exe") } else { &self.path })?;
        if Self::with_metadata(self.path.clone(), &file.metadata()?)? != *self {
            return Err(io::Error::other(format!("{} has been replaced", self.path.display())));
        }
        Ok(OpenProgram(file))
    }
}

impl OpenProgram {
    /// Path under which this process can start it, while it is open.
    pub fn start_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_a_successor_if_only_its_owner_can_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let write = |text: &str, mode: u32| {
            let fresh = folder.path().join("fresh");
            std::fs::write(&fresh, text).unwrap();
            std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(mode)).unwrap();
            std::fs::rename(&fresh, &path).unwrap();
        };
        write("one", 0o755);
        let first = ProgramFile::with_metadata(path.clone(), &std::fs::metadata(&path).unwrap()).unwrap();
        assert_eq!(first.successor(), None);
        for (mode, is_successor) in
            [(0o755, true), (0o700, true), (0o775, false), (0o757, false), (0o644, false)]
        {
            write("two", mode);
            assert_eq!(first.successor().is_some(), is_successor, "{mode:o}");
            assert!(first.open().is_err());
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(first.successor(), None);
        let own = ProgramFile::own().unwrap();
        assert!(own.open().unwrap().start_path().starts_with("/proc/self/fd"));
    }
}
