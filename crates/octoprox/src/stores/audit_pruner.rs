//! Prunes the audit log according to the retention settings.

use jiff::{SignedDuration, Timestamp};
use octo_ports::{AuditReader, Retention, StoreResult};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PRUNE_INTERVAL: Duration = Duration::from_secs(5);
/// A clock that is ahead of the records by more than this is reported.
pub const MAX_CLOCK_LEAD: SignedDuration = SignedDuration::from_hours(7 * 24);

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
        let mut is_reported = false;
        loop {
            tokio::time::sleep(PRUNE_INTERVAL).await;
            let retention = self.retention();
            if retention.is_unbounded() {
                continue;
            }
            match prune(&*audit, retention, Timestamp::now()).await {
                Ok(pruning) => {
                    if pruning.clock_lead > MAX_CLOCK_LEAD && !is_reported {
                        tracing::warn!(
                            days = pruning.clock_lead.as_hours() / 24,
                            "the clock is ahead of the audit log, so no records are deleted for their age; if it is \
                             right, `octoprox audit prune --trust-clock` deletes them"
                        );
                    }
                    is_reported = pruning.clock_lead > MAX_CLOCK_LEAD;
                    if pruning.records > 0 {
                        tracing::info!(records = pruning.records, ?retention, "old audit records deleted");
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot prune the audit log"),
            }
        }
    }
}

struct Pruning {
    records: u64,
    /// Time on the clock that no record accounts for.
    clock_lead: SignedDuration,
}

/// Prunes by the time that records prove.
async fn prune(audit: &dyn AuditReader, retention: Retention, now: Timestamp) -> StoreResult<Pruning> {
    let trusted = if retention.max_age.is_some() { audit.trusted_now(now).await? } else { now };
    let records = audit.prune_when_due(retention, trusted).await?;
    Ok(Pruning { records, clock_lead: trusted.duration_until(now) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::AuditLog;
    use octo_ports::conformance::call_samples;
    use octo_store::{Options, Store, sqlite};

    #[tokio::test]
    async fn a_wrong_clock_deletes_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::open(temp.path(), Options::default()).unwrap();
        for _ in 0..20 {
            let opening = call_samples::opening("time_now");
            let id = opening.id;
            AuditLog::open(&store, opening).await.unwrap();
            store.close(call_samples::closing(id));
        }
        store.flush().await.unwrap();
        let audit = sqlite(temp.path(), Options::default()).unwrap().audit_reader;
        let retention =
            Retention { max_age: Some(Duration::from_secs(400 * 24 * 60 * 60)), ..Retention::default() };
        let days = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
        for (now, is_reported) in [(days(500), true), (days(-500), false), (days(0), false)] {
            let pruning = prune(&*audit, retention, now).await.unwrap();
            assert_eq!((pruning.records, pruning.clock_lead > MAX_CLOCK_LEAD), (0, is_reported), "{now}");
        }
    }
}
