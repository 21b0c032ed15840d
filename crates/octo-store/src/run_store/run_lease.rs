//! The right to write one run.

use super::SqliteRunStore;
use crate::result_files::now_micros;
use octo_model::{BoxFuture, Json};
use octo_ports::leases::LeaseRenewal;
use octo_ports::runs::RUN_LEASE_DURATION;
use octo_ports::{Lease, RunLease, RunStatus, StoreResult, StoredStep};
use std::sync::Arc;

pub(super) struct SqliteRunLease {
    runs: SqliteRunStore,
    id: String,
    lease: Lease,
    _renewal: LeaseRenewal,
}

impl SqliteRunLease {
    /// Needs a runtime, which renews the lease.
    pub(super) fn new(runs: SqliteRunStore, id: String, lease: Lease) -> Self {
        let leases = Arc::new(runs.0.leases.clone());
        let renewal = LeaseRenewal::spawn(leases, lease.clone(), RUN_LEASE_DURATION);
        Self { runs, id, lease, _renewal: renewal }
    }

    fn write(
        &self,
        work: impl FnOnce(&rusqlite::Connection, &str) -> rusqlite::Result<()> + Send + 'static,
    ) -> BoxFuture<'_, StoreResult<()>> {
        let (id, lease) = (self.id.clone(), self.lease.clone());
        Box::pin(self.runs.run_blocking(move |runs| runs.write(&lease, &id, |conn| work(conn, &id))))
    }
}

impl Drop for SqliteRunLease {
    /// Releases immediately, so that another process can take the run.
    fn drop(&mut self) {
        if let Err(error) = self.runs.0.leases.release_now(&self.lease) {
            tracing::warn!(lease = self.lease.name, %error, "lease not released; it will expire");
        }
    }
}

fn text(json: Option<Json>) -> Option<String> {
    json.map(|json| json.as_str().to_owned())
}

impl RunLease for SqliteRunLease {
    fn id(&self) -> &str {
        &self.id
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
        self.write(move |conn, id| {
            conn.prepare_cached(
                "INSERT INTO steps (run, key, status, output, error, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (run, key) DO UPDATE SET status = ?3, output = ?4, error = ?5, attempts = ?6",
            )?
            .execute((id, step.key, step.status, text(step.output), text(step.error), step.attempts.as_str()))
            .map(drop)
        })
    }

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, StoreResult<()>> {
        self.write(move |conn, id| {
            conn.prepare_cached(
                "UPDATE runs SET status = ?2, outputs = ?3, error = ?4, changed = ?5 WHERE id = ?1",
            )?
            .execute((id, status.as_str(), text(outputs), text(error), now_micros()))
            .map(drop)
        })
    }
}
