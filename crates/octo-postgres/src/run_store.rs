//! Workflow runs. The process that works on a run has a lease of it, and every write carries the token of that
//! lease.

mod run_lease;

use crate::database::Database;
use crate::interval::Interval;
use crate::lease_store::PostgresLeaseStore;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::{BoxFuture, Caller, Json, Principal, sha256_hex};
use octo_ports::random_id::{RUN_PREFIX, is_id, new_id};
use octo_ports::runs::{RUN_LEASE_DURATION, RUN_RETENTION, lease_name};
use octo_ports::{
    Changes, Lease, LeasedRun, Leases, NewRun, Port, RunLease, RunStatus, Runs, StoreError, StoreResult,
    StoredRun, StoredStep,
};
use run_lease::PostgresRunLease;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;

/// How often this process removes runs that ended long ago.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// Columns of [`run_from_row`].
const RUN_COLUMNS: &str = "id, path, name, hash, params, status, outputs, error, begun, changed";

#[derive(Clone)]
pub(crate) struct PostgresRunStore {
    database: Arc<Database>,
    leases: PostgresLeaseStore,
    cleanup: Arc<Interval>,
}

impl PostgresRunStore {
    pub(crate) fn new(database: Arc<Database>, leases: PostgresLeaseStore) -> Self {
        Self { database, leases, cleanup: Arc::new(Interval::new(CLEANUP_INTERVAL)) }
    }

    async fn insert(&self, owner: &Principal, run: NewRun) -> StoreResult<(String, Lease)> {
        let id = new_id(RUN_PREFIX)?;
        let name = lease_name(&id);
        let lease = self.acquire(&name).await?;
        let insert =
            "INSERT INTO runs (id, tenant, subject, path, name, text, hash, params, status, begun, changed, fence)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'running', now_micros(), now_micros(), $9)";
        let hash = sha256_hex(run.text.as_bytes());
        let (params, token) = (run.params.as_str(), lease.token.cast_signed());
        let values: [&dyn Value; 9] =
            [&id, &owner.tenant, &owner.subject, &run.path, &run.name, &run.text, &hash, &params, &token];
        let mut change = self.database.begin(Port::Runs, Scope::Tenant(&owner.tenant)).await?;
        change.execute(insert, &values).await?;
        change.announce(Port::Runs);
        change.commit().await?;
        Ok((id, lease))
    }

    async fn acquire(&self, name: &str) -> StoreResult<Lease> {
        self.leases.acquire(name, RUN_LEASE_DURATION).await?.ok_or(StoreError::Conflict(Port::Runs))
    }

    /// A run that a process has begun to work on. Writes with an older lease are refused from now on.
    async fn fence(&self, owner: &Principal, id: &str, lease: &Lease) -> StoreResult<StoredRun> {
        let fence = format!(
            "UPDATE runs SET fence = $4 WHERE id = $1 AND tenant = $2 AND subject = $3 AND fence < $4
             RETURNING {RUN_COLUMNS}, text, true"
        );
        let mut change = self.database.begin(Port::Runs, Scope::Tenant(&owner.tenant)).await?;
        let values: [&dyn Value; 4] = [&id, &owner.tenant, &owner.subject, &lease.token.cast_signed()];
        let run = change.query_opt(&fence, &values).await?.ok_or_else(unknown_run)?;
        let steps = change.query(&steps_query(true), &[&id]).await?;
        change.commit().await?;
        Ok(with_steps(&run, &steps))
    }

    async fn find(&self, owner: &Principal, id: &str) -> StoreResult<StoredRun> {
        if !is_id(RUN_PREFIX, id) {
            return Err(unknown_run());
        }
        // In one statement: a holder that released its lease has written everything before.
        let find = format!(
            "SELECT {RUN_COLUMNS}, text, {} FROM runs WHERE id = $1 AND tenant = $2 AND subject = $3",
            is_leased("id")
        );
        let scope = Scope::Tenant(&owner.tenant);
        let values: [&dyn Value; 3] = [&id, &owner.tenant, &owner.subject];
        let rows = self.database.read(Port::Runs, scope, &find, &values).await?;
        let run = rows.first().ok_or_else(unknown_run)?;
        let steps = self.database.read(Port::Runs, scope, &steps_query(false), &[&id]).await?;
        Ok(with_steps(run, &steps))
    }

