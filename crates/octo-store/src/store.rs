//! The store of the audit log and results.

pub(crate) mod health;

use crate::audit::audit_reader::AuditConnection;
use crate::audit::audit_writer::{AuditWriter, WriteLock};
use crate::result_files::{ResultFiles, now_micros};
use crate::store::health::file_identity;
use crate::{Options, SqliteError, database, private_files, seal};
use octo_model::{BoxFuture, CallId, Caller, Json};
use octo_ports::{
    ArgumentKey, AuditBacklog, AuditLog, CallEnded, CallStarted, ResultStore, StoreError, StoreResult,
    StoredText,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The secret for argument fingerprints.
const ARGUMENT_KEY_FILE: &str = "audit.key";

/// A directory with the audit log and the stored results. Several processes may have the same one open.
/// Dropping it writes what is queued and waits for that.
pub struct Store {
    pub(crate) dir: PathBuf,
    /// Identity of the database file when it was opened.
    pub(crate) identity: Option<(u64, u64)>,
    audit: AuditWriter,
    results: Arc<ResultFiles>,
    arguments: ArgumentKey,
}

impl Store {
    /// Opens the store in `dir`, which is created or made private.
    pub fn open(dir: &Path, options: Options) -> Result<Self, SqliteError> {
        private_files::create_private_dir(dir)?;
        let (turn, connect) = (WriteLock::default(), || database::open_audit(dir, options.durability));
        let audit = AuditWriter::start(connect()?, connect()?, Arc::clone(&turn))?;
        let shelf = Arc::new(ResultFiles::open(dir, connect()?, turn, options.clone())?);
        let arguments = ArgumentKey::derive(&seal::directory_key(&dir.join(ARGUMENT_KEY_FILE))?);
        let identity = file_identity(&database::audit_file(dir));
        Ok(Self { dir: dir.to_owned(), identity, audit, results: shelf, arguments })
    }

    /// A connection for reading the audit log.
    pub fn reader(&self) -> Result<AuditConnection, SqliteError> {
        AuditConnection::open(&self.dir)
    }

    /// Number of groups written: few, if many calls shared them.
    pub fn commits(&self) -> u64 {
        self.audit.commits()
    }
}

impl AuditLog for Store {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(self.audit.queue.record_start(now_micros(), opening))
    }

    fn close(&self, closing: CallEnded) {
        self.audit.queue.record_end(now_micros(), &closing);
    }

    fn flush(&self) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(self.audit.queue.flush())
    }

    fn backlog(&self) -> AuditBacklog {
        self.audit.queue.backlog()
    }

    fn fingerprint(&self, arguments: &[u8]) -> String {
        self.arguments.fingerprint(arguments)
    }
}

impl ResultStore for Store {
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, StoreResult<String>> {
        let (shelf, owner) = (Arc::clone(&self.results), caller.principal.clone());
        Box::pin(blocking(move || shelf.store(&owner, call, &whole)))
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        let (shelf, owner, handle) = (Arc::clone(&self.results), caller.principal.clone(), handle.to_owned());
        Box::pin(blocking(move || shelf.load(&owner, &handle)))
    }

    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, StoreResult<StoredText>> {
        let (shelf, owner, handle) = (Arc::clone(&self.results), caller.principal.clone(), handle.to_owned());
        Box::pin(blocking(move || shelf.open_text(&owner, &handle)))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> StoreResult<T> + Send + 'static,
) -> StoreResult<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(StoreError::internal(error)))
}
