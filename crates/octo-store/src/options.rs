//! Options of a store.

use octo_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What an acknowledged record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    // A crash of the process: the data is in the operating system's cache.
    #[default]
    Flush,
    // A power failure as well: the data is on disk. Costs one `fsync` per group of records.
    Fsync,
}

impl Durability {
    /// With `NORMAL` in WAL mode a commit is a write without `fsync`; a checkpoint still syncs, so a power
    /// failure loses the newest records but never damages the file. `OFF` would be no faster per record.
    pub(crate) const fn synchronous(self) -> &'static str {
        match self {
            Self::Flush => "NORMAL",
            Self::Fsync => "FULL",
        }
    }
}

/// Keys that credentials are sealed with.
#[derive(Debug, Clone, Default)]
pub struct SealKeys {
    /// The operator's secret; without it the directory has its own key.
    pub secret: Option<Secret>,
    /// Secrets used before. Data sealed with them is resealed with the current one when the store is opened.
    pub previous: Vec<Secret>,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Whether the audit log is opened immediately, so that a hub that cannot record calls does not start.
    pub open_audit: bool,
    /// Keys that logins and the credentials of loaded APIs are sealed with.
    pub seal_keys: SealKeys,
    /// Directory of the credentials, if separate.
    pub credential_dir: Option<PathBuf>,
    /// Maximum bytes of one subject's memory, including overhead.
    pub memory_quota_bytes: u64,
    /// How long a stored result can be read.
    pub result_ttl: Duration,
    /// Maximum bytes of all stored results; the oldest of the caller with the most bytes are removed first.
    pub result_quota_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            open_audit: false,
            seal_keys: SealKeys::default(),
            credential_dir: None,
            memory_quota_bytes: 4 << 30,
            result_ttl: Duration::from_secs(24 * 60 * 60),
            result_quota_bytes: 1 << 30,
        }
    }
}
