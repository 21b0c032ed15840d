//! Errors of opening, reading and verifying a store.

use octo_ports::audit_format::BrokenChain;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} is accessible to other users (mode {mode:o}), and its mode could not be changed", path = path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another user (uid {owner})", path = path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{path} not found", path = path.display())]
    Missing { path: PathBuf },
    #[error("{path} was written by a newer octoprox: its version is {found}, this one supports {known}", path = path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{path} does not support WAL mode, only {mode}", path = path.display())]
    NoWal { path: PathBuf, mode: String },
    #[error("too little free space at {path}: {} bytes", free, path = path.display())]
    Full { path: PathBuf, free: u64 },
    #[error("{path} was replaced while records are written to it", path = path.display())]
    Moved { path: PathBuf },
    #[error("{path} is open in another process", path = path.display())]
    InUse { path: PathBuf },
    #[error("{path} is damaged: {why}", path = path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("the database failed: {0}")]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Broken(#[from] BrokenChain),
}

impl SqliteError {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "Check that the directory exists and belongs to the user of the hub.",
            Self::Exposed { .. } => {
                "Run `chmod 700` on it as its owner, or choose a directory that belongs to the user of the hub."
            }
            Self::Foreign { .. } => {
                "Choose a directory that belongs to the user of the hub, such as a new subdirectory of a shared volume."
            }
            Self::Missing { .. } => {
                "It is created by the first call; check that this is the hub's data directory."
            }
            Self::Newer { .. } => "Use that newer octoprox, or another data directory.",
            Self::NoWal { .. } => "Keep the data directory on a local disk, not on a network share.",
            Self::Full { .. } => "Free some space on that disk.",
            Self::Moved { .. } => "Restart the hub.",
            Self::InUse { .. } => "Stop all hubs and wait for other commands, then try again.",
            Self::Damaged { .. } => "Keep a copy of the file, and restore it from a backup.",
            Self::Database(_) => "Check free space and permissions of the data directory.",
            Self::Broken(_) => "Keep an unmodified copy of the file, and compare it with a backup.",
        }
    }
}
