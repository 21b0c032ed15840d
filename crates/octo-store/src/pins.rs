//! What servers list, as it was taken on and as it waits for a decision, in a database of its own.

mod rows;
#[cfg(test)]
mod tests;

use crate::schema::Book;
use crate::{Durability, StoreError, private};
use octo_hub::{PinDelta, PinWrite, Pending, Pin, PinSet, Pins, ServerIdentity};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const PINS: Book = Book {
    file: "pins.db",
    steps: &["
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
pub struct KeptPins(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    durability: Durability,
    opened: Mutex<Option<Connection>>,
}

impl KeptPins {
    pub fn new(dir: &Path, durability: Durability) -> Self {
        Self(Arc::new(Inner { dir: dir.to_owned(), durability, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads, all of it or none.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open().map_err(unusable)?);
            }
            let conn = opened.as_mut().ok_or_else(|| ToolError::internal("the pins are not open"))?;
            within(conn, work).map_err(unusable)
        });
        done.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

fn within<T>(
    conn: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&change)?;
    change.commit()?;
    Ok(done)
}

impl Inner {
    fn open(&self) -> Result<Connection, StoreError> {
        private::directory(&self.dir)?;
        PINS.open(&self.dir, self.durability)
    }
}

fn unusable(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("What servers have listed before cannot be read or written.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

impl Pins for KeptPins {
    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, Result<PinSet, ToolError>> {
        let whose = whose.clone();
        Box::pin(self.with(move |change| rows::load(change, &whose)))
    }

    fn keep<'a>(&'a self, whose: &'a ServerIdentity, news: PinDelta) -> BoxFuture<'a, Result<PinWrite, ToolError>> {
        let server = whose.server.clone();
        Box::pin(self.with(move |change| rows::keep(change, &server, &news)))
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<u64, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.with(move |change| rows::revision(change, &server)))
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<Pending>, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.with(move |change| rows::pending(change, &server)))
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, Result<usize, ToolError>> {
        let server = server.to_owned();
        Box::pin(self.with(move |change| rows::accept(change, &server, &chosen)))
    }
}
