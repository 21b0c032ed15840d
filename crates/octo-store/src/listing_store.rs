//! The last listing of each upstream, in a separate database. It contains no secrets, and losing it is
//! harmless: a server without a listing is started once to be listed.

use crate::Durability;
use crate::database::DatabaseSpec;
use crate::lazy_database::LazyDatabase;
use octo_model::BoxFuture;
use octo_ports::{ListingStore, Port, StoreResult};
use rusqlite::OptionalExtension;
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

impl ListingStore for SqliteListingStore {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        let key = (server.to_owned(), mark.to_owned());
        Box::pin(self.0.run(move |conn| {
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
