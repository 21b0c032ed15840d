//! Workflow runs, in a separate database. The process that works on a run has a lease of it, and every write
//! carries the token of that lease.

mod run_lease;
#[cfg(test)]
mod tests;

use crate::Durability;
use crate::database::DatabaseSpec;
use crate::lazy_database::LazyDatabase;
use crate::lease_store::SqliteLeaseStore;
use crate::result_files::now_micros;
use octo_model::{BoxFuture, Caller, Json, Principal, sha256_hex};
use octo_ports::random_id::{RUN_PREFIX, is_id, new_id};
use octo_ports::runs::{RUN_LEASE_DURATION, RUN_RETENTION, lease_name};
use octo_ports::{
    Changes, Lease, LeasedRun, Leases, NewRun, Port, RunLease, RunStatus, Runs, StoreError, StoreResult,
    StoredRun, StoredStep,
};
use run_lease::SqliteRunLease;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};
use std::path::Path;
use std::sync::Arc;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "runs.db",
    migrations: &[
        "
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        hash TEXT NOT NULL,
        params TEXT NOT NULL,
        status TEXT NOT NULL,
        outputs TEXT,
        error TEXT,
        begun INTEGER NOT NULL,
        changed INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX runs_of_callers ON runs (tenant, subject, number);
    CREATE TABLE steps (
        number INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        key TEXT NOT NULL,
        status TEXT NOT NULL,
        output TEXT,
        error TEXT,
        attempts TEXT NOT NULL,
        UNIQUE (run, key)
    ) STRICT;
",
        "
    ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
",
    ],
};

#[derive(Clone)]
pub(crate) struct SqliteRunStore(Arc<RunDatabase>);

/// All methods block.
struct RunDatabase {
    database: LazyDatabase,
    leases: SqliteLeaseStore,
}

impl SqliteRunStore {
    pub(crate) fn new(dir: &Path, durability: Durability, leases: SqliteLeaseStore) -> Self {
        let database = LazyDatabase::of(Port::Runs, dir, &DATABASE, durability);
        Self(Arc::new(RunDatabase { database, leases }))
    }

    /// Runs blocking work off the runtime's threads.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RunDatabase) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let database = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&database));
        done.await.unwrap_or_else(|error| Err(StoreError::internal(error)))
    }
}

impl RunDatabase {
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        self.database.with(|conn| Ok(work(conn)?))
    }

    fn acquire(&self, id: &str) -> StoreResult<Lease> {
        let lease = self.leases.acquire_now(&lease_name(id), RUN_LEASE_DURATION)?;
        lease.ok_or(StoreError::Conflict(Port::Runs))
    }

    /// Refuses writes with an older lease from now on.
    fn fence(&self, lease: &Lease, id: &str) -> StoreResult<()> {
        self.with(|conn| {
            conn.prepare_cached("UPDATE runs SET fence = ?2 WHERE id = ?1 AND fence < ?2")?
                .execute((id, lease.token.cast_signed()))
                .map(drop)
        })
    }

    /// Writes to a run, unless there is a newer lease of it.
    fn write(
        &self,
        lease: &Lease,
        id: &str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> StoreResult<()> {
        self.database.with(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let fence: i64 = change
                .prepare_cached("SELECT fence FROM runs WHERE id = ?1")?
                .query_row([id], |row| row.get(0))?;
            if fence.cast_unsigned() > lease.token {
                return Err(StoreError::Conflict(Port::Runs).into());
            }
            work(&change)?;
            Ok(change.commit()?)
        })
    }

    fn begin(&self, owner: &Principal, run: &NewRun) -> StoreResult<(String, Lease)> {
        let id = new_id(RUN_PREFIX)?;
        let lease = self.acquire(&id)?;
        let at = now_micros();
        self.with(|conn| {
            delete_expired(conn, at.saturating_sub(RUN_RETENTION.as_micros() as i64))?;
            conn.prepare_cached(
                "INSERT INTO runs (id, tenant, subject, path, name, text, hash, params, status, begun, changed, fence)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'running', ?9, ?9, ?10)",
            )?
            .execute((
                &id,
                &owner.tenant,
                &owner.subject,
                &run.path,
                &run.name,
                &run.text,
                sha256_hex(run.text.as_bytes()),
                run.params.as_str(),
                at,
                lease.token.cast_signed(),
            ))
        })?;
        Ok((id, lease))
    }

    fn find(&self, owner: &Principal, id: &str, outputs: bool) -> StoreResult<StoredRun> {
        let found = self.with(|conn| {
            let run = conn
                .prepare_cached(
                    "SELECT id, path, name, hash, params, status, outputs, error, begun, changed, text FROM runs
                     WHERE id = ?1 AND tenant = ?2 AND subject = ?3",
                )?
                .query_row((id, &owner.tenant, &owner.subject), |row| Ok((run_from_row(row)?, row.get(10)?)))
                .optional()?;
            let Some((run, text)) = run else { return Ok(None) };
            let steps = conn
                .prepare_cached(
                    "SELECT key, status, error, attempts, CASE WHEN ?2 THEN output END FROM steps
                     WHERE run = ?1 ORDER BY number",
                )?
                .query_map((id, outputs), step_from_row)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Some(StoredRun { text, steps, ..run }))
        })?;
        found.ok_or_else(unknown_run)
    }

    /// Returns whether a process is working on the run.
    fn is_leased(&self, id: &str) -> StoreResult<bool> {
        Ok(self.leases.holder_now(&lease_name(id))?.is_some())
    }
}

