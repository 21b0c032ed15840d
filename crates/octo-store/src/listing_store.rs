//! What each server behind the hub listed last, in a database of its own. Nothing here is secret, and nothing is lost
//! with it: a server that is not found is started once to be listed.

use crate::database::DatabaseSpec;
use crate::{Durability, StoreError, private_files};
use octo_grants::listing_cache::ListingStore;
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "lists.db",
    migrations: &["
    CREATE TABLE lists (
        server TEXT NOT NULL PRIMARY KEY,
        mark TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
"],
};

/// The last lists of one directory. Several processes may have the same one open; nothing is touched before the first is
/// asked for.
#[derive(Clone)]
pub struct SqliteListingStore(Arc<ListingStoreState>);

struct ListingStoreState {
    dir: PathBuf,
    durability: Durability,
    opened: Mutex<Option<Connection>>,
}

impl SqliteListingStore {
    pub fn new(dir: &Path, durability: Durability) -> Self {
        Self(Arc::new(ListingStoreState { dir: dir.to_owned(), durability, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open().map_err(store_error)?);
            }
            let conn = opened.as_ref().ok_or_else(|| ToolError::internal("the lists are not open"))?;
            work(conn).map_err(store_error)
        });
        done.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

impl ListingStoreState {
    fn open(&self) -> Result<Connection, StoreError> {
        private_files::create_private_dir(&self.dir)?;
        DATABASE.open(&self.dir, self.durability)
    }
}

fn store_error(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The lists of the servers cannot be read or written.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

impl ListingStore for SqliteListingStore {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        let key = (server.to_owned(), mark.to_owned());
        Box::pin(self.run_blocking(move |conn| {
            let mut find = conn.prepare_cached("SELECT text FROM lists WHERE server = ?1 AND mark = ?2")?;
            find.query_row(key, |row| row.get(0)).optional()
        }))
    }

    fn put<'a>(
        &'a self,
        server: &'a str,
        mark: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let row = (server.to_owned(), mark.to_owned(), text);
        Box::pin(self.run_blocking(move |conn| {
            let mut put =
                conn.prepare_cached("INSERT OR REPLACE INTO lists (server, mark, text) VALUES (?1, ?2, ?3)")?;
            put.execute(row).map(drop)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_grants::ListingCache;

    #[tokio::test]
    async fn lists_outlive_the_process_and_are_found_under_their_mark_only() {
        let temp = tempfile::tempdir().unwrap();
        let lists = || ListingCache::new(Arc::new(SqliteListingStore::new(temp.path(), Durability::Flush)));
        assert_eq!(lists().get("a", "m1").await.unwrap(), None);
        lists().put("a", "m1", "{\"tools\":[]}".into()).await.unwrap();
        assert_eq!(lists().get("a", "m1").await.unwrap().as_deref(), Some("{\"tools\":[]}"));
        assert_eq!(lists().get("a", "m2").await.unwrap(), None);
        lists().put("a", "m2", "{}".into()).await.unwrap();
        assert_eq!(lists().get("a", "m1").await.unwrap(), None);
        assert_eq!(lists().get("a", "m2").await.unwrap().as_deref(), Some("{}"));
    }
}
