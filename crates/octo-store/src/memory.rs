//! Memories on SQLite: a file of their own, one thread that writes, and as many readers as ask at once.

mod add;
mod ask;
mod index;
mod look;
mod pen;
mod rank;
mod remove;
mod search;
mod stem;
mod tables;
#[cfg(test)]
mod tests;
mod words;
mod writer;

use crate::{Durability, StoreError, private};
use octo_grants::memory::{
    Answer, Asker, Dump, Forget, Link, Linked, Listed, Names, NewEntity, Page, Pending, Question, Remembers,
    Removal, Upserted,
};
use octo_model::ToolError;
use pen::Fault;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use writer::Writer;

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
const WRITER_CACHE: i64 = -65_536;
const READER_CACHE: i64 = -8_192;
const STATEMENTS: usize = 64;
/// Idle readers that are kept.
const READERS: usize = 8;

/// The memories of all callers in one directory. Several processes may have the same one open; nothing is touched before
/// the first of them is asked for. Dropping it writes what is still queued and waits for that.
pub struct Memories {
    writer: OnceCell<Writer>,
    readers: Arc<Readers>,
    options: MemoryOptions,
}

impl Memories {
    /// The memories in `dir`, which is made when it is not there and closed to others when it is.
    pub fn new(dir: &Path, options: MemoryOptions) -> Self {
        let readers = Arc::new(Readers { dir: dir.to_owned(), idle: Mutex::default() });
        Self { writer: OnceCell::new(), readers, options }
    }

    async fn opened(&self) -> Result<&Writer, ToolError> {
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
        asker: Asker,
        work: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'_, T> {
        let readers = Arc::clone(&self.readers);
        let look = move || {
            readers.with(|conn| match pen::owner_id(conn, &asker)? {
                Some(owner) => work(conn, owner),
                None => Ok(T::default()),
            })
        };
        Box::pin(async move {
            self.opened().await?;
            tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| Err(ToolError::internal(error)))
        })
    }

    fn write<T: Send + 'static>(
        &self,
        asker: Asker,
        work: impl FnOnce(&mut pen::Pen<'_>, &pen::Owner) -> Result<T, Fault> + Send + 'static,
    ) -> Pending<'_, T> {
        let quota = self.options.quota_bytes;
        let change = move |pen: &mut pen::Pen<'_>| {
            let owner = pen.owner(&asker, quota)?;
            work(pen, &owner)
        };
        Box::pin(async move { self.opened().await?.write(change).await })
    }
}

fn open(dir: &Path, durability: Durability) -> Result<Writer, StoreError> {
    private::directory(dir)?;
    let conn = tables::MEMORY.open(dir, durability)?;
    let beside = tables::MEMORY.open(dir, durability)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // What is erased is overwritten, too.
    conn.pragma_update(None, "secure_delete", true)?;
    Writer::start(conn, beside)
}

impl Remembers for Memories {
    fn upsert(&self, asker: Asker, entities: Vec<NewEntity>, names: Names) -> Pending<'_, Vec<Upserted>> {
        self.write(asker, move |pen, owner| add::upsert(pen, owner, &entities, names))
    }

    fn link(&self, asker: Asker, links: Vec<Link>, names: Names) -> Pending<'_, Linked> {
        self.write(asker, move |pen, owner| add::link(pen, owner, &links, names))
    }

    fn ask(&self, asker: Asker, question: Question) -> Pending<'_, Answer> {
        self.read(asker, move |conn, owner| ask::ask(conn, owner, &question))
    }

    fn list(&self, asker: Asker, page: Page) -> Pending<'_, Listed> {
        self.read(asker, move |conn, owner| ask::list(conn, owner, &page))
    }

    fn delete(&self, asker: Asker, names: Vec<String>, removal: Removal) -> Pending<'_, Vec<String>> {
        self.write(asker, move |pen, owner| remove::delete(pen, owner, &names, removal))
    }

    fn forget(&self, asker: Asker, what: Forget, removal: Removal) -> Pending<'_, u64> {
        self.write(asker, move |pen, owner| remove::forget(pen, owner, &what, removal))
    }

    fn dump(&self, asker: Asker, after: i64, limit: usize) -> Pending<'_, Dump> {
        self.read(asker, move |conn, owner| ask::dump(conn, owner, after, limit))
    }
}

/// Connections that can only read, made when they are needed.
struct Readers {
    dir: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// All of the work sees one state of the file.
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ToolError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => self.connect().map_err(ToolError::internal)?,
        };
        let outcome: Result<T, ToolError> =
            conn.transaction().and_then(|look| work(&look)).map_err(|error| Fault::from(error).into());
        if outcome.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < READERS {
                idle.push(conn);
            }
        }
        outcome
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let conn = tables::MEMORY.read(&self.dir)?;
        conn.pragma_update(None, "cache_size", READER_CACHE)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(conn)
    }
}