/// Removes runs that ended long ago, with their steps.
fn delete_expired(conn: &mut Connection, before: i64) -> rusqlite::Result<()> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let old = "SELECT id FROM runs WHERE changed < ?1 AND status <> 'running'";
    change.prepare_cached(&format!("DELETE FROM steps WHERE run IN ({old})"))?.execute([before])?;
    change.prepare_cached(&format!("DELETE FROM runs WHERE id IN ({old})"))?.execute([before])?;
    change.commit()
}

fn run_from_row(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let status: String = row.get(5)?;
    Ok(StoredRun {
        id: row.get(0)?,
        path: row.get(1)?,
        name: row.get(2)?,
        hash: row.get(3)?,
        params: parse_json(row.get(4)?),
        status: RunStatus::parse(&status),
        outputs: row.get::<_, Option<String>>(6)?.map(parse_json),
        error: row.get::<_, Option<String>>(7)?.map(parse_json),
        begun: row.get(8)?,
        changed: row.get(9)?,
        text: String::new(),
        is_leased: false,
        steps: Vec::new(),
    })
}

fn step_from_row(row: &Row<'_>) -> rusqlite::Result<StoredStep> {
    Ok(StoredStep {
        key: row.get(0)?,
        status: row.get(1)?,
        error: row.get::<_, Option<String>>(2)?.map(parse_json),
        attempts: parse_json(row.get(3)?),
        output: row.get::<_, Option<String>>(4)?.map(parse_json),
    })
}

/// Stored text is JSON; anything else was put there by another program and becomes null.
fn parse_json(text: String) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::null())
}

fn unknown_run() -> StoreError {
    StoreError::NotFound(Port::Runs)
}

impl Runs for SqliteRunStore {
    fn changes(&self) -> Changes {
        self.0.database.changes().or(self.0.leases.changes())
    }

    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>> {
        let owner = caller.principal.clone();
        Box::pin(async move {
            let (id, lease) = self.run_blocking(move |runs| runs.begin(&owner, &run)).await?;
            Ok(Box::new(SqliteRunLease::new(self.clone(), id, lease)) as Box<dyn RunLease>)
        })
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>> {
        let (owner, id) = (caller.principal.clone(), id.to_owned());
        Box::pin(async move {
            if !is_id(RUN_PREFIX, &id) {
                return Err(unknown_run());
            }
            let (run, lease) = self
                .run_blocking(move |runs| {
                    // Read twice: to check the owner, and again when no one else can change it.
                    runs.find(&owner, &id, false)?;
                    let lease = runs.acquire(&id)?;
                    runs.fence(&lease, &id)?;
                    Ok((StoredRun { is_leased: true, ..runs.find(&owner, &id, true)? }, lease))
                })
                .await?;
            let lease = SqliteRunLease::new(self.clone(), run.id.clone(), lease);
            Ok((run, Box::new(lease) as Box<dyn RunLease>))
        })
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>> {
        let (owner, id) = (caller.principal.clone(), id.to_owned());
        Box::pin(async move {
            if !is_id(RUN_PREFIX, &id) {
                return Err(unknown_run());
            }
            self.run_blocking(move |runs| {
                // The lease first: a holder that released it has written everything before.
                let is_leased = runs.find(&owner, &id, false).and_then(|_| runs.is_leased(&id))?;
                Ok(StoredRun { is_leased, ..runs.find(&owner, &id, false)? })
            })
            .await
        })
    }

    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>> {
        let owner = caller.principal.clone();
        Box::pin(self.run_blocking(move |database| {
            let mut runs: Vec<StoredRun> = database.with(|conn| {
                conn.prepare_cached(
                    "SELECT id, path, name, hash, params, status, outputs, error, begun, changed FROM runs
                     WHERE tenant = ?1 AND subject = ?2 ORDER BY number DESC LIMIT ?3",
                )?
                .query_map((&owner.tenant, &owner.subject, most as i64), run_from_row)?
                .collect()
            })?;
            for run in &mut runs {
                run.is_leased = database.is_leased(&run.id)?;
            }
            Ok(runs)
        }))
    }
}
