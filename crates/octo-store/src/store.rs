//! The store: what the hub is handed.

use crate::health::identity;
use crate::queue::Refused;
use crate::spills::{Shelf, now};
use crate::writer::{Turn, Writer};
use crate::{Options, Reader, StoreError, private, schema, seal};
use octo_hub::{ArgumentKey, Closing, KeptText, Ledger, Opening, Spills};
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The secret that arguments are recorded with.
const ARGUMENT_KEY: &str = "audit.key";

/// One directory with the audit and the spills. Several processes may have the same one open.
/// Dropping it writes what is still queued and waits for that.
pub struct Store {
    pub(crate) dir: PathBuf,
    /// Of the database file, as it was opened.
    pub(crate) identity: Option<(u64, u64)>,
    audit: Writer,
    shelf: Arc<Shelf>,
    arguments: ArgumentKey,
}

impl Store {
    /// Opens the store in `dir`, which is made when it is not there and closed to others when it is.
    pub fn open(dir: &Path, options: Options) -> Result<Self, StoreError> {
        private::directory(dir)?;
        let (turn, connect) = (Turn::default(), || schema::open(dir, options.durability));
        let audit = Writer::start(connect()?, connect()?, Arc::clone(&turn))?;
        let shelf = Arc::new(Shelf::open(dir, connect()?, turn, options.clone())?);
        let arguments = ArgumentKey::derived(&seal::key_of(&dir.join(ARGUMENT_KEY))?);
        let identity = identity(&schema::file(dir));
        Ok(Self { dir: dir.to_owned(), identity, audit, shelf, arguments })
    }

    /// Returns when everything that was queued before is written.
    pub async fn flush(&self) -> Result<(), ToolError> {
        let group = self.audit.queue.flush().map_err(refused)?;
        group.wait().await.map_err(unwritten)
    }

    /// A connection for looking at the audit.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.dir)
    }

    /// How many groups of records were written: few, when many calls shared them.
    pub fn commits(&self) -> u64 {
        self.audit.commits()
    }
}

impl Ledger for Store {
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            let group = self.audit.queue.open(now(), &opening).map_err(refused)?;
            drop(opening);
            group.wait().await.map_err(unwritten)
        })
    }

    fn close(&self, closing: Closing) {
        if !self.audit.queue.close(now(), &closing) {
            tracing::error!(call = %closing.id, outcome = closing.outcome.as_str(), "the end of a call was not recorded");
        }
    }

    fn fingerprint(&self, arguments: &[u8]) -> String {
        self.arguments.fingerprint(arguments)
    }
}

impl Spills for Store {
    fn keep<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        let (shelf, owner) = (Arc::clone(&self.shelf), caller.principal.clone());
        Box::pin(blocking(move || shelf.keep(&owner, call, &whole)))
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        let (shelf, owner, handle) = (Arc::clone(&self.shelf), caller.principal.clone(), handle.to_owned());
        Box::pin(blocking(move || shelf.load(&owner, &handle)))
    }

    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<KeptText, ToolError>> {
        let (shelf, owner, handle) = (Arc::clone(&self.shelf), caller.principal.clone(), handle.to_owned());
        Box::pin(blocking(move || shelf.open_text(&owner, &handle)))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ToolError::internal(error)))
}

fn unwritten(why: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable("The call could not be recorded, so it was not made.")
        .hint("Whoever runs the hub must look at its data directory: the disk may be full.")
        .detail(why)
}

fn refused(why: Refused) -> ToolError {
    match why {
        Refused::Shut(why) => unwritten(why),
        Refused::Full => ToolError::unavailable("Too many calls wait to be recorded.")
            .hint("Try again in a moment, with fewer calls at once.")
            .retry_after(Duration::from_secs(1)),
    }
}
