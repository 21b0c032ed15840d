//! Directories in which package managers resolve packages.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// An empty directory that only the user can write, removed when dropped.
pub struct ScratchFolder(pub PathBuf);

impl ScratchFolder {
    pub fn create(state: &Path) -> std::io::Result<Self> {
        let name = crate::bearer_token::generate_token().map_err(std::io::Error::other)?;
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        let folder = state.join(format!("resolve-{name}"));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
