//! Leases: exclusive rights that expire with their holder.

pub mod fleet_records;
mod lease_renewal;
pub mod rate_buckets;

pub use lease_renewal::LeaseRenewal;

use crate::{Changes, StoreResult};
use octo_model::BoxFuture;
use std::time::Duration;

/// Maximum duration of a lease, whatever was requested and however the clock was set meanwhile.
pub const MAX_LEASE_DURATION: Duration = Duration::from_secs(300);

/// A lease that expires, or whose process dies, ends without a change of the store. Whoever waits for one checks
/// it at this interval, too.
pub const LEASE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// An exclusive right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    /// Fencing token, which increases with every lease. Writes under a lease carry it and are refused once a
    /// newer one was seen: a holder that slept past its expiry changes nothing.
    pub token: u64,
}

/// Leases among all processes that share a backend. A lease ends when it is released, when it expires, or
/// when its process is known to have died.
pub trait Leases: Send + Sync {
    fn changes(&self) -> Changes;

    /// Acquires a lease for `ttl`; `None` if it is held, also by this process.
    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>>;

    /// Extends the lease to `ttl` from now; `false` if another holder has it.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>>;

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>>;

    /// The process that holds a lease, if known.
    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>>;
}
