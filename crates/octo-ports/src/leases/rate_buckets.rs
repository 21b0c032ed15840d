//! Token buckets of rate limits, shared by all hubs. A hub leases slices of a bucket, so that most calls need no access
//! to the backend.

use crate::StoreResult;
use octo_model::{BoxFuture, Principal};
use std::time::Duration;

/// Time is divided into terms. A slice is valid in the term in which it was leased and in the next one.
pub const TERM_DURATION: Duration = Duration::from_secs(5);

/// Buckets count in parts of a call: as many as one microsecond regains at one call per minute.
pub const CALL_PARTS: i64 = 60_000_000;

/// One rule for one principal. The same identity always has the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RateBucket {
    /// Identity of the rule.
    pub rule: String,
    pub principal: Principal,
    /// Calls of a full bucket, at least 1.
    pub capacity: u32,
    /// Calls regained per minute, at least 1.
    pub per_minute: u32,
}

/// Calls that a hub may make without asking again. The first one is made at once: it is never returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// May be fewer than requested, and 0.
    pub calls: u32,
    /// How long after it was requested the slice may be used.
    pub valid_for: Duration,
    /// The term in which it was leased.
    pub term: i64,
    /// If there are no calls: how long until there may be one.
    pub retry_after: Duration,
}

/// A slice that is no longer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnedSlice {
    /// Calls of the slice as leased.
    pub calls: u32,
    /// Calls that were not made. They are lost if the slice is returned too late.
    pub unused: u32,
    pub term: i64,
}

/// While a slice is valid and not returned, all but its first call occupy their part of the capacity, used or not. All
/// hubs together thus never make more calls within any time than one bucket permits.
pub trait RateBuckets: Send + Sync {
    /// Leases up to `wanted` calls and takes a slice back. With 0 it only takes back.
    fn lease<'a>(
        &'a self,
        bucket: &'a RateBucket,
        wanted: u32,
        returned: Option<ReturnedSlice>,
    ) -> BoxFuture<'a, StoreResult<Slice>>;
}
