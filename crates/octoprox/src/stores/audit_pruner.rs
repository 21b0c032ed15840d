//! Prunes the audit log according to the retention settings.

use jiff::Timestamp;
use octo_ports::{AuditReader, Retention};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PRUNE_INTERVAL: Duration = Duration::from_secs(5);

/// Current retention; shared by all clones.
#[derive(Clone, Default)]
pub struct Pruner(Arc<Mutex<Retention>>);

impl Pruner {
    pub fn set_retention(&self, retention: Retention) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = retention;
    }

    fn retention(&self) -> Retention {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes old records while the hub runs.
    pub async fn run(self, audit: Arc<dyn AuditReader>) {
        loop {
            tokio::time::sleep(PRUNE_INTERVAL).await;
            let retention = self.retention();
            if retention.is_unbounded() {
                continue;
            }
            match audit.prune_when_due(retention, Timestamp::now()).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(records, "old audit records deleted"),
                Err(error) => tracing::warn!(%error, "cannot prune the audit log"),
            }
        }
    }
}
