//! Keeps the audit within the bounds of the settings.

use jiff::Timestamp;
use octo_ports::{AuditReader, Retention};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PRUNE_INTERVAL: Duration = Duration::from_secs(5);

/// What is kept from now on; all clones share it.
#[derive(Clone, Default)]
pub struct Pruner(Arc<Mutex<Retention>>);

impl Pruner {
    pub fn set_retention(&self, retention: Retention) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = retention;
    }

    fn retention(&self) -> Retention {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out old records for as long as the hub runs.
    pub async fn run(self, audit: Arc<dyn AuditReader>) {
        loop {
            tokio::time::sleep(PRUNE_INTERVAL).await;
            let retention = self.retention();
            if retention.is_unbounded() {
                continue;
            }
            match audit.prune_when_due(retention, Timestamp::now()).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(records, "old records of the audit were taken out"),
                Err(error) => tracing::warn!(%error, "the audit cannot be pruned"),
            }
        }
    }
}