    async fn delete_expired(&self) -> StoreResult<()> {
        let retention = i64::try_from(RUN_RETENTION.as_micros()).unwrap_or(i64::MAX);
        let expired = "DELETE FROM runs WHERE id IN (
                SELECT id FROM runs WHERE changed < now_micros() - $1 AND status <> 'running'
                FOR UPDATE SKIP LOCKED
             )";
        self.database.write(Port::Runs, Scope::AllTenants, expired, &[&retention]).await.map(drop)
    }
}

/// Whether a process is working on the run with this id, an expression.
fn is_leased(id: &str) -> String {
    PostgresLeaseStore::is_held(&format!("'{}' || {id}", lease_name("")))
}

fn steps_query(outputs: bool) -> String {
    let output = if outputs { "output" } else { "NULL" };
    format!("SELECT key, status, error, attempts, {output}::text FROM steps WHERE run = $1 ORDER BY number")
}

fn run_from_row(row: &Row) -> StoredRun {
    StoredRun {
        id: row.get(0),
        path: row.get(1),
        name: row.get(2),
        hash: row.get(3),
        params: parse_json(row.get(4)),
        status: RunStatus::parse(row.get(5)),
        outputs: row.get::<_, Option<String>>(6).map(parse_json),
        error: row.get::<_, Option<String>>(7).map(parse_json),
        begun: row.get(8),
        changed: row.get(9),
        text: String::new(),
        is_leased: false,
        steps: Vec::new(),
    }
}

/// A run with its text and whether it is leased, in the columns after [`RUN_COLUMNS`].
fn with_steps(run: &Row, steps: &[Row]) -> StoredRun {
    let steps = steps.iter().map(step_from_row).collect();
    StoredRun { text: run.get(10), is_leased: run.get(11), steps, ..run_from_row(run) }
}

fn step_from_row(row: &Row) -> StoredStep {
    StoredStep {
        key: row.get(0),
        status: row.get(1),
        error: row.get::<_, Option<String>>(2).map(parse_json),
        attempts: parse_json(row.get(3)),
        output: row.get::<_, Option<String>>(4).map(parse_json),
    }
}

/// Stored text is JSON; anything else was put there by another program and becomes null.
fn parse_json(text: String) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::null())
}

fn unknown_run() -> StoreError {
    StoreError::NotFound(Port::Runs)
}

impl Runs for PostgresRunStore {
    fn changes(&self) -> Changes {
        self.database.changes(Port::Runs).or(self.leases.changes())
    }

    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>> {
        Box::pin(async move {
            let owner = &caller.principal;
            if self.cleanup.is_due() {
                self.delete_expired().await?;
            }
            let (id, lease) = self.insert(owner, run).await?;
            Ok(Box::new(PostgresRunLease::new(self, owner, id, lease)) as Box<dyn RunLease>)
        })
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>> {
        Box::pin(async move {
            let owner = &caller.principal;
            self.find(owner, id).await?;
            let lease = self.acquire(&lease_name(id)).await?;
            let lease = PostgresRunLease::new(self, owner, id.to_owned(), lease);
            let run = self.fence(owner, id, &lease.lease).await?;
            Ok((run, Box::new(lease) as Box<dyn RunLease>))
        })
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>> {
        Box::pin(self.find(&caller.principal, id))
    }

    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>> {
        Box::pin(async move {
            let (owner, most) = (&caller.principal, i64::try_from(most).unwrap_or(i64::MAX));
            let list = format!(
                "SELECT {RUN_COLUMNS}, {} FROM runs WHERE tenant = $1 AND subject = $2
                 ORDER BY number DESC LIMIT $3",
                is_leased("id")
            );
            let values: [&dyn Value; 3] = [&owner.tenant, &owner.subject, &most];
            let scope = Scope::Tenant(&owner.tenant);
            let rows = self.database.read(Port::Runs, scope, &list, &values).await?;
            Ok(rows.iter().map(|row| StoredRun { is_leased: row.get(10), ..run_from_row(row) }).collect())
        })
    }
}
