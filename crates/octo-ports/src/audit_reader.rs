//! Reading, verifying and pruning the audit log.

use crate::{Anchor, AuditRecord, StoreResult};
use jiff::Timestamp;
use octo_model::BoxFuture;
use serde::Serialize;
use std::time::Duration;

/// Result of a successful verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub records: u64,
    /// The end of the chain: stored elsewhere and passed as the anchor next time, it proves that nothing
    /// before it was removed.
    pub head: Anchor,
    /// The last record that was pruned, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Anchor>,
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

/// Access to the audit log for readers other than the hub.
pub trait AuditReader: Send + Sync {
    /// The last records, oldest first; at most ten thousand.
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>>;

    /// The records after `seq`, oldest first; at most ten thousand, so repeat until there are none.
    fn after(&self, seq: u64) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>>;

    /// The current end of the chain, to be stored elsewhere.
    fn head(&self) -> BoxFuture<'_, StoreResult<Anchor>>;

    /// Verifies the chain in order and reports the first record that is changed, missing, moved or inserted.
    /// Truncation at the end is detected with an `anchor`, an earlier head.
    fn verify(&self, anchor: Option<Anchor>) -> BoxFuture<'_, StoreResult<Verified>>;

    /// Removes records beyond the retention and returns their number.
    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;

    /// Like `prune`, for periodic calls: waits until many records can be removed at once, since each pruning
    /// adds a record.
    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;
}
