//! A database that is opened on first use. Several processes may have the same one open.

use crate::database::DatabaseSpec;
use crate::database_changes::DatabaseChanges;
use crate::{Durability, SqliteError, private_files};
use octo_ports::{Changes, Port, StoreError, StoreResult};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Why work on a database failed: refused, or impossible.
#[derive(Debug)]
pub(crate) enum WorkError {
    Refused(StoreError),
    Sqlite(SqliteError),
}

pub(crate) type WorkResult<T> = Result<T, WorkError>;

impl From<rusqlite::Error> for WorkError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error.into())
    }
}

impl From<SqliteError> for WorkError {
    fn from(error: SqliteError) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl WorkError {
    pub(crate) fn of_port(self, port: Port) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => StoreError::unavailable(port, error),
        }
    }
}

#[derive(Clone)]
pub(crate) struct LazyDatabase(Arc<Handle>);

struct Handle {
    port: Port,
    open: Box<dyn Fn() -> WorkResult<Connection> + Send + Sync>,
    opened: Mutex<Option<Connection>>,
    changes: DatabaseChanges,
}

impl LazyDatabase {
    pub(crate) fn new(
        port: Port,
        dir: &Path,
        spec: &'static DatabaseSpec,
        open: impl Fn() -> WorkResult<Connection> + Send + Sync + 'static,
    ) -> Self {
        let changes = DatabaseChanges::new(dir, spec);
        Self(Arc::new(Handle { port, open: Box::new(open), opened: Mutex::default(), changes }))
    }

    pub(crate) fn of(port: Port, dir: &Path, spec: &'static DatabaseSpec, durability: Durability) -> Self {
        let path = dir.to_owned();
        Self::new(port, dir, spec, move || {
            private_files::create_private_dir(&path)?;
            Ok(spec.open(&path, durability)?)
        })
    }

    /// Needs a runtime.
    pub(crate) fn changes(&self) -> Changes {
        self.0.changes.subscribe()
    }

    /// Blocks.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Connection) -> WorkResult<R>) -> StoreResult<R> {
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let changed_rows = |opened: &Option<Connection>| opened.as_ref().map_or(0, Connection::total_changes);
        let before = changed_rows(&opened);
        let done = match &mut *opened {
            Some(database) => work(database),
            None => (self.0.open)().and_then(|database| work(opened.insert(database))),
        };
        if changed_rows(&opened) != before {
            self.0.changes.notify();
        }
        done.map_err(|error| error.of_port(self.0.port))
    }

    /// Runs on a blocking thread.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> WorkResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        let database = self.clone();
        let done = tokio::task::spawn_blocking(move || database.with(work));
        done.await.unwrap_or_else(|error| Err(StoreError::internal(error)))
    }

    /// Commits all of the work, or nothing.
    pub(crate) async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> WorkResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        self.run(|conn| {
            let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&change)?;
            change.commit()?;
            Ok(done)
        })
        .await
    }
}
