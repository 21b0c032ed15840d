//! A database that is opened on first use. Several processes may have the same one open.

use crate::database::DatabaseSpec;
use crate::{Durability, SqliteError, private_files};
use octo_ports::{Port, StoreError, StoreResult};
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

/// `T` is a connection, or a connection with its state.
pub(crate) struct LazyDatabase<T = Connection>(Arc<Handle<T>>);

struct Handle<T> {
    port: Port,
    open: Box<dyn Fn() -> WorkResult<T> + Send + Sync>,
    opened: Mutex<Option<T>>,
}

impl<T> Clone for LazyDatabase<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> LazyDatabase<T> {
    pub(crate) fn new(port: Port, open: impl Fn() -> WorkResult<T> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Handle { port, open: Box::new(open), opened: Mutex::default() }))
    }

    /// Blocks.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> WorkResult<R>) -> StoreResult<R> {
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let done = match &mut *opened {
            Some(database) => work(database),
            None => (self.0.open)().and_then(|database| work(opened.insert(database))),
        };
        done.map_err(|error| error.of_port(self.0.port))
    }

    /// Runs on a blocking thread.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut T) -> WorkResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        let database = self.clone();
        let done = tokio::task::spawn_blocking(move || database.with(work));
        done.await.unwrap_or_else(|error| Err(StoreError::internal(error)))
    }
}

impl LazyDatabase {
    pub(crate) fn of(port: Port, dir: &Path, spec: &'static DatabaseSpec, durability: Durability) -> Self {
        let dir = dir.to_owned();
        Self::new(port, move || {
            private_files::create_private_dir(&dir)?;
            Ok(spec.open(&dir, durability)?)
        })
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
