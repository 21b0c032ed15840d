//! The audit log and the results, opened on first use.

use crate::{Options, SqliteError, Store};
use octo_model::{BoxFuture, CallId, Caller, Json};
use octo_ports::{
    ArgumentKey, AuditBacklog, AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult,
    StoredText,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Clone)]
pub(crate) struct LazyStore(Arc<Handle>);

struct Handle {
    dir: PathBuf,
    options: Options,
    store: OnceLock<Store>,
    opening: Mutex<()>,
}

impl LazyStore {
    pub(crate) fn new(dir: &Path, options: Options) -> Self {
        let (store, opening) = (OnceLock::new(), Mutex::default());
        Self(Arc::new(Handle { dir: dir.to_owned(), options, store, opening }))
    }

    /// Blocks.
    pub(crate) fn open(&self) -> Result<&Store, SqliteError> {
        if let Some(store) = self.0.store.get() {
            return Ok(store);
        }
        let _turn = self.0.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match self.0.store.get() {
            Some(store) => Ok(store),
            None => {
                let opened = Store::open(&self.0.dir, self.0.options.clone())?;
                Ok(self.0.store.get_or_init(|| opened))
            }
        }
    }

    async fn get(&self, port: Port) -> StoreResult<&Store> {
        if self.0.store.get().is_none() {
            let lazy = self.clone();
            let opened = tokio::task::spawn_blocking(move || lazy.open().map(drop)).await;
            opened.map_err(StoreError::internal)?.map_err(|error| StoreError::unavailable(port, error))?;
        }
        self.0.store.get().ok_or_else(|| StoreError::internal("the store is not open"))
    }
}

impl AuditLog for LazyStore {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        match self.0.store.get() {
            Some(store) => store.open(opening),
            None => Box::pin(async move { self.get(Port::Audit).await?.open(opening).await }),
        }
    }

    fn close(&self, closing: CallEnded) {
        if let Some(store) = self.0.store.get() {
            store.close(closing);
        }
    }

    fn flush(&self) -> BoxFuture<'_, StoreResult<()>> {
        match self.0.store.get() {
            Some(store) => Box::pin(store.flush()),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn backlog(&self) -> AuditBacklog {
        self.0.store.get().map(Store::backlog).unwrap_or_default()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        let lazy = self.clone();
        let check = move || lazy.open()?.check().map(drop);
        Box::pin(async move {
            let checked = tokio::task::spawn_blocking(check).await.map_err(|error| error.to_string())?;
            checked.map_err(|error: SqliteError| format!("{error}. {}", error.hint()))
        })
    }

    fn fingerprint(&self, arguments: &[u8]) -> String {
        match self.open() {
            Ok(store) => store.fingerprint(arguments),
            Err(_) => ArgumentKey::process_key().fingerprint(arguments),
        }
    }
}

impl ResultStore for LazyStore {
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async move { self.get(Port::Results).await?.store(caller, call, whole).await })
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async move { self.get(Port::Results).await?.load(caller, handle).await })
    }

    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, StoreResult<StoredText>> {
        Box::pin(async move { self.get(Port::Results).await?.open_text(caller, handle).await })
    }
}
