//! The right to serve something: a lease that knows by the clock of this machine whether it still holds.

use octo_ports::{Lease, Leases, StoreResult};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Duration of a lease. A service of a node that died is taken over after it.
pub const SERVICE_LEASE_DURATION: Duration = Duration::from_secs(10);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
/// How much earlier the holder stops than the lease ends: clocks do not run equally fast.
const SAFETY_MARGIN: Duration = Duration::from_secs(1);

/// Renewed until it is dropped. A process that was suspended past the end of its lease has lost it, and notices that
/// before its next call.
pub struct ServiceLease {
    lease: Lease,
    leases: Arc<dyn Leases>,
    validity: Arc<Validity>,
    _renewal: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Validity {
    /// On the clock that also runs while the machine sleeps.
    until_ms: AtomicU64,
    lost: CancellationToken,
}

/// Checks whether a lease holds.
#[derive(Clone)]
pub struct LeaseCheck {
    validity: Arc<Validity>,
    token: u64,
}

fn now_ms() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds * 1_000 + nanos / 1_000_000
}

impl Validity {
    /// A lease lasts from the moment when it was requested.
    fn extend(&self, requested_ms: u64) {
        let duration = SERVICE_LEASE_DURATION.saturating_sub(SAFETY_MARGIN);
        let until = requested_ms + u64::try_from(duration.as_millis()).unwrap_or(0);
        self.until_ms.store(until, Ordering::Release);
    }

    fn holds(&self) -> bool {
        !self.lost.is_cancelled() && now_ms() < self.until_ms.load(Ordering::Acquire)
    }
}

impl LeaseCheck {
    pub fn holds(&self) -> bool {
        self.validity.holds()
    }

    /// Fencing token.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Waits until the lease is lost.
    pub async fn lost(&self) {
        self.validity.lost.cancelled().await;
    }
}

impl ServiceLease {
    /// Acquires the lease; `None` if another process has it.
    pub async fn acquire(leases: &Arc<dyn Leases>, name: &str) -> StoreResult<Option<Self>> {
        let requested = now_ms();
        let Some(lease) = leases.acquire(name, SERVICE_LEASE_DURATION).await? else { return Ok(None) };
        let validity = Arc::new(Validity::default());
        validity.extend(requested);
        let renewal = tokio::spawn(renew(Arc::clone(leases), lease.clone(), Arc::clone(&validity)));
        let renewal = AbortOnDropHandle::new(renewal);
        Ok(Some(Self { lease, leases: Arc::clone(leases), validity, _renewal: renewal }))
    }

    pub fn check(&self) -> LeaseCheck {
        LeaseCheck { validity: Arc::clone(&self.validity), token: self.lease.token }
    }

    /// Gives the lease back, so that another process need not wait for its end.
    pub async fn release(self) -> StoreResult<()> {
        self.validity.lost.cancel();
        self.leases.release(&self.lease).await
    }
}

impl Drop for ServiceLease {
    fn drop(&mut self) {
        self.validity.lost.cancel();
    }
}

async fn renew(leases: Arc<dyn Leases>, lease: Lease, validity: Arc<Validity>) {
    while validity.holds() {
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        // It may be lost already, and only to be renewed because nobody has acquired it yet.
        if !validity.holds() {
            break;
        }
        let requested = now_ms();
        match tokio::time::timeout(RENEWAL_INTERVAL, leases.renew(&lease, SERVICE_LEASE_DURATION)).await {
            Ok(Ok(true)) => validity.extend(requested),
            Ok(Ok(false)) => break,
            Ok(Err(error)) => tracing::warn!(lease = lease.name, %error, "lease renewal failed"),
            Err(_) => tracing::warn!(lease = lease.name, "lease renewal took too long"),
        }
    }
    tracing::warn!(lease = lease.name, "lease lost");
    validity.lost.cancel();
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::Stores;

    #[tokio::test]
    async fn a_lease_is_held_by_one_and_renewed() {
        let leases = Stores::in_memory().leases;
        let lease = ServiceLease::acquire(&leases, "a").await.unwrap().unwrap();
        assert!(ServiceLease::acquire(&leases, "a").await.unwrap().is_none());
        let check = lease.check();
        assert!(check.holds());
        lease.release().await.unwrap();
        assert!(!check.holds());
        check.lost().await;
        let next = ServiceLease::acquire(&leases, "a").await.unwrap().unwrap();
        assert!(next.check().holds());
    }

    #[tokio::test]
    async fn a_process_that_slept_has_lost_its_lease() {
        let leases = Stores::in_memory().leases;
        let lease = ServiceLease::acquire(&leases, "a").await.unwrap().unwrap();
        let check = lease.check();
        // As if the process had been stopped since its last renewal.
        lease.validity.until_ms.store(now_ms(), Ordering::Release);
        assert!(!check.holds());
        tokio::time::timeout(Duration::from_secs(10), check.lost()).await.unwrap();
        assert!(!check.holds(), "it does not come back");
    }
}
