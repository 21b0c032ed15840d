//! The right to write one run: a lock on a file, and what is written with it.

use super::SqliteRunStore;
use crate::private_files;
use crate::result_files::now_micros;
use octo_hub::{RunLease, RunStatus, StoredStep};
use octo_model::{Json, ToolError};
use octo_toolkit::BoxFuture;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::Path;

/// A locked file. The kernel unlocks it with the last descriptor, so a killed process holds nothing.
pub(super) struct LockFile(File);

impl LockFile {
    /// Nothing when somebody else has it.
    pub(super) fn try_lock(path: &Path) -> Result<Option<Self>, Error> {
        let file = match private_files::create_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path)?
            }
            made => made?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn is_locked(path: &Path) -> Result<bool, Error> {
        let file = match OpenOptions::new().write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        // Shared, so that two who only look do not see each other.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

pub(super) struct FileRunLease {
    runs: SqliteRunStore,
    id: String,
    lock: LockFile,
}

impl FileRunLease {
    pub(super) fn new(runs: SqliteRunStore, id: String, lock: LockFile) -> Self {
        Self { runs, id, lock }
    }
}

impl Drop for FileRunLease {
    fn drop(&mut self) {
        let _ = self.lock.0.unlock();
    }
}

impl RunLease for FileRunLease {
    fn id(&self) -> &str {
        &self.id
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, Result<(), ToolError>> {
        let id = self.id.clone();
        Box::pin(self.runs.run_blocking(move |shelf| {
            let text = |json: &Option<Json>| json.as_ref().map(|json| json.as_str().to_owned());
            shelf.with(|conn| {
                conn.prepare_cached(
                    "INSERT INTO steps (run, key, status, output, error, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (run, key) DO UPDATE SET status = ?3, output = ?4, error = ?5, attempts = ?6",
                )?
                .execute((&id, &step.key, &step.status, text(&step.output), text(&step.error), step.attempts.as_str()))
                .map(drop)
            })
        }))
    }

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, Result<(), ToolError>> {
        let id = self.id.clone();
        Box::pin(self.runs.run_blocking(move |shelf| {
            let text = |json: Option<Json>| json.map(|json| json.as_str().to_owned());
            let values = (&id, status.as_str(), text(outputs), text(error), now_micros());
            shelf.with(|conn| {
                conn.prepare_cached(
                    "UPDATE runs SET status = ?2, outputs = ?3, error = ?4, changed = ?5 WHERE id = ?1",
                )?
                .execute(values)
                .map(drop)
            })
        }))
    }
}
