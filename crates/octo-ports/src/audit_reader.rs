//! Reading, verifying and pruning the audit log.

use crate::{Anchor, AuditRecord, ChainAnchor, StoreResult};
use jiff::Timestamp;
use octo_model::BoxFuture;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Result of a successful verification of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Empty in a log with one chain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chain: String,
    pub records: u64,
    /// The end of the chain: stored elsewhere and passed as the anchor next time, it proves that nothing
    /// before it was removed.
    pub head: Anchor,
    /// The last record that was pruned, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Anchor>,
}

/// A position in every chain of a log; at the start of those that it does not name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditCursor(BTreeMap<String, u64>);

impl AuditCursor {
    /// Number of the last record of this chain that was read.
    pub fn seq(&self, chain: &str) -> u64 {
        self.0.get(chain).copied().unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(chain, seq)| (chain.as_str(), *seq))
    }

    pub fn advance(&mut self, chain: &str, seq: u64) {
        match self.0.get_mut(chain) {
            Some(last) => *last = seq.max(*last),
            None => drop(self.0.insert(chain.to_owned(), seq)),
        }
    }
}

/// Retention of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Maximum number of records; the newest are kept.
    pub max_records: Option<u64>,
    /// Maximum age of records.
    pub max_age: Option<Duration>,
}

impl Retention {
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }
}

/// Access to the audit log for readers other than the hub. A log has one chain, or one for each hub that writes to
/// it. The records of a chain are in the order of their numbers; those of several are merged by time.
pub trait AuditReader: Send + Sync {
    /// The last records, oldest first; at most ten thousand.
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>>;

    /// The records after the cursor, oldest first; at most ten thousand, so repeat until there are none.
    fn after<'a>(&'a self, cursor: &'a AuditCursor) -> BoxFuture<'a, StoreResult<Vec<AuditRecord>>>;

    /// The current end of each chain, to be stored elsewhere.
    fn heads(&self) -> BoxFuture<'_, StoreResult<Vec<ChainAnchor>>>;

    /// Verifies each chain in order and reports the first record that is changed, missing, moved or inserted.
    /// Truncation at the end is detected with `anchors`, earlier heads.
    fn verify<'a>(&'a self, anchors: &'a [ChainAnchor]) -> BoxFuture<'a, StoreResult<Vec<Verified>>>;

    /// `now` without the time that no record accounts for: what the age of records is judged by, so that a clock that
    /// is ahead deletes nothing.
    fn trusted_now(&self, now: Timestamp) -> BoxFuture<'_, StoreResult<Timestamp>>;

    /// Removes records beyond the retention and returns their number. A record that is not too old keeps those after
    /// it, whatever their times.
    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;

    /// Like `prune`, for periodic calls: waits until many records can be removed at once, since each pruning
    /// adds a record.
    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;
}
