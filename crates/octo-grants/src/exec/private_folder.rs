//! Private directory for one program; nothing else on the machine writes to it.

use super::Exec;
use octo_model::ToolError;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Removed when dropped. Passed to a program with [`super::Job::writable`].
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl Exec {
    /// Creates a directory in the state directory. Blocks while doing so.
    pub fn private_folder(&self) -> Result<PrivateFolder, ToolError> {
        let path = self.scratch_path()?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map(|()| PrivateFolder(path)).map_err(ToolError::internal)
    }
}

impl PrivateFolder {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Names come from the hub, never from a caller.
    pub fn make_folder(&self, name: &str) -> Result<(), ToolError> {
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700).create(self.0.join(name)).map_err(ToolError::internal)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ToolError> {
        std::fs::write(self.0.join(name), bytes).map_err(ToolError::internal)
    }

    pub fn link(&self, name: &str, target: &Path) -> Result<(), ToolError> {
        std::os::unix::fs::symlink(target, self.0.join(name)).map_err(ToolError::internal)
    }

    pub fn is_link(&self, name: &str) -> bool {
        self.0.join(name).is_symlink()
    }

    /// Reads a regular file that a program may have left, up to `most` bytes; `None` if there is none.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = rustix::fs::open(self.0.join(name), flags, rustix::fs::Mode::empty());
        let file = match opened {
            Ok(file) => std::fs::File::from(file),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(None),
            Err(error) => return Err(ToolError::internal(io::Error::from(error))),
        };
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(ToolError::internal)?;
        Ok(Some(bytes))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
