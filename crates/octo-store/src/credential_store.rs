//! Credentials of upstream servers, in a separate database.

mod credential_rows;
mod pending_logins;
#[cfg(test)]
mod tests;

pub(crate) use credential_rows::{insert as insert_credential, put_revisions};
pub(crate) use pending_logins::insert as insert_login;

use crate::database::DatabaseSpec;
use crate::lazy_database::{LazyDatabase, WorkResult};
use crate::seal::keyring_opener;
use crate::{Durability, SealKeys, private_files};
use octo_model::{BoxFuture, Principal};
use octo_ports::credentials::{CredentialChange, CredentialRecords, CredentialSet, SealedRevisions};
use octo_ports::{Changes, CredentialStore, Owner, PendingLogin, Port, StoreResult};
use rusqlite::{Connection, Row};
use std::path::Path;
use std::sync::Arc;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "credentials.db",
    migrations: &["
    CREATE TABLE credentials (
        kind TEXT NOT NULL,
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        server TEXT NOT NULL,
        issuer TEXT NOT NULL,
        revision INTEGER NOT NULL,
        secret BLOB NOT NULL,
        PRIMARY KEY (kind, tenant, subject, server, issuer)
    ) STRICT;
    CREATE TABLE ledger (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL,
        marks BLOB NOT NULL
    ) STRICT;
    CREATE TABLE leases (
        slot TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE logins (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        server TEXT NOT NULL,
        expires INTEGER NOT NULL,
        secret BLOB NOT NULL,
        UNIQUE (kind, tenant, subject, server)
    ) STRICT;
"],
};

/// The credentials of a directory.
pub(crate) fn credential_store(dir: &Path, keys: SealKeys) -> CredentialStore {
    CredentialStore::new(Arc::new(SqliteCredentials::new(dir)), keyring_opener(Port::Credentials, dir, keys))
}

/// Acknowledged writes are on disk, since a rotated refresh token cannot be obtained again.
struct SqliteCredentials(LazyDatabase);

impl SqliteCredentials {
    fn new(dir: &Path) -> Self {
        let path = dir.to_owned();
        Self(LazyDatabase::new(Port::Credentials, dir, &DATABASE, move || {
            private_files::create_private_dir(&path)?;
            let conn = DATABASE.open(&path, Durability::Fsync)?;
            // Deleted data is overwritten, too.
            conn.pragma_update(None, "secure_delete", true)?;
            Ok(conn)
        }))
    }
}

/// Everything.
pub(crate) fn credential_set(conn: &Connection) -> WorkResult<CredentialSet> {
    let revisions = credential_rows::revisions(conn)?;
    let (credentials, logins) = (credential_rows::all(conn)?, pending_logins::all(conn)?);
    Ok(CredentialSet { revisions, credentials, logins })
}

/// The owner in three columns, starting at this index.
fn owner_from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Owner> {
    Ok(match row.get::<_, String>(first)?.as_str() {
        "shared" => Owner::Shared,
        _ => Owner::Person(Principal { tenant: row.get(first + 1)?, subject: row.get(first + 2)? }),
    })
}

impl CredentialRecords for SqliteCredentials {
    fn changes(&self) -> Changes {
        self.0.changes()
    }

    fn revisions(&self) -> BoxFuture<'_, StoreResult<Option<SealedRevisions>>> {
        Box::pin(self.0.run(|conn| credential_rows::revisions(conn)))
    }

    fn load<'a>(&'a self, owner: &'a Owner, server: &'a str) -> BoxFuture<'a, StoreResult<CredentialSet>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.0.run(move |conn| {
            let look = conn.transaction()?;
            let revisions = credential_rows::revisions(&look)?;
            let credentials = credential_rows::of_owner(&look, &owner, &server)?;
            Ok(CredentialSet { revisions, credentials, logins: Vec::new() })
        }))
    }

    fn load_all(&self) -> BoxFuture<'_, StoreResult<CredentialSet>> {
        Box::pin(self.0.run(|conn| {
            let look = conn.transaction()?;
            credential_set(&look)
        }))
    }

    fn write<'a>(
        &'a self,
        before: Option<SealedRevisions>,
        after: SealedRevisions,
        change: CredentialChange,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.0.write(move |conn| {
            if credential_rows::revisions(conn)? != before {
                return Ok(false);
            }
            match change {
                CredentialChange::Put(kept) => credential_rows::put(conn, &kept)?,
                CredentialChange::Remove(slot) => credential_rows::remove(conn, &slot)?,
                CredentialChange::Replace { credentials, logins } => {
                    credential_rows::replace(conn, &credentials)?;
                    pending_logins::replace(conn, &logins)?;
                }
            }
            credential_rows::put_revisions(conn, &after)?;
            Ok(true)
        }))
    }

    fn put_pending(&self, login: PendingLogin, now: i64) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(self.0.write(move |conn| pending_logins::put(conn, &login, now)))
    }

    fn take_pending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let id = id.to_owned();
        Box::pin(self.0.write(move |conn| pending_logins::take(conn, &id)))
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.0.run(move |conn| pending_logins::find(conn, &owner, &server)))
    }
}
