//! Runs of workflows, in a database of their own. Who works on a run holds a lock on a file of it, which the kernel lets
//! go when the process ends, however it ends.

mod run_lease;
#[cfg(test)]
mod tests;

use crate::database::DatabaseSpec;
use crate::result_files::now_micros;
use crate::{Durability, StoreError, private_files, result_handle};
use aws_lc_rs::digest::{SHA256, digest};
use octo_hub::{LeasedRun, NewRun, RunLease, RunStatus, Runs, StoredRun, StoredStep};
use octo_model::{Caller, Json, Kind, Principal, ToolError};
use octo_toolkit::BoxFuture;
use run_lease::{FileRunLease, LockFile};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "runs.db",
    migrations: &["
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
"],
};

const RUN_ID_PREFIX: &str = "w_";
const LOCK_DIRECTORY: &str = "runs";
/// How often a lock is tried for, and how long apart.
const MAX_LOCK_ATTEMPTS: u32 = 5;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);
/// A run that ended is kept this long after its last change, in microseconds: thirty days.
const RETENTION_MICROS: i64 = 30 * 24 * 60 * 60 * 1_000_000;

/// The runs of all callers in one directory. Several processes may have the same one open; nothing is touched before the
/// first run is asked for.
#[derive(Clone)]
pub struct SqliteRunStore(Arc<RunDatabase>);

/// All of it blocks.
struct RunDatabase {
    dir: PathBuf,
    durability: Durability,
    opened: Mutex<Option<Connection>>,
}

