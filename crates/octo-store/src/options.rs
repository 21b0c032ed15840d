//! How a store keeps what it is given.

use octo_model::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// What an acknowledged record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, however it comes: the data is with the operating system.
    #[default]
    Flush,
    /// The loss of power as well: the data is on the disk. Costs one `fsync` per group of records.
    Fsync,
}

impl Durability {
    /// Under `NORMAL` in WAL mode a commit is a write without `fsync`; a checkpoint still syncs, so a loss of
    /// power takes the newest records and never damages the file. `OFF` would be no faster per record.
    pub(crate) const fn synchronous(self) -> &'static str {
        match self {
            Self::Flush => "NORMAL",
            Self::Fsync => "FULL",
        }
    }
}

/// What credentials are sealed with.
#[derive(Debug, Clone, Default)]
pub struct SealKeys {
    /// The operator's; without it the directory has a key of its own.
    pub secret: Option<Secret>,
    /// Those that were used before. What they have sealed is sealed anew with the present one when the store is opened.
    pub previous: Vec<Secret>,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Whether the audit is opened at once, so that a hub that cannot record calls does not start.
    pub open_audit: bool,
    pub seal_keys: SealKeys,
    /// What the credentials of loaded APIs are sealed with.
    pub api_secret: Option<Secret>,
    /// Where credentials are, if not with everything else.
    pub credential_dir: Option<PathBuf>,
    /// How much the memory of one subject may hold, texts and what they take beside.
    pub memory_quota_bytes: u64,
    /// How long a spill can be read.
    pub spill_ttl: Duration,
    /// How much all spills may take together; the oldest of the caller whose spills take up most go first.
    pub spill_quota_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            open_audit: false,
            seal_keys: SealKeys::default(),
            api_secret: None,
            credential_dir: None,
            memory_quota_bytes: 4 << 30,
            spill_ttl: Duration::from_secs(24 * 60 * 60),
            spill_quota_bytes: 1 << 30,
        }
    }
}
