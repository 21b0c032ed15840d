//! What servers list, as it was taken on and as it waits for a decision, in a database of its own.

mod pin_rows;
#[cfg(test)]
mod tests;

use crate::database::DatabaseSpec;
use crate::{Durability, StoreError, private_files};
use octo_hub::{PendingPin, Pin, PinDelta, PinSet, PinWrite, Pins, ServerIdentity};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "pins.db",
    migrations: &["
    CREATE TABLE servers (
        server TEXT NOT NULL PRIMARY KEY,
        identity TEXT NOT NULL,
        revision INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE pins (
        server TEXT NOT NULL,
        what TEXT NOT NULL,
        key TEXT NOT NULL,
        hash TEXT NOT NULL,
        text TEXT NOT NULL,
        since INTEGER NOT NULL,
        PRIMARY KEY (server, what, key)
    ) STRICT;
    CREATE TABLE seen (
        server TEXT NOT NULL,
        what TEXT NOT NULL,
        key TEXT NOT NULL,
        hash TEXT NOT NULL,
        text TEXT NOT NULL,
        since INTEGER NOT NULL,
        pending INTEGER NOT NULL,
        PRIMARY KEY (server, what, key, hash)
    ) STRICT;
"],
};

/// The pins of all servers in one directory. Several processes may have the same one open; nothing is touched before the
/// first of them is asked for.
#[derive(Clone)]
pub struct SqlitePinStore(Arc<PinStoreState>);

struct PinStoreState {
    dir: PathBuf,
    durability: Durability,
    opened: Mutex<Option<Connection>>,
}

impl SqlitePinStore {
    pub fn new(dir: &Path, durability: Durability) -> Self {
        Self(Arc::new(PinStoreState { dir: dir.to_owned(), durability, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads, all of it or none.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open().map_err(store_error)?);
            }
            let conn = opened.as_mut().ok_or_else(|| ToolError::internal("the pins are not open"))?;
            in_transaction(conn, work).map_err(store_error)
        });
        done.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

fn in_transaction<T>(
    conn: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&change)?;
    change.commit()?;
    Ok(done)
}

impl PinStoreState {
    fn open(&self) -> Result<Connection, StoreError> {
        private_files::create_private_dir(&self.dir)?;
        DATABASE.open(&self.dir, self.durability)
    }
}

fn store_error(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("What servers have listed before cannot be read or written.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

impl Pins for SqlitePinStore {
    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, Result<PinSet, ToolError>> {
        let whose = whose.clone();
        Box::pin(self.run_blocking(move |change| pin_rows::load(change, &whose)))
    }

    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, Result<PinWrite, ToolError>> {
        let server = whose.server.clone();
        Box::pin(self.run_blocking(move |change| pin_rows::write(change, &server, &news)))
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<u64, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.run_blocking(move |change| pin_rows::revision(change, &server)))
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<PendingPin>, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.run_blocking(move |change| pin_rows::pending(change, &server)))
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, Result<usize, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.run_blocking(move |change| pin_rows::accept(change, &server, &chosen)))
    }
}
