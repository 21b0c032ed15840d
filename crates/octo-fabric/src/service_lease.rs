//! The right to serve something: a lease that knows by the clock of this machine whether it still holds.

pub mod lease_check;

use crate::fleet_metrics::{HeldLease, count_lost_lease};
use lease_check::{LeaseCheck, now_ms};
use octo_ports::{Lease, Leases, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// Duration of a lease. A service of a node that died is taken over after it.
pub const SERVICE_LEASE_DURATION: Duration = Duration::from_secs(10);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
/// How long the holder relies on it: clocks do not run equally fast.
const VALID_DURATION: Duration = Duration::from_secs(9);

/// Renewed until it is dropped. A process that was suspended past the end of its lease has lost it, and notices that
/// before its next call.
pub struct ServiceLease {
    lease: Lease,
    leases: Arc<dyn Leases>,
    check: LeaseCheck,
    _held: HeldLease,
    _renewal: AbortOnDropHandle<()>,
}

impl ServiceLease {
    /// Acquires the lease; `None` if another process has it.
    pub async fn acquire(leases: &Arc<dyn Leases>, name: &str) -> StoreResult<Option<Self>> {
        Self::acquire_for(leases, name, VALID_DURATION).await
    }

    async fn acquire_for(
        leases: &Arc<dyn Leases>,
        name: &str,
        valid_duration: Duration,
    ) -> StoreResult<Option<Self>> {
        let requested = now_ms();
        let Some(lease) = leases.acquire(name, SERVICE_LEASE_DURATION).await? else { return Ok(None) };
        let check = LeaseCheck::new(lease.token);
        check.extend(requested, valid_duration);
        // The database was so slow that nobody knows how much of it is left. Others need not wait for its end.
        if !check.holds() {
            leases.release(&lease).await?;
            return Ok(None);
        }
        let renewal = tokio::spawn(renew(Arc::clone(leases), lease.clone(), check.clone()));
        let renewal = AbortOnDropHandle::new(renewal);
        let _held = HeldLease::new(name);
        Ok(Some(Self { lease, leases: Arc::clone(leases), check, _held, _renewal: renewal }))
    }

    pub fn check(&self) -> LeaseCheck {
        self.check.clone()
    }

    /// Gives the lease back, so that another process need not wait for its end.
    pub async fn release(self) -> StoreResult<()> {
        self.check.end();
        self.leases.release(&self.lease).await
    }
}

impl Drop for ServiceLease {
    fn drop(&mut self) {
        self.check.end();
    }
}

/// Ends the calls in progress as soon as the lease is lost, also while a renewal waits for the database: another node may
/// serve from then on.
async fn renew(leases: Arc<dyn Leases>, lease: Lease, check: LeaseCheck) {
    tokio::select! {
        () = renew_repeatedly(&leases, &lease, &check) => {}
        () = check.expired() => {}
    }
    tracing::warn!(lease = lease.name, "lease lost");
    count_lost_lease(&lease.name);
    check.end();
}

async fn renew_repeatedly(leases: &Arc<dyn Leases>, lease: &Lease, check: &LeaseCheck) {
    while check.holds() {
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        // It may be lost already, and only to be renewed because nobody has acquired it yet.
        if !check.holds() {
            break;
        }
        let requested = now_ms();
        match tokio::time::timeout(RENEWAL_INTERVAL, leases.renew(lease, SERVICE_LEASE_DURATION)).await {
            Ok(Ok(true)) => check.extend(requested, VALID_DURATION),
            Ok(Ok(false)) => break,
            Ok(Err(error)) => tracing::warn!(lease = lease.name, %error, "lease renewal failed"),
            Err(_) => tracing::warn!(lease = lease.name, "lease renewal took too long"),
        }
    }
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
    async fn a_lease_that_came_too_late_is_given_back() {
        let leases = Stores::in_memory().leases;
        assert!(ServiceLease::acquire_for(&leases, "a", Duration::ZERO).await.unwrap().is_none());
        assert!(ServiceLease::acquire(&leases, "a").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_process_that_slept_has_lost_its_lease() {
        let leases = Stores::in_memory().leases;
        let lease = ServiceLease::acquire(&leases, "a").await.unwrap().unwrap();
        let check = lease.check();
        // Now it waits until the next renewal.
        tokio::task::yield_now().await;
        // As if the process had been stopped since its last renewal.
        lease.check.extend(now_ms(), Duration::ZERO);
        assert!(!check.holds());
        // Sooner than the next renewal.
        tokio::time::timeout(RENEWAL_INTERVAL / 2, check.lost()).await.unwrap();
        assert!(!check.holds(), "it does not come back");
    }
}
