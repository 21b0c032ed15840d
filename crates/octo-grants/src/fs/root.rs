//! The roots of a workspace.

use super::open_beneath::path_of;
use octo_model::ToolError;
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// A root as configured in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSpec {
    pub name: String,
    pub path: PathBuf,
    /// Alternative path of the same directory (the host's path of a mounted directory), accepted as well.
    pub alias_path: Option<PathBuf>,
    pub writable: bool,
}

/// An open root.
pub struct Root {
    pub name: String,
    /// Real path.
    pub path: PathBuf,
    pub alias_path: Option<PathBuf>,
    pub writable: bool,
    /// Path as configured in the settings.
    pub(super) configured_path: PathBuf,
    fd: OwnedFd,
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Root({}: {})", self.name, self.path.display())
    }
}

impl Root {
    /// Descriptor from which everything beneath the root is resolved. Opened with `O_PATH`: for
    /// lookup, not for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn open(spec: RootSpec) -> Result<Self, ToolError> {
        if !is_valid_root_name(&spec.name) {
            return Err(ToolError::invalid(format!("Invalid root name: `{}`.", spec.name.escape_debug()))
                .hint("Use up to 64 letters, digits, `-`, `_` and `.`, starting with a letter or digit."));
        }
        let shown = format!("The root `{}` ({})", spec.name, spec.path.display());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&spec.path, flags, Mode::empty()).map_err(|errno| match errno {
            rustix::io::Errno::NOENT => ToolError::not_found(format!("{shown} does not exist."))
                .hint("Create the directory or change the root's path in the settings."),
            rustix::io::Errno::NOTDIR => ToolError::invalid(format!("{shown} is not a directory."))
                .hint("Change the root's path in the settings to a directory."),
            errno => ToolError::denied(format!("{shown} cannot be opened: {errno}."))
                .hint("Give the hub access to the directory or change the root's path in the settings."),
        })?;
        let path = path_of(fd.as_fd())?;
        Ok(Self {
            name: spec.name,
            path,
            alias_path: spec.alias_path,
            writable: spec.writable,
            configured_path: spec.path,
            fd,
        })
    }
}

fn is_valid_root_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}
