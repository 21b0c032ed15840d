//! Credentials for the servers behind the hub, in a database of their own: sealed, each bound to its row and its revision,
//! and all revisions in one sealed list, so that a row that was moved, changed or put back is noticed.

mod ledger;
mod logins;
mod rows;
#[cfg(test)]
mod tests;

use crate::schema::Book;
use crate::seal::Seal;
use crate::{Durability, StoreError, private};
use ledger::Ledger;
use octo_grants::Secret;
use octo_grants::credentials::{
    Claim, KeepsCredentials, Kept, Owner, Slot, Waiting, changed_meanwhile, too_many,
};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const CREDENTIALS: Book = Book {
    file: "credentials.db",
    steps: &["
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
pub struct Keys {
    /// The operator's; without it the directory has a key of its own.
    pub secret: Option<Secret>,
    /// Those that were used before. What they have sealed is sealed anew with the present one when the store is opened.
    pub older: Vec<Secret>,
}

/// The credentials of all callers in one directory. Several processes may have the same one open; nothing is touched before
/// the first of them is asked for. What is acknowledged is on the disk, since a refresh token that was replaced cannot be had
/// a second time.
#[derive(Clone)]
pub struct KeptCredentials(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    keys: Keys,
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    conn: Connection,
    seal: Seal,
    /// The highest revision that this process has seen.
    seen: u64,
}

/// Why something was not done.
#[derive(Debug)]
enum Fault {
    Database(rusqlite::Error),
    Store(StoreError),
    /// Sealed with a key that is not known.
    Sealed,
    /// Somebody else than a hub has written here.
    Changed,
    Conflict,
    Full,
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Fault> for ToolError {
    fn from(fault: Fault) -> Self {
        let unusable = || {
            ToolError::unavailable("The credentials of servers cannot be read or written.")
                .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        };
        match fault {
            Fault::Database(error) => unusable().detail(error),
            Fault::Store(error) => unusable().detail(error),
            Fault::Sealed => ToolError::unavailable("The credentials of servers are sealed with another key.").hint(
                "Whoever runs the hub must give the secret that was used before, or remove credentials.db and log in again.",
            ),
            Fault::Changed => {
                tracing::error!("credentials.db was changed by something else than a hub");
                ToolError::unavailable("The credential is not the one that the hub has kept: its file was changed.")
                    .hint("Log in to the server again; whoever runs the hub should find out who writes to its data directory.")
            }
            Fault::Conflict => changed_meanwhile(),
            Fault::Full => too_many(),
        }
    }
}

impl KeptCredentials {
    pub fn new(dir: &Path, keys: Keys) -> Self {
        Self(Arc::new(Inner { dir: dir.to_owned(), keys, opened: Mutex::default() }))
    }

    /// Does blocking work beside the runtime's own threads.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Opened) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut opened = inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Some(inner.open()?);
            }
            opened.as_mut().map_or(Err(Fault::Sealed), work)
        });
        done.await.map_err(ToolError::internal)?.map_err(ToolError::from)
    }
}

impl Inner {
    fn open(&self) -> Result<Opened, Fault> {
        private::directory(&self.dir)?;
        let seal = Seal::open(&self.dir, self.keys.secret.as_ref().map(Secret::expose))?;
        let mut conn = CREDENTIALS.open(&self.dir, Durability::Power)?;
        // What is forgotten is overwritten, too.
        conn.pragma_update(None, "secure_delete", true)?;
        let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seen = match Ledger::load(&change, &seal) {
            Ok(ledger) => ledger.revision,
            Err(Fault::Sealed) => self.seal_anew(&change, &seal)?,
            Err(other) => return Err(other),
        };
        change.commit()?;
        Ok(Opened { conn, seal, seen })
    }

