//! Memories on SQLite: a file of their own, one thread that writes, and as many readers as ask at once.

mod entity_search;
mod memory_query;
mod memory_schema;
mod memory_view;
mod memory_writer;
mod rank;
mod remove;
#[cfg(test)]
mod tests;
mod tokenize;
mod transaction;
mod upsert;
mod word_index;

use crate::{Durability, StoreError, private_files};
use memory_writer::MemoryWriter;
use octo_grants::memory::{
    Dump, EntityPage, ForgetTarget, Link, LinkResult, MemoryCaller, MemoryQuery, MemoryStore, NameMatch,
    NewEntity, PageRequest, QueryResult, Removal, StoreFuture, UpsertResult,
};
use octo_model::ToolError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use transaction::MemoryError;

/// How memories are kept.
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    pub durability: Durability,
    /// How much the memory of one subject may hold, texts and what they take beside.
    pub quota_bytes: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { durability: Durability::default(), quota_bytes: 4 << 30 }
    }
}

/// Pages that the writer keeps in memory, in KiB: the index rewrites its newest parts again and again.
const WRITER_CACHE_SIZE: i64 = -65_536;
const READER_CACHE_SIZE: i64 = -8_192;
const MAX_CACHED_STATEMENTS: usize = 64;
/// Idle readers that are kept.
const MAX_IDLE_READERS: usize = 8;

/// The memories of all callers in one directory. Several processes may have the same one open; nothing is touched before
/// the first of them is asked for. Dropping it writes what is still queued and waits for that.
pub struct SqliteMemoryStore {
    writer: OnceCell<MemoryWriter>,
    readers: Arc<ReaderPool>,
    options: MemoryOptions,
}

impl SqliteMemoryStore {
    /// The memories in `dir`, which is made when it is not there and closed to others when it is.
    pub fn new(dir: &Path, options: MemoryOptions) -> Self {
        let readers = Arc::new(ReaderPool { dir: dir.to_owned(), idle: Mutex::default() });
        Self { writer: OnceCell::new(), readers, options }
    }

    async fn open_writer(&self) -> Result<&MemoryWriter, ToolError> {
        let open = || async {
            let (dir, durability) = (self.readers.dir.clone(), self.options.durability);
            let opened = tokio::task::spawn_blocking(move || open(&dir, durability));
            opened.await.map_err(ToolError::internal)?.map_err(ToolError::internal)
        };
        self.writer.get_or_try_init(open).await
    }

    /// Looks at one memory; one that nobody has written to is as good as empty.
    fn read<T: Default + Send + 'static>(
        &self,
        asker: MemoryCaller,
        work: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let readers = Arc::clone(&self.readers);
        let look = move || {
            readers.with(|conn| match transaction::owner_id(conn, &asker)? {
                Some(owner) => work(conn, owner),
                None => Ok(T::default()),
            })
        };
        Box::pin(async move {
            self.open_writer().await?;
            tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(ToolError::internal(error)))
        })
    }

    fn write<T: Send + 'static>(
        &self,
        asker: MemoryCaller,
        work: impl FnOnce(&mut transaction::MemoryTxn<'_>, &transaction::MemoryOwner) -> Result<T, MemoryError>
        + Send
        + 'static,
    ) -> StoreFuture<'_, T> {
        let quota = self.options.quota_bytes;
        let change = move |pen: &mut transaction::MemoryTxn<'_>| {
            let owner = pen.open_owner(&asker, quota)?;
            work(pen, &owner)
        };
        Box::pin(async move { self.open_writer().await?.write(change).await })
    }
}

fn open(dir: &Path, durability: Durability) -> Result<MemoryWriter, StoreError> {
    private_files::create_private_dir(dir)?;
    let conn = memory_schema::DATABASE.open(dir, durability)?;
    let beside = memory_schema::DATABASE.open(dir, durability)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE_SIZE)?;
    conn.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // What is erased is overwritten, too.
    conn.pragma_update(None, "secure_delete", true)?;
    MemoryWriter::start(conn, beside)
}

impl MemoryStore for SqliteMemoryStore {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> StoreFuture<'_, Vec<UpsertResult>> {
        self.write(asker, move |pen, owner| upsert::upsert(pen, owner, &entities, names))
    }

    fn link(&self, asker: MemoryCaller, links: Vec<Link>, names: NameMatch) -> StoreFuture<'_, LinkResult> {
        self.write(asker, move |pen, owner| upsert::link(pen, owner, &links, names))
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> StoreFuture<'_, QueryResult> {
        self.read(asker, move |conn, owner| memory_query::query(conn, owner, &question))
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> StoreFuture<'_, EntityPage> {
        self.read(asker, move |conn, owner| memory_query::list(conn, owner, &page))
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> StoreFuture<'_, Vec<String>> {
        self.write(asker, move |pen, owner| remove::delete(pen, owner, &names, removal))
    }

    fn forget(&self, asker: MemoryCaller, what: ForgetTarget, removal: Removal) -> StoreFuture<'_, u64> {
        self.write(asker, move |pen, owner| remove::forget(pen, owner, &what, removal))
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> StoreFuture<'_, Dump> {
        self.read(asker, move |conn, owner| memory_query::dump(conn, owner, after, limit))
    }
}

/// Connections that can only read, made when they are needed.
struct ReaderPool {
    dir: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl ReaderPool {
    /// All of the work sees one state of the file.
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ToolError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => self.connect().map_err(ToolError::internal)?,
        };
        let outcome: Result<T, ToolError> =
            conn.transaction().and_then(|look| work(&look)).map_err(|error| MemoryError::from(error).into());
        if outcome.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE_READERS {
                idle.push(conn);
            }
        }
        outcome
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let conn = memory_schema::DATABASE.read(&self.dir)?;
        conn.pragma_update(None, "cache_size", READER_CACHE_SIZE)?;
        conn.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        Ok(conn)
    }
}
