//! Credentials of upstream servers, in a separate database: sealed, each bound to its row and revision, and
//! all revisions in one sealed list, so that a row that was moved, changed or restored is detected.

mod credential_rows;
mod pending_logins;
mod revision_list;
#[cfg(test)]
mod tests;

use crate::database::DatabaseSpec;
use crate::lazy_database::{LazyDatabase, WorkError, WorkResult};
use crate::seal::Seal;
use crate::{Durability, SealKeys, private_files};
use octo_model::BoxFuture;
use octo_model::Secret;
use octo_ports::{
    CredentialStore, Owner, PendingLogin, Port, Slot, StoreError, StoreResult, StoredCredential, credentials,
};
use revision_list::RevisionList;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};

const DATABASE: DatabaseSpec = DatabaseSpec {
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

/// Acknowledged writes are on disk, since a rotated refresh token cannot be obtained again.
pub(crate) struct SqliteCredentialStore(LazyDatabase<OpenCredentials>);

struct CredentialFiles {
    dir: PathBuf,
    keys: SealKeys,
}

struct OpenCredentials {
    conn: Connection,
    seal: Seal,
    /// The highest revision that this process has seen.
    last_revision: u64,
}

fn wrong_key() -> WorkError {
    StoreError::SealMismatch { port: Port::Credentials, name: DATABASE.file.to_owned() }.into()
}

/// A program other than a hub has written to the file.
fn tampered() -> WorkError {
    tracing::error!("credentials.db was modified by another program");
    StoreError::corrupt(Port::Credentials, "credentials.db was changed").into()
}

impl SqliteCredentialStore {
    pub(crate) fn new(dir: &Path, keys: SealKeys) -> Self {
        let files = CredentialFiles { dir: dir.to_owned(), keys };
        Self(LazyDatabase::new(Port::Credentials, move || files.open()))
    }
}

impl CredentialFiles {
    fn open(&self) -> WorkResult<OpenCredentials> {
        private_files::create_private_dir(&self.dir)?;
        let seal = Seal::open(&self.dir, self.keys.secret.as_ref().map(Secret::expose))?;
        let mut conn = DATABASE.open(&self.dir, Durability::Fsync)?;
        // Deleted data is overwritten, too.
        conn.pragma_update(None, "secure_delete", true)?;
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seen = match RevisionList::load(&change, &seal)? {
            Some(ledger) => ledger.revision,
            None => self.rotate_key(&change, &seal)?,
        };
        change.commit()?;
        Ok(OpenCredentials { conn, seal, last_revision: seen })
    }

    /// All or nothing: each secret can be opened with exactly one key, even after a crash.
    fn rotate_key(&self, change: &Transaction<'_>, seal: &Seal) -> WorkResult<u64> {
        for older in self.previous_seals()? {
            if let Some(ledger) = RevisionList::load(change, &older)? {
                credential_rows::reseal(change, &ledger, &older, seal)?;
                pending_logins::reseal(change, &older, seal)?;
                ledger.save(change, seal)?;
                tracing::info!("credentials were re-encrypted with the new key");
                return Ok(ledger.revision);
            }
        }
        Err(wrong_key())
    }

    /// Earlier keys, including the directory's own if the operator has since configured a secret.
    fn previous_seals(&self) -> WorkResult<Vec<Seal>> {
        let mut seals = Vec::new();
        for secret in &self.keys.previous {
            seals.push(Seal::open(&self.dir, Some(secret.expose()))?);
        }
        if self.keys.secret.is_some() && Seal::has_key(&self.dir) {
            seals.push(Seal::open(&self.dir, None)?);
        }
        Ok(seals)
    }
}

impl OpenCredentials {
    /// All work sees one state of the file, which is no older than what was seen before.
    fn read<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &RevisionList) -> WorkResult<T>,
    ) -> WorkResult<T> {
        let look = self.conn.transaction()?;
        let ledger = RevisionList::load(&look, &self.seal)?.ok_or_else(wrong_key)?;
        if ledger.revision < self.last_revision {
            return Err(tampered());
        }
        self.last_revision = ledger.revision;
        work(&look, &self.seal, &ledger)
    }

    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &mut RevisionList) -> WorkResult<T>,
    ) -> WorkResult<T> {
        let change = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut ledger = RevisionList::load(&change, &self.seal)?.ok_or_else(wrong_key)?;
        if ledger.revision < self.last_revision {
            return Err(tampered());
        }
        let before = ledger.revision;
        let done = work(&change, &self.seal, &mut ledger)?;
        if ledger.revision != before {
            ledger.save(&change, &self.seal)?;
        }
        change.commit()?;
        self.last_revision = ledger.revision;
        Ok(done)
    }
}

impl CredentialStore for SqliteCredentialStore {
    fn all<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Vec<StoredCredential>>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.0.run(move |opened| {
            opened.read(|look, seal, ledger| credential_rows::all(look, seal, ledger, &owner, &server))
        }))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<Option<StoredCredential>>> {
        let slot = slot.clone();
        Box::pin(self.0.run(move |opened| {
            opened.read(|look, seal, ledger| credential_rows::find(look, seal, ledger, &slot))
        }))
    }

    fn slots(&self) -> BoxFuture<'_, StoreResult<Vec<Slot>>> {
        Box::pin(self.0.run(|opened| opened.read(|look, _, _| credential_rows::slots(look))))
    }

    fn put<'a>(
        &'a self,
        slot: &'a Slot,
        secret: Secret,
        over: Option<u64>,
    ) -> BoxFuture<'a, StoreResult<u64>> {
        let slot = slot.clone();
        Box::pin(self.0.run(move |opened| {
            credentials::check_secret(&secret)?;
            opened.write(|change, seal, ledger| {
                credential_rows::put(change, seal, ledger, &slot, &secret, over)
            })
        }))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<bool>> {
        let slot = slot.clone();
        Box::pin(self.0.run(move |opened| {
            opened.write(|change, _, ledger| credential_rows::remove(change, ledger, &slot))
        }))
    }

    fn put_pending<'a>(&'a self, waiting: PendingLogin, now: i64) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(self.0.run(move |opened| {
            credentials::check_secret(&waiting.secret)?;
            opened.write(|change, seal, _| pending_logins::put_pending(change, seal, &waiting, now))
        }))
    }

    fn take_pending<'a>(&'a self, id: &'a str, now: i64) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let id = id.to_owned();
        Box::pin(self.0.run(move |opened| {
            opened.write(|change, seal, _| pending_logins::take_pending(change, seal, &id, now))
        }))
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        now: i64,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.0.run(move |opened| {
            opened.read(|look, seal, _| pending_logins::find_pending(look, seal, &owner, &server, now))
        }))
    }
}
