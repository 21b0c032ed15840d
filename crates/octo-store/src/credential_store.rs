//! Credentials for the servers behind the hub, in a database of their own: sealed, each bound to its row and its revision,
//! and all revisions in one sealed list, so that a row that was moved, changed or put back is noticed.

mod credential_rows;
mod pending_logins;
mod revision_list;
#[cfg(test)]
mod tests;

use crate::database::DatabaseSpec;
use crate::seal::Seal;
use crate::{Durability, StoreError, private_files};
use octo_grants::Secret;
use octo_grants::credentials::{
    CredentialStore, LeaseClaim, Owner, PendingLogin, Slot, StoredCredential, conflict_error, limit_error,
};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use revision_list::RevisionList;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// What credentials are sealed with.
#[derive(Clone, Default)]
pub struct SealKeys {
    /// The operator's; without it the directory has a key of its own.
    pub secret: Option<Secret>,
    /// Those that were used before. What they have sealed is sealed anew with the present one when the store is opened.
    pub previous: Vec<Secret>,
}

/// The credentials of all callers in one directory. Several processes may have the same one open; nothing is touched before
/// the first of them is asked for. What is acknowledged is on the disk, since a refresh token that was replaced cannot be had
/// a second time.
#[derive(Clone)]
pub struct SqliteCredentialStore(Arc<CredentialStoreState>);

struct CredentialStoreState {
    dir: PathBuf,
    keys: SealKeys,
    opened: Mutex<Option<OpenCredentials>>,
}

struct OpenCredentials {
    conn: Connection,
    seal: Seal,
    /// The highest revision that this process has seen.
    last_revision: u64,
}

/// Why something was not done.
#[derive(Debug)]
enum CredentialError {
    Database(rusqlite::Error),
    Store(StoreError),
    /// Sealed with a key that is not known.
    WrongKey,
    /// Somebody else than a hub has written here.
    Tampered,
    Conflict,
    Full,
}

impl From<rusqlite::Error> for CredentialError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for CredentialError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CredentialError> for ToolError {
    fn from(fault: CredentialError) -> Self {
        let unusable = || {
            ToolError::unavailable("The credentials of servers cannot be read or written.")
                .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        };
        match fault {
            CredentialError::Database(error) => unusable().detail(error),
            CredentialError::Store(error) => unusable().detail(error),
            CredentialError::WrongKey => ToolError::unavailable("The credentials of servers are sealed with another key.").hint(
                "Whoever runs the hub must give the secret that was used before, or remove credentials.db and log in again.",
            ),
            CredentialError::Tampered => {
                tracing::error!("credentials.db was changed by something else than a hub");
                ToolError::unavailable("The credential is not the one that the hub has kept: its file was changed.")
                    .hint("Log in to the server again; whoever runs the hub should find out who writes to its data directory.")
            }
            CredentialError::Conflict => conflict_error(),
            CredentialError::Full => limit_error(),
        }
    }
}

impl SqliteCredentialStore {
    pub fn new(dir: &Path, keys: SealKeys) -> Self {
        Self(Arc::new(CredentialStoreState { dir: dir.to_owned(), keys, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OpenCredentials) -> Result<T, CredentialError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open()?);
            }
            opened.as_mut().map_or(Err(CredentialError::WrongKey), work)
        });
        done.await.map_err(ToolError::internal)?.map_err(ToolError::from)
    }
}

impl CredentialStoreState {
    fn open(&self) -> Result<OpenCredentials, CredentialError> {
        private_files::create_private_dir(&self.dir)?;
        let seal = Seal::open(&self.dir, self.keys.secret.as_ref().map(Secret::expose))?;
        let mut conn = DATABASE.open(&self.dir, Durability::Fsync)?;
        // What is forgotten is overwritten, too.
        conn.pragma_update(None, "secure_delete", true)?;
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seen = match RevisionList::load(&change, &seal) {
            Ok(ledger) => ledger.revision,
            Err(CredentialError::WrongKey) => self.rotate_key(&change, &seal)?,
            Err(other) => return Err(other),
        };
        change.commit()?;
        Ok(OpenCredentials { conn, seal, last_revision: seen })
    }

