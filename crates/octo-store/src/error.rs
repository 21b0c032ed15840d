//! Why a store cannot be opened, read or believed.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("others on this machine can enter {path} (mode {mode:o}), and that could not be changed", path = path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another user (uid {owner})", path = path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("there is no {path}", path = path.display())]
    Missing { path: PathBuf },
    #[error("{path} was written by a newer octoprox: its version is {found}, this one knows {known}", path = path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{path} cannot be kept in WAL mode, only in {mode}", path = path.display())]
    NoWal { path: PathBuf, mode: String },
    #[error("there is little room left at {path}: {} bytes", free, path = path.display())]
    Full { path: PathBuf, free: u64 },
    #[error("{path} is no longer the file that records are written to", path = path.display())]
    Moved { path: PathBuf },
    #[error("{path} is damaged: {why}", path = path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("the database failed: {0}")]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Broken(#[from] BrokenChain),
}

/// The first record of the audit that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit is broken at record {seq}: {why}")]
pub struct BrokenChain {
    pub seq: u64,
    pub why: String,
}

impl StoreError {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "Check that the directory exists and belongs to whoever runs the hub.",
            Self::Exposed { .. } => {
                "Run `chmod 700` on it as its owner, or choose a directory that belongs to whoever runs the hub."
            }
            Self::Foreign { .. } => {
                "Choose a directory that belongs to whoever runs the hub, such as a new subfolder of a shared volume."
            }
            Self::Missing { .. } => {
                "It is made with the first call; check that this is the hub's data directory."
            }
            Self::Newer { .. } => "Use that newer octoprox, or another data directory.",
            Self::NoWal { .. } => "Keep the data directory on a local disk, not on a network share.",
            Self::Full { .. } => "Make room on that disk.",
            Self::Moved { .. } => "Restart the hub.",
            Self::Damaged { .. } => "Keep a copy of the file, and restore it from a backup.",
            Self::Database(_) => "Check free space and permissions of the data directory.",
            Self::Broken(_) => "Keep a copy of the file as it is, and compare it with a backup.",
        }
    }
}
