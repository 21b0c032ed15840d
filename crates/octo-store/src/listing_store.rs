//! The last listing of each upstream, in a separate database. It contains no secrets, and losing it is
//! harmless: a server without a listing is started once to be listed.

use crate::Durability;
use crate::database::{DatabaseSpec, compact};
use crate::lazy_database::LazyDatabase;
use octo_model::BoxFuture;
use octo_ports::listings::MAX_LISTING_TEXT_BYTES;
use octo_ports::{ListingStore, Port, StoreResult};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "lists.db",
    migrations: &["
    CREATE TABLE lists (
        server TEXT NOT NULL PRIMARY KEY,
        mark TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
"],
};

pub(crate) struct SqliteListingStore(LazyDatabase);

impl SqliteListingStore {
    pub(crate) fn new(dir: &Path, durability: Durability) -> Self {
        Self(LazyDatabase::of(Port::Listings, dir, &DATABASE, durability))
    }
}

/// Earlier versions stored listings of any size.
fn remove_large(conn: &Connection) -> rusqlite::Result<()> {
    let limit = [MAX_LISTING_TEXT_BYTES as i64];
    let large = "SELECT 1 FROM lists WHERE octet_length(text) > ?1 LIMIT 1";
    if conn.prepare_cached(large)?.exists(limit)? {
        conn.execute("DELETE FROM lists WHERE octet_length(text) > ?1", limit)?;
        compact(conn, DATABASE.file);
    }
    Ok(())
}

impl ListingStore for SqliteListingStore {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        let key = (server.to_owned(), mark.to_owned());
        Box::pin(self.0.run(move |conn| {
            remove_large(conn)?;
            let mut find = conn.prepare_cached("SELECT text FROM lists WHERE server = ?1 AND mark = ?2")?;
            Ok(find.query_row(key, |row| row.get(0)).optional()?)
        }))
    }

    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> BoxFuture<'a, StoreResult<()>> {
        let row = (server.to_owned(), mark.to_owned(), text);
        Box::pin(self.0.run(move |conn| {
            let mut put =
                conn.prepare_cached("INSERT OR REPLACE INTO lists (server, mark, text) VALUES (?1, ?2, ?3)")?;
            put.execute(row)?;
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_huge_listing_of_an_earlier_version_is_removed_and_the_file_shrinks() {
        let temp = tempfile::tempdir().unwrap();
        let store = SqliteListingStore::new(temp.path(), Durability::Flush);
        store.put("small", "m", "[]".to_owned()).await.unwrap();
        store.put("huge", "m", "x".repeat(MAX_LISTING_TEXT_BYTES + 1)).await.unwrap();
        assert_eq!(store.get("huge", "m").await.unwrap(), None);
        assert_eq!(store.get("small", "m").await.unwrap().as_deref(), Some("[]"));
        drop(store);
        let size = |file: &str| temp.path().join(file).metadata().map_or(0, |file| file.len());
        assert!(size("lists.db") + size("lists.db-wal") < 1 << 20, "{}", size("lists.db"));
    }
}
