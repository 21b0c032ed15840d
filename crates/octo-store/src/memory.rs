//! Memories on SQLite: a separate file, one writer thread, and any number of concurrent readers.

mod entity_search;
mod index_rebuild;
mod memory_query;
mod memory_schema;
mod memory_view;
mod memory_writer;
mod remove;
#[cfg(test)]
mod tests;
mod transaction;
mod upsert;
mod word_index;

pub(crate) use index_rebuild::rebuild_index;
pub(crate) use memory_schema::DATABASE;

use crate::lazy_database::WorkResult;
use crate::{Durability, SqliteError, private_files};
use memory_writer::MemoryWriter;
use octo_model::BoxFuture;
use octo_ports::memory::{
    Dump, EndedFact, EntityPage, ForgetTarget, Link, LinkResult, MemoryCaller, MemoryQuery, MemoryStore,
    NameMatch, NewEntity, PageRequest, QueryResult, Removal, UpsertResult,
};
use octo_ports::{Port, StoreError, StoreResult};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Page cache of the writer in KiB: the index rewrites its newest segments frequently.
const WRITER_CACHE_SIZE: i64 = -65_536;
const READER_CACHE_SIZE: i64 = -8_192;
const MAX_CACHED_STATEMENTS: usize = 64;
/// Maximum idle readers.
const MAX_IDLE_READERS: usize = 8;

/// The memories of all callers in one directory. Several processes may have the same one open; no file is
/// touched before the first use. Dropping it writes what is queued and waits for that.
pub(crate) struct SqliteMemoryStore {
    writer: OnceCell<MemoryWriter>,
    readers: Arc<ReaderPool>,
    durability: Durability,
    quota_bytes: u64,
}

impl SqliteMemoryStore {
    /// The memories in `dir`, which is created or made private.
    pub(crate) fn new(dir: &Path, durability: Durability, quota_bytes: u64) -> Self {
        let readers = Arc::new(ReaderPool { dir: dir.to_owned(), idle: Mutex::default() });
        Self { writer: OnceCell::new(), readers, durability, quota_bytes }
    }

    async fn open_writer(&self) -> StoreResult<&MemoryWriter> {
        let open = || async {
            let (dir, durability) = (self.readers.dir.clone(), self.durability);
            let opened = tokio::task::spawn_blocking(move || open(&dir, durability));
            opened.await.map_err(StoreError::internal)?.map_err(unusable)
        };
        self.writer.get_or_try_init(open).await
    }

    /// Reads one memory; one that was never written to counts as empty.
    fn read<T: Default + Send + 'static>(
        &self,
        asker: MemoryCaller,
        work: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, StoreResult<T>> {
        let readers = Arc::clone(&self.readers);
        let look = move || {
            readers.with(|conn| match transaction::owner_id(conn, &asker)? {
                Some(owner) => work(conn, owner),
                None => Ok(T::default()),
            })
        };
        Box::pin(async move {
            self.open_writer().await?;
            tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(StoreError::internal(error)))
        })
    }

    fn write<T: Send + 'static>(
        &self,
        asker: MemoryCaller,
        work: impl FnOnce(&mut transaction::MemoryTxn<'_>, &transaction::MemoryOwner) -> WorkResult<T>
        + Send
        + 'static,
    ) -> BoxFuture<'_, StoreResult<T>> {
        let quota = self.quota_bytes;
        let change = move |pen: &mut transaction::MemoryTxn<'_>| {
            let owner = pen.open_owner(&asker, quota)?;
            work(pen, &owner)
        };
        Box::pin(async move { self.open_writer().await?.write(change).await })
    }
}

fn unusable(error: impl std::fmt::Display) -> StoreError {
    StoreError::unavailable(Port::Memory, error)
}

fn open(dir: &Path, durability: Durability) -> Result<MemoryWriter, SqliteError> {
    private_files::create_private_dir(dir)?;
    let conn = memory_schema::DATABASE.open(dir, durability)?;
    let beside = memory_schema::DATABASE.open(dir, durability)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE_SIZE)?;
    conn.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // Erased data is overwritten, too.
    conn.pragma_update(None, "secure_delete", true)?;
    MemoryWriter::start(conn, beside)
}

impl MemoryStore for SqliteMemoryStore {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        self.write(asker, move |pen, owner| upsert::upsert(pen, owner, &entities, names))
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        self.write(asker, move |pen, owner| upsert::link(pen, owner, &links, names))
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        self.read(asker, move |conn, owner| memory_query::query(conn, owner, &question))
    }

    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        self.read(asker, move |conn, owner| memory_query::history(conn, owner, &name, limit))
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        self.read(asker, move |conn, owner| memory_query::list(conn, owner, &page))
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        self.write(asker, move |pen, owner| remove::delete(pen, owner, &names, removal))
    }

    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        self.write(asker, move |pen, owner| remove::forget(pen, owner, &what, removal))
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        self.read(asker, move |conn, owner| memory_query::dump(conn, owner, after, limit))
    }
}

/// Read-only connections, created on demand.
struct ReaderPool {
    dir: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl ReaderPool {
    /// All work sees one state of the file.
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> StoreResult<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => self.connect().map_err(unusable)?,
        };
        let outcome: StoreResult<T> = conn.transaction().and_then(|look| work(&look)).map_err(unusable);
        if outcome.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE_READERS {
                idle.push(conn);
            }
        }
        outcome
    }

    fn connect(&self) -> Result<Connection, SqliteError> {
        let conn = memory_schema::DATABASE.read(&self.dir)?;
        conn.pragma_update(None, "cache_size", READER_CACHE_SIZE)?;
        conn.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        Ok(conn)
    }
}
