//! The lease of this process. While it is held, others leave its streams alone.

use octo_ports::{Lease, Leases};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// After this time others continue what a process that died has left.
const LEASE_DURATION: Duration = Duration::from_secs(10);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
/// How long an owner is waited for before it goes on without a lease.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

pub struct FrontLease {
    /// Nobody else has this name, so the lease can be acquired again after it was lost.
    name: Arc<str>,
    leases: Arc<dyn Leases>,
    held: watch::Receiver<Option<Lease>>,
    task: AbortOnDropHandle<()>,
}

impl FrontLease {
    /// Needs a runtime.
    pub fn spawn(leases: Arc<dyn Leases>) -> Self {
        let name: Arc<str> = format!("front/{}", uuid::Uuid::new_v4().simple()).into();
        let (sender, held) = watch::channel(None);
        let task = tokio::spawn(hold(Arc::clone(&leases), Arc::clone(&name), sender));
        Self { name, leases, held, task: AbortOnDropHandle::new(task) }
    }

    /// The name, once the lease is held.
    pub async fn acquired(&self) -> &str {
        let mut held = self.held.clone();
        let _ = tokio::time::timeout(ACQUIRE_TIMEOUT, held.wait_for(Option::is_some)).await;
        &self.name
    }

    pub async fn release(&self) {
        self.task.abort();
        let lease = self.held.borrow().clone();
        if let Some(lease) = lease {
            // It ends by itself otherwise.
            let _ = self.leases.release(&lease).await;
        }
    }
}

/// Acquires the lease and renews it, for ever.
async fn hold(leases: Arc<dyn Leases>, name: Arc<str>, held: watch::Sender<Option<Lease>>) {
    loop {
        let current = held.borrow().clone();
        let outcome = match &current {
            None => leases.acquire(&name, LEASE_DURATION).await.map(|lease| lease.is_some().then_some(lease)),
            Some(lease) => {
                let renewed = leases.renew(lease, LEASE_DURATION).await;
                renewed.map(|renewed| Some(renewed.then(|| lease.clone())))
            }
        };
        match outcome {
            Ok(Some(lease)) if lease != current => drop(held.send_replace(lease)),
            Ok(_) => {}
            Err(error) => tracing::warn!(target: "fleet", %error, "the lease of this front was not renewed"),
        }
        tokio::time::sleep(RENEWAL_INTERVAL).await;
    }
}