    /// All or nothing: each secret can be opened with exactly one key, whenever this ends.
    fn seal_anew(&self, change: &Transaction<'_>, seal: &Seal) -> Result<u64, Fault> {
        for older in self.older()? {
            match Ledger::load(change, &older) {
                Ok(ledger) => {
                    rows::reseal(change, &ledger, &older, seal)?;
                    logins::reseal(change, &older, seal)?;
                    ledger.save(change, seal)?;
                    tracing::info!("the credentials of servers were sealed with the new key");
                    return Ok(ledger.revision);
                }
                Err(Fault::Sealed) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Fault::Sealed)
    }

    /// The keys of before; the directory's own is one of them when the operator has come to give a secret.
    fn older(&self) -> Result<Vec<Seal>, Fault> {
        let mut seals = Vec::new();
        for secret in &self.keys.older {
            seals.push(Seal::open(&self.dir, Some(secret.expose()))?);
        }
        if self.keys.secret.is_some() && Seal::has_key(&self.dir) {
            seals.push(Seal::open(&self.dir, None)?);
        }
        Ok(seals)
    }
}

impl Opened {
    /// All of the work sees one state of the file, and that is not older than what was seen before.
    fn look<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &Ledger) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let look = self.conn.transaction()?;
        let ledger = Ledger::load(&look, &self.seal)?;
        if ledger.revision < self.seen {
            return Err(Fault::Changed);
        }
        self.seen = ledger.revision;
        work(&look, &self.seal, &ledger)
    }

    fn change<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &Seal, &mut Ledger) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let change = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut ledger = Ledger::load(&change, &self.seal)?;
        if ledger.revision < self.seen {
            return Err(Fault::Changed);
        }
        let before = ledger.revision;
        let done = work(&change, &self.seal, &mut ledger)?;
        if ledger.revision != before {
            ledger.save(&change, &self.seal)?;
        }
        change.commit()?;
        self.seen = ledger.revision;
        Ok(done)
    }
}

impl KeepsCredentials for KeptCredentials {
    fn all<'a>(&'a self, owner: &'a Owner, server: &'a str) -> BoxFuture<'a, Result<Vec<Kept>, ToolError>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(self.with(move |opened| {
            opened.look(|look, seal, ledger| rows::all(look, seal, ledger, &owner, &server))
        }))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, Result<Option<Kept>, ToolError>> {
        let slot = slot.clone();
        Box::pin(
            self.with(move |opened| opened.look(|look, seal, ledger| rows::find(look, seal, ledger, &slot))),
        )
    }

    fn slots(&self) -> BoxFuture<'_, Result<Vec<Slot>, ToolError>> {
        Box::pin(self.with(|opened| opened.look(|look, _, _| rows::slots(look))))
    }

    fn put<'a>(
        &'a self,
        slot: &'a Slot,
        secret: Secret,
        over: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, ToolError>> {
        let slot = slot.clone();
        Box::pin(self.with(move |opened| {
            opened.change(|change, seal, ledger| rows::put(change, seal, ledger, &slot, &secret, over))
        }))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, Result<bool, ToolError>> {
        let slot = slot.clone();
        Box::pin(
            self.with(move |opened| opened.change(|change, _, ledger| rows::remove(change, ledger, &slot))),
        )
    }

    fn claim<'a>(
        &'a self,
        slot: &'a Slot,
        holder: &'a str,
        time: Duration,
    ) -> BoxFuture<'a, Result<Claim, ToolError>> {
        let (slot, holder) = (slot.clone(), holder.to_owned());
        Box::pin(self.with(move |opened| logins::claim(&opened.conn, &slot, &holder, time)))
    }

    fn release<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let (slot, holder) = (slot.clone(), holder.to_owned());
        Box::pin(self.with(move |opened| logins::release(&opened.conn, &slot, &holder)))
    }

    fn wait<'a>(&'a self, waiting: Waiting, now: i64) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(
            self.with(move |opened| {
                opened.change(|change, seal, _| logins::wait(change, seal, &waiting, now))
            }),
        )
    }

    fn take<'a>(&'a self, id: &'a str, now: i64) -> BoxFuture<'a, Result<Option<Waiting>, ToolError>> {
        let id = id.to_owned();
        Box::pin(
            self.with(move |opened| opened.change(|change, seal, _| logins::take(change, seal, &id, now))),
        )
    }

    fn waits<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Option<Waiting>, ToolError>> {
        let (owner, server) = (owner.clone(), server.to_owned());
        Box::pin(
            self.with(move |opened| {
                opened.look(|look, seal, _| logins::waits(look, seal, &owner, &server, now))
            }),
        )
    }
}
