//! Keeps the audit within the bounds of the settings.

use jiff::Timestamp;
use octo_store::{Retention, prune_when_due};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PRUNE_INTERVAL: Duration = Duration::from_secs(5);

/// What is kept from now on; all clones share it.
#[derive(Clone, Default)]
pub struct Pruner(Arc<Mutex<Retention>>);

impl Pruner {
    pub fn keep(&self, retention: Retention) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = retention;
    }

    fn retention(&self) -> Retention {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out old records for as long as the hub runs.
    pub async fn run(self, state: PathBuf) {
        loop {
            tokio::time::sleep(PRUNE_INTERVAL).await;
            let (retention, state) = (self.retention(), state.clone());
            if retention.is_unbounded() {
                continue;
            }
            let pruned =
                tokio::task::spawn_blocking(move || prune_when_due(&state, retention, Timestamp::now()))
                    .await;
            match pruned {
                Ok(Ok(0)) => {}
                Ok(Ok(records)) => tracing::info!(records, "old records of the audit were taken out"),
                Ok(Err(error)) => tracing::warn!(%error, "the audit cannot be pruned"),
                Err(_) => return,
            }
        }
    }
}