    /// All or nothing: each secret can be opened with exactly one key, whenever this ends.
    fn rotate_key(&self, change: &Transaction<'_>, seal: &Seal) -> Result<u64, CredentialError> {
        for older in self.previous_seals()? {
            match RevisionList::load(change, &older) {
                Ok(ledger) => {
                    credential_rows::reseal(change, &ledger, &older, seal)?;
                    pending_logins::reseal(change, &older, seal)?;
                    ledger.save(change, seal)?;
                    tracing::info!("the credentials of servers were sealed with the new key");
                    return Ok(ledger.revision);
                }
                Err(CredentialError::WrongKey) => {}
                Err(other) => return Err(other),
            }
        }
        Err(CredentialError::WrongKey)
    }

    /// The keys of before; the directory's own is one of them when the operator has come to give a secret.
    fn previous_seals(&self) -> Result<Vec<Seal>, CredentialError> {
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
    /// All of the work sees one state of the file, and that is not older than what was seen before.
    fn read<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &RevisionList) -> Result<T, CredentialError>,
    ) -> Result<T, CredentialError> {
        let look = self.conn.transaction()?;
        let ledger = RevisionList::load(&look, &self.seal)?;
        if ledger.revision < self.last_revision {
            return Err(CredentialError::Tampered);
        }
        self.last_revision = ledger.revision;
        work(&look, &self.seal, &ledger)
    }

    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &mut RevisionList) -> Result<T, CredentialError>,
    ) -> Result<T, CredentialError> {
        let change = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut ledger = RevisionList::load(&change, &self.seal)?;
        if ledger.revision < self.last_revision {
            return Err(CredentialError::Tampered);
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
    ) -> BoxFuture<'a, Result<Vec<StoredCredential>, ToolError>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.run_blocking(move |opened| {
            opened.read(|look, seal, ledger| credential_rows::all(look, seal, ledger, &owner, &server))
        }))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, Result<Option<StoredCredential>, ToolError>> {
        let slot = slot.clone();
        Box::pin(self.run_blocking(move |opened| {
            opened.read(|look, seal, ledger| credential_rows::find(look, seal, ledger, &slot))
        }))
    }

    fn slots(&self) -> BoxFuture<'_, Result<Vec<Slot>, ToolError>> {
        Box::pin(self.run_blocking(|opened| opened.read(|look, _, _| credential_rows::slots(look))))
    }

    fn put<'a>(
        &'a self,
        slot: &'a Slot,
        secret: Secret,
        over: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, ToolError>> {
        let slot = slot.clone();
        Box::pin(self.run_blocking(move |opened| {
            opened.write(|change, seal, ledger| {
                credential_rows::put(change, seal, ledger, &slot, &secret, over)
            })
        }))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, Result<bool, ToolError>> {
        let slot = slot.clone();
        Box::pin(self.run_blocking(move |opened| {
            opened.write(|change, _, ledger| credential_rows::remove(change, ledger, &slot))
        }))
    }

    fn acquire_lease<'a>(
        &'a self,
        slot: &'a Slot,
        holder: &'a str,
        time: Duration,
    ) -> BoxFuture<'a, Result<LeaseClaim, ToolError>> {
        let (slot, holder) = (slot.clone(), holder.to_owned());
        Box::pin(
            self.run_blocking(move |opened| {
                pending_logins::acquire_lease(&opened.conn, &slot, &holder, time)
            }),
        )
    }

    fn release_lease<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let (slot, holder) = (slot.clone(), holder.to_owned());
        Box::pin(self.run_blocking(move |opened| pending_logins::release_lease(&opened.conn, &slot, &holder)))
    }

    fn put_pending<'a>(&'a self, waiting: PendingLogin, now: i64) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.run_blocking(move |opened| {
            opened.write(|change, seal, _| pending_logins::put_pending(change, seal, &waiting, now))
        }))
    }

    fn take_pending<'a>(
        &'a self,
        id: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Option<PendingLogin>, ToolError>> {
        let id = id.to_owned();
        Box::pin(self.run_blocking(move |opened| {
            opened.write(|change, seal, _| pending_logins::take_pending(change, seal, &id, now))
        }))
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Option<PendingLogin>, ToolError>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.run_blocking(move |opened| {
            opened.read(|look, seal, _| pending_logins::find_pending(look, seal, &owner, &server, now))
        }))
    }
}
