//! Renewal of a lease while it is needed.

use crate::{Lease, Leases};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Renewals per duration of a lease.
const RENEWALS: u32 = 3;

/// Renews a lease until it is dropped. The lease is not released then.
pub struct LeaseRenewal(AbortHandle);

impl LeaseRenewal {
    /// Needs a runtime.
    pub fn spawn(leases: Arc<dyn Leases>, lease: Lease, duration: Duration) -> Self {
        Self(tokio::spawn(renew(leases, lease, duration)).abort_handle())
    }
}

async fn renew(leases: Arc<dyn Leases>, lease: Lease, duration: Duration) {
    loop {
        tokio::time::sleep(duration / RENEWALS).await;
        match leases.renew(&lease, duration).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(lease = lease.name, "lease lost: another process has taken over");
                return;
            }
            Err(error) => tracing::warn!(lease = lease.name, %error, "lease renewal failed"),
        }
    }
}

impl Drop for LeaseRenewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}
