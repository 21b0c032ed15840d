//! Reading, checking and pruning the audit log.

use crate::{Anchor, AuditRecord, StoreResult};
use jiff::Timestamp;
use octo_model::BoxFuture;
use serde::Serialize;
use std::time::Duration;

/// The whole chain holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub records: u64,
    /// Where it ends: noted elsewhere and given as the anchor next time, it shows that nothing before it is gone.
    pub head: Anchor,
    /// The last record that was taken out, when some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Anchor>,
}

/// What is kept of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// The newest so many records.
    pub max_records: Option<u64>,
    /// Records that are no older.
    pub max_age: Option<Duration>,
}

impl Retention {
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }
}

/// The audit log as others than the hub use it.
pub trait AuditReader: Send + Sync {
    /// The last records, oldest first; at most ten thousand.
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>>;

    /// The records after `seq`, oldest first; at most ten thousand, so ask again until there are none.
    fn after(&self, seq: u64) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>>;

    /// Where the chain ends now: to be noted elsewhere.
    fn head(&self) -> BoxFuture<'_, StoreResult<Anchor>>;

    /// Walks the chain in order and names the first record that is changed, missing, moved or slipped in. Records cut off
    /// at the end are found with an `anchor`, a head that was noted before.
    fn verify(&self, anchor: Option<Anchor>) -> BoxFuture<'_, StoreResult<Verified>>;

    /// Takes out what need not be kept, and gives how many records that were.
    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;

    /// The same for a hub that asks again and again: it waits until a good part can go at once, since each pruning adds a record.
    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>>;
}
