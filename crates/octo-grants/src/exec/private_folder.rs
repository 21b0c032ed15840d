//! A folder of the hub's own that one program is shown: nothing else on the machine writes to it meanwhile.

use super::Exec;
use octo_model::ToolError;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Gone when it is dropped. Handed to a program with [`super::Job::writable`].
#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl Exec {
    /// A new folder in the hub's own data. Blocks for as long as making a folder takes.
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

    /// Names are the hub's own, never a caller's.
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

    /// A regular file that a program may have left, up to so many bytes; nothing when there is none.
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
