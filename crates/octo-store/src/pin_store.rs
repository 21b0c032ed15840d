//! Pinned and held definitions of servers, in a separate database.

mod pin_rows;
#[cfg(test)]
mod tests;

use crate::Durability;
use crate::database::{DatabaseSpec, compact};
use crate::lazy_database::LazyDatabase;
use octo_model::BoxFuture;
use octo_ports::{
    Changes, PendingPin, Pin, PinDelta, PinSet, PinWrite, Pins, Port, ServerIdentity, StoreResult,
};
use rusqlite::Connection;
use std::path::Path;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
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

pub(crate) struct SqlitePinStore(LazyDatabase);

impl SqlitePinStore {
    pub(crate) fn new(dir: &Path, durability: Durability) -> Self {
        Self(LazyDatabase::of(Port::Pins, dir, &DATABASE, durability))
    }
}

impl Pins for SqlitePinStore {
    fn changes(&self) -> Changes {
        self.0.changes()
    }

    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, StoreResult<PinSet>> {
        let whose = whose.clone();
        Box::pin(async move {
            let (set, is_shorter) = self.0.write(move |change| Ok(pin_rows::load(change, &whose)?)).await?;
            if is_shorter {
                let compacted = |conn: &mut Connection| {
                    compact(conn, DATABASE.file);
                    Ok(())
                };
                self.0.run(compacted).await?;
            }
            Ok(set)
        })
    }

    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, StoreResult<PinWrite>> {
        let server = whose.server.clone();
        Box::pin(self.0.write(move |change| Ok(pin_rows::write(change, &server, &news)?)))
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<u64>> {
        let server = server.to_owned();
        Box::pin(self.0.write(move |change| Ok(pin_rows::revision(change, &server)?)))
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<Vec<PendingPin>>> {
        let server = server.to_owned();
        Box::pin(self.0.write(move |change| Ok(pin_rows::pending(change, &server)?)))
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, StoreResult<usize>> {
        let server = server.to_owned();
        Box::pin(self.0.write(move |change| Ok(pin_rows::accept(change, &server, &chosen)?)))
    }
}
