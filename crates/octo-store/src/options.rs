//! How a store keeps what it is given.

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

#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// How long a spill can be read.
    pub spill_ttl: Duration,
    /// How much all spills may take together; the oldest of the caller whose spills take up most go first.
    pub spill_quota_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            spill_ttl: Duration::from_secs(24 * 60 * 60),
            spill_quota_bytes: 1 << 30,
        }
    }
}
