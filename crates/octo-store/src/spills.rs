//! Large results: each one a file, found through an index that knows whose it is.
//!
//! The row comes before the file and goes after it, so that no crash leaves a file that nothing knows of. A row without
//! its file is answered like no row at all.

use crate::writer::Turn;
use crate::{Options, StoreError, handle, private};
use octo_model::{CallId, Caller, Json, Kind, ToolError};
use rusqlite::Connection;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

const DIRECTORY: &str = "spills";

/// All of it blocks; `Store` calls it from threads that may.
pub(crate) struct Shelf {
    dir: PathBuf,
    index: Mutex<Connection>,
    turn: Turn,
    options: Options,
}

/// Whose a spill is.
pub(crate) struct Owner {
    subject: String,
    tenant: String,
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self { subject: caller.subject.clone(), tenant: caller.tenant.clone() }
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as i64)
}

impl Shelf {
    pub(crate) fn open(
        dir: &Path,
        index: Connection,
        turn: Turn,
        options: Options,
    ) -> Result<Self, StoreError> {
        let dir = dir.join(DIRECTORY);
        private::directory(&dir)?;
        let shelf = Self { dir, index: Mutex::new(index), turn, options };
        shelf.clean()?;
        Ok(shelf)
    }

    pub(crate) fn keep(&self, owner: &Owner, call: CallId, whole: &Json) -> Result<String, ToolError> {
        let size = whole.bytes().len() as u64;
        if size > self.options.spill_quota_bytes {
            return Err(ToolError::new(Kind::TooLarge, "The result is larger than all that may be kept.")
                .hint("Ask for less at a time, or raise the quota of spills."));
        }
        let handle = handle::fresh()?;
        self.note(owner, call, &handle, size).map_err(unkept)?;
        self.write(&handle, whole).map_err(|error| {
            self.remove(std::slice::from_ref(&handle))
                .unwrap_or_else(|error| tracing::warn!(%error, "a spill was left behind"));
            unkept(error)
        })?;
        if let Err(error) = self.clean() {
            tracing::warn!(%error, "old spills could not be removed");
        }
        Ok(handle)
    }

    pub(crate) fn load(&self, owner: &Owner, handle: &str) -> Result<Json, ToolError> {
        // The three are one answer, so that nobody learns which handles exist.
        if !handle::is_handle(handle) || !self.knows(owner, handle).map_err(ToolError::internal)? {
            return Err(unknown());
        }
        let text = std::fs::read(self.dir.join(handle)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(),
            _ => ToolError::internal(error),
        })?;
        Json::parse(text)
            .map_err(|fault| ToolError::internal(format!("the spill {handle} is damaged: {fault}")))
    }

    fn index(&self) -> MutexGuard<'_, Connection> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, owner: &Owner, call: CallId, handle: &str, size: u64) -> rusqlite::Result<()> {
        let index = self.index();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        index
            .prepare_cached(
                "INSERT INTO spills (handle, subject, tenant, call, size, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((handle, &owner.subject, &owner.tenant, call.to_string(), size.cast_signed(), now()))
            .map(drop)
    }

    fn knows(&self, owner: &Owner, handle: &str) -> rusqlite::Result<bool> {
        self.index()
            .prepare_cached(
                "SELECT 1 FROM spills WHERE handle = ?1 AND subject = ?2 AND tenant = ?3 AND created > ?4",
            )?
            .exists((handle, &owner.subject, &owner.tenant, self.expired_at()))
    }

    /// What was created then or earlier is over.
    fn expired_at(&self) -> i64 {
        let ttl = i64::try_from(self.options.spill_ttl.as_micros()).unwrap_or(i64::MAX);
        now().saturating_sub(ttl)
    }

    /// Whoever sees the file under its name sees all of it.
    fn write(&self, handle: &str, whole: &Json) -> std::io::Result<()> {
        let part = self.part(handle);
        let mut file = private::create(&part)?;
        file.write_all(whole.bytes())?;
        let power = self.options.durability == crate::Durability::Power;
        if power {
            file.sync_all()?;
        }
        std::fs::rename(&part, self.dir.join(handle))?;
        if power { std::fs::File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }

    fn part(&self, handle: &str) -> PathBuf {
        self.dir.join(format!("{handle}.part"))
    }

    /// Removes what is over, and the oldest of what is too much.
    fn clean(&self) -> rusqlite::Result<()> {
        let gone = self.surplus()?;
        if gone.is_empty() { Ok(()) } else { self.remove(&gone) }
    }

    fn surplus(&self) -> rusqlite::Result<Vec<String>> {
        let index = self.index();
        let expired_at = self.expired_at();
        let quota = self.options.spill_quota_bytes.min(i64::MAX as u64).cast_signed();
        // Row numbers rise, so the newest are summed up until they fill the quota.
        let mut statement = index.prepare_cached(
            "SELECT handle FROM (SELECT handle, created, sum(size) OVER (ORDER BY id DESC) AS filled FROM spills)
             WHERE created <= ?1 OR filled > ?2",
        )?;
        let handles = statement.query_map((expired_at, quota), |row| row.get(0))?;
        handles.collect()
    }

    fn remove(&self, handles: &[String]) -> rusqlite::Result<()> {
        for handle in handles {
            for file in [self.dir.join(handle), self.part(handle)] {
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        tracing::warn!(%error, file = %file.display(), "a spill could not be removed");
                    }
                    _ => {}
                }
            }
        }
        let mut index = self.index();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let change = index.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for handle in handles {
            change.prepare_cached("DELETE FROM spills WHERE handle = ?1")?.execute([handle])?;
        }
        change.commit()
    }
}

fn unknown() -> ToolError {
    ToolError::not_found("There is no result under this handle, or no longer.")
        .hint("Run the tool again; its answer has a new handle.")
}

fn unkept(error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The whole result could not be kept.")
        .hint("Ask for less at a time; the hub's disk may be full.")
        .detail(error)
}