impl SqliteRunStore {
    pub fn new(dir: &Path, durability: Durability) -> Self {
        Self(Arc::new(RunDatabase { dir: dir.to_owned(), durability, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<RunDatabase>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let shelf = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&shelf));
        done.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

impl RunDatabase {
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ToolError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = Some(self.open().map_err(store_error)?);
        }
        match opened.as_ref() {
            Some(conn) => work(conn).map_err(store_error),
            None => Err(ToolError::internal("the runs are not open")),
        }
    }

    fn open(&self) -> Result<Connection, StoreError> {
        private_files::create_private_dir(&self.dir)?;
        private_files::create_private_dir(&self.dir.join(LOCK_DIRECTORY))?;
        DATABASE.open(&self.dir, self.durability)
    }

    fn lock(&self, id: &str) -> Result<Option<LockFile>, ToolError> {
        // The directory is there once the database is.
        self.with(|_| Ok(()))?;
        let path = self.lock_file(id);
        for _ in 0..MAX_LOCK_ATTEMPTS {
            if let Some(lock) = LockFile::try_lock(&path).map_err(store_error)? {
                return Ok(Some(lock));
            }
            // Somebody may only be looking whether it is taken, which is over in a moment.
            std::thread::sleep(LOCK_RETRY_DELAY);
        }
        Ok(None)
    }

    fn lock_file(&self, id: &str) -> PathBuf {
        self.dir.join(LOCK_DIRECTORY).join(format!("{id}.lock"))
    }

    fn begin(&self, owner: &Principal, run: &NewRun) -> Result<(String, LockFile), ToolError> {
        let id = result_handle::new_handle()?.replacen(result_handle::HANDLE_PREFIX, RUN_ID_PREFIX, 1);
        let lock = self.lock(&id)?.ok_or_else(|| ToolError::internal("a new run is locked"))?;
        let at = now_micros();
        self.with(|conn| {
            self.delete_expired(conn, at.saturating_sub(RETENTION_MICROS))?;
            conn.prepare_cached(
                "INSERT INTO runs (id, tenant, subject, path, name, text, hash, params, status, begun, changed)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'running', ?9, ?9)",
            )?
            .execute((
                &id,
                &owner.tenant,
                &owner.subject,
                &run.path,
                &run.name,
                &run.text,
                fingerprint(&run.text),
                run.params.as_str(),
                at,
            ))
        })?;
        Ok((id, lock))
    }

    /// Removes runs that ended long ago, with their steps.
    fn delete_expired(&self, conn: &Connection, before: i64) -> rusqlite::Result<()> {
        let old: Vec<String> = conn
            .prepare_cached("SELECT id FROM runs WHERE changed < ?1 AND status <> 'running'")?
            .query_map([before], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in old {
            conn.prepare_cached("DELETE FROM steps WHERE run = ?1")?.execute([&id])?;
            conn.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([&id])?;
            let _ = std::fs::remove_file(self.lock_file(&id));
        }
        Ok(())
    }

    fn find(&self, owner: &Principal, id: &str, outputs: bool) -> Result<StoredRun, ToolError> {
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

    /// Whether some process works on the run.
    fn is_locked(&self, id: &str) -> Result<bool, ToolError> {
        LockFile::is_locked(&self.lock_file(id)).map_err(store_error)
    }
}

fn run_from_row(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let status: String = row.get(5)?;
    Ok(StoredRun {
        id: row.get(0)?,
        path: row.get(1)?,
        name: row.get(2)?,
        hash: row.get(3)?,
        params: parse_json(row.get(4)?),
        status: RunStatus::ALL
            .into_iter()
            .find(|known| known.as_str() == status)
            .unwrap_or(RunStatus::Failed),
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

/// What was written is JSON; what somebody else has put there instead is nothing.
fn parse_json(text: String) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::null())
}

fn fingerprint(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unknown_run() -> ToolError {
    ToolError::not_found("There is no such run, or no longer.")
        .hint("Begin a new one with the path of its workflow and without run_id.")
}

fn run_locked_error() -> ToolError {
    ToolError::new(Kind::Conflict, "Another process works on this run at this moment.")
        .hint("Ask for it again without redo, skip and resume to see how it is doing.")
}

fn store_error(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The runs of workflows cannot be read or written.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

/// A run's id names a file, so it is looked at before anything else is.
fn is_run_id(id: &str) -> bool {
    id.strip_prefix(RUN_ID_PREFIX)
        .is_some_and(|rest| result_handle::is_handle(&format!("{}{rest}", result_handle::HANDLE_PREFIX)))
}

impl Runs for SqliteRunStore {
    fn begin<'a>(
        &'a self,
        caller: &'a Caller,
        run: NewRun,
    ) -> BoxFuture<'a, Result<Box<dyn RunLease>, ToolError>> {
        let owner = caller.principal.clone();
        let shelf = self.clone();
        Box::pin(async move {
            let (id, lock) = self.run_blocking(move |shelf| shelf.begin(&owner, &run)).await?;
            Ok(Box::new(FileRunLease::new(shelf, id, lock)) as Box<dyn RunLease>)
        })
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<LeasedRun, ToolError>> {
        let (owner, id, shelf) = (caller.principal.clone(), id.to_owned(), self.clone());
        Box::pin(async move {
            if !is_run_id(&id) {
                return Err(unknown_run());
            }
            let (run, lock) = self
                .run_blocking(move |shelf| {
                    // Asked twice: whose it is, and what it is once nobody else can change it.
                    shelf.find(&owner, &id, false)?;
                    let lock = shelf.lock(&id)?.ok_or_else(run_locked_error)?;
                    Ok((StoredRun { is_leased: true, ..shelf.find(&owner, &id, true)? }, lock))
                })
                .await?;
            let pen = FileRunLease::new(shelf, run.id.clone(), lock);
            Ok((run, Box::new(pen) as Box<dyn RunLease>))
        })
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, Result<StoredRun, ToolError>> {
        let (owner, id) = (caller.principal.clone(), id.to_owned());
        Box::pin(async move {
            if !is_run_id(&id) {
                return Err(unknown_run());
            }
            self.run_blocking(move |shelf| {
                // The lock first: who let it go has written everything before.
                let held = shelf.find(&owner, &id, false).and_then(|_| shelf.is_locked(&id))?;
                Ok(StoredRun { is_leased: held, ..shelf.find(&owner, &id, false)? })
            })
            .await
        })
    }

    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<StoredRun>, ToolError>> {
        let owner = caller.principal.clone();
        Box::pin(self.run_blocking(move |shelf| {
            let mut runs: Vec<StoredRun> = shelf.with(|conn| {
                conn.prepare_cached(
                    "SELECT id, path, name, hash, params, status, outputs, error, begun, changed FROM runs
                     WHERE tenant = ?1 AND subject = ?2 ORDER BY number DESC LIMIT ?3",
                )?
                .query_map((&owner.tenant, &owner.subject, most as i64), run_from_row)?
                .collect()
            })?;
            for run in &mut runs {
                run.is_leased = shelf.is_locked(&run.id)?;
            }
            Ok(runs)
        }))
    }
}
