//! The lease of this process. While it is held, others leave its streams alone.

use octo_ports::{Lease, Leases, StoreResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// After this time others continue what a process that died has left.
const LEASE_DURATION: Duration = Duration::from_secs(10);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(2);
/// After a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How long an owner is waited for before it goes on without a lease.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

pub struct FrontLease {
    /// Nobody else has this name, so the lease can be acquired again after it was lost.
    name: Arc<str>,
    leases: Arc<dyn Leases>,
    state: watch::Receiver<LeaseState>,
    task: AbortOnDropHandle<()>,
}

#[derive(Default, Clone)]
struct LeaseState {
    lease: Option<Lease>,
    /// The lease is held without a gap since then.
    since: Option<Instant>,
    renewed: Option<Instant>,
    /// How often the lease was not renewed in time, so that others may have taken streams.
    gaps: u64,
}

impl LeaseState {
    fn renew(&mut self, lease: Lease, requested: Instant) {
        let is_late = self.renewed.is_some_and(|renewed| renewed + LEASE_DURATION < Instant::now());
        if is_late {
            self.gaps += 1;
        }
        if is_late || self.since.is_none() {
            self.since = Some(requested);
        }
        self.lease = Some(lease);
        self.renewed = Some(requested);
    }
}

impl FrontLease {
    /// Needs a runtime.
    pub fn spawn(leases: Arc<dyn Leases>) -> Self {
        let name: Arc<str> = format!("front/{}", uuid::Uuid::new_v4().simple()).into();
        let (sender, state) = watch::channel(LeaseState::default());
        let task = tokio::spawn(hold(Arc::clone(&leases), Arc::clone(&name), sender));
        Self { name, leases, state, task: AbortOnDropHandle::new(task) }
    }

    /// The name, once the lease is held.
    pub async fn acquired(&self) -> &str {
        let mut state = self.state.clone();
        let _ = tokio::time::timeout(ACQUIRE_TIMEOUT, state.wait_for(|state| state.lease.is_some())).await;
        &self.name
    }

    /// Whether this process would have noticed an outage in which the leases of others ended, too. Before that it leaves
    /// their streams alone.
    pub fn is_settled(&self) -> bool {
        let state = self.state.borrow();
        let is_renewed = state.renewed.is_some_and(|renewed| renewed.elapsed() < LEASE_DURATION);
        is_renewed && state.since.is_some_and(|since| since.elapsed() >= LEASE_DURATION)
    }

    /// Waits until the lease is held again after it was not renewed in time.
    pub async fn gap(&self) {
        let mut state = self.state.clone();
        let known = state.borrow_and_update().gaps;
        if state.wait_for(|state| state.gaps > known).await.is_err() {
            std::future::pending().await
        }
    }

    pub async fn release(&self) {
        self.task.abort();
        let lease = self.state.borrow().lease.clone();
        if let Some(lease) = lease {
            // It ends by itself otherwise.
            let _ = self.leases.release(&lease).await;
        }
    }
}

/// Acquires the lease and renews it, for ever.
async fn hold(leases: Arc<dyn Leases>, name: Arc<str>, state: watch::Sender<LeaseState>) {
    loop {
        let requested = Instant::now();
        let current = state.borrow().lease.clone();
        let outcome = tokio::time::timeout(RENEWAL_TIMEOUT, acquire_or_renew(&leases, &name, current)).await;
        let pause = match outcome {
            Ok(Ok(Some(lease))) => {
                state.send_modify(|state| state.renew(lease, requested));
                RENEWAL_INTERVAL
            }
            Ok(Ok(None)) => {
                state.send_modify(|state| state.lease = None);
                RETRY_INTERVAL
            }
            Ok(Err(error)) => {
                tracing::warn!(target: "fleet", %error, "the lease of this front was not renewed");
                RETRY_INTERVAL
            }
            Err(_) => {
                tracing::warn!(target: "fleet", "the lease of this front was not renewed in time");
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn acquire_or_renew(
    leases: &Arc<dyn Leases>,
    name: &str,
    current: Option<Lease>,
) -> StoreResult<Option<Lease>> {
    match current {
        None => leases.acquire(name, LEASE_DURATION).await,
        Some(lease) => Ok(leases.renew(&lease, LEASE_DURATION).await?.then_some(lease)),
    }
}
