//! The right to write one run.

use super::PostgresRunStore;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::{BoxFuture, Json, Principal};
use octo_ports::leases::LeaseRenewal;
use octo_ports::runs::RUN_LEASE_DURATION;
use octo_ports::{Lease, Leases, Port, RunLease, RunStatus, StoreError, StoreResult, StoredStep};
use std::sync::Arc;
use tokio::runtime::Handle;

pub(super) struct PostgresRunLease {
    runs: PostgresRunStore,
    tenant: String,
    id: String,
    pub(super) lease: Lease,
    is_released: bool,
    _renewal: LeaseRenewal,
}

impl PostgresRunLease {
    /// Needs a runtime, which renews the lease.
    pub(super) fn new(runs: &PostgresRunStore, owner: &Principal, id: String, lease: Lease) -> Self {
        let renewal = LeaseRenewal::spawn(Arc::new(runs.leases.clone()), lease.clone(), RUN_LEASE_DURATION);
        let (runs, tenant) = (runs.clone(), owner.tenant.clone());
        Self { runs, tenant, id, lease, is_released: false, _renewal: renewal }
    }

    /// Makes a change that returns a row, unless there is a newer lease of the run. `change` uses the columns of
    /// `fenced` and parameters from `$6`.
    async fn write(&self, change: &str, values: &[&dyn Value]) -> StoreResult<()> {
        // The lock makes a newer lease wait for the end of this write, and this write for the newer lease.
        let write = format!(
            "WITH fenced AS (
                SELECT id, tenant FROM runs WHERE id = $1 AND tenant = $2 AND fence <= $3 FOR SHARE
             ), changed AS ({change})
             SELECT pg_notify($4, $5) FROM changed"
        );
        let (channel, payload) = self.runs.database.notice(Port::Runs);
        let token = self.lease.token.cast_signed();
        let fence: [&dyn Value; 5] = [&self.id, &self.tenant, &token, &channel, &payload];
        let values = [&fence, values].concat();
        let scope = Scope::Tenant(&self.tenant);
        let written = self.runs.database.write(Port::Runs, scope, &write, &values).await?;
        if written.is_empty() {
            return Err(StoreError::Conflict(Port::Runs));
        }
        self.runs.database.notify(Port::Runs);
        Ok(())
    }
}

async fn release(runs: PostgresRunStore, lease: Lease) {
    if let Err(error) = runs.leases.release(&lease).await {
        tracing::warn!(lease = lease.name, %error, "lease not released; it will expire");
    }
}

impl Drop for PostgresRunLease {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.is_released, Handle::try_current()) {
            runtime.spawn(release(self.runs.clone(), self.lease.clone()));
        }
    }
}

fn text(json: Option<Json>) -> Option<String> {
    json.map(|json| json.as_str().to_owned())
}

impl RunLease for PostgresRunLease {
    fn id(&self) -> &str {
        &self.id
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async move {
            let put = "INSERT INTO steps (tenant, run, key, status, output, error, attempts)
                 SELECT tenant, id, $6, $7, $8, $9, $10 FROM fenced
                 ON CONFLICT (run, key) DO UPDATE SET
                     status = excluded.status, output = excluded.output,
                     error = excluded.error, attempts = excluded.attempts
                 RETURNING run";
            let (output, error, attempts) = (text(step.output), text(step.error), step.attempts.as_str());
            self.write(put, &[&step.key, &step.status, &output, &error, &attempts]).await
        })
    }

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async move {
            let update = "UPDATE runs SET status = $6, outputs = $7, error = $8, changed = now_micros()
                 FROM fenced WHERE runs.id = fenced.id RETURNING runs.id";
            self.write(update, &[&status.as_str(), &text(outputs), &text(error)]).await
        })
    }

    fn release(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        self.is_released = true;
        let work = release(self.runs.clone(), self.lease.clone());
        Box::pin(async move {
            work.await;
            drop(self);
        })
    }
}
