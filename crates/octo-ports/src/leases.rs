//! Exclusive rights that expire with their holder.

use crate::StoreResult;
use octo_model::BoxFuture;
use std::time::Duration;

/// However long a lease was asked for, and however the clock was set meanwhile.
pub const MAX_LEASE_DURATION: Duration = Duration::from_secs(300);

/// The right to do something that nobody else does meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    /// Rises with every lease that is given. Whatever is written with a lease carries it, and is refused once a newer one was
    /// seen: a holder that slept through its expiry changes nothing.
    pub token: u64,
}

/// Leases among all processes that share a backend. A lease ends when it is released, when its time is over, or when its
/// process is known to be gone.
pub trait Leases: Send + Sync {
    /// Takes a lease for so long; nothing when somebody has it, this process included.
    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>>;

    /// Goes on for so long from now; `false` when somebody else has it by now.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>>;

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>>;

    /// The process that holds a lease, as far as it can be named.
    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>>;
}
