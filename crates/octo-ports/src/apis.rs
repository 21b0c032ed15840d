//! API documents loaded by callers, stored for later calls and across restarts.

mod sealed_api_store;

use crate::{Limit, StoreError, StoreResult};
use octo_model::{BoxFuture, Caller, Secret};
use std::sync::Arc;

pub use sealed_api_store::{SealedApiStore, open_api, seal_api};

/// Maximum APIs per caller.
pub const MAX_APIS: usize = 64;

/// Metadata of a stored API, without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApi {
    pub name: String,
    /// Changes each time the API is loaded.
    pub revision: String,
    /// JSON that is opaque to the store.
    pub settings: String,
    /// The credential. In a backend it is sealed and bound to its owner and the other fields.
    pub secret: Option<Secret>,
}

/// Store of APIs. An API belongs to the caller who loaded it; no other can see it.
pub trait ApiStore: Send + Sync {
    /// Stores an API, replacing one of the same name; at most [`MAX_APIS`] per caller. Durable once
    /// acknowledged.
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>>;
    /// Replaces the secret of exactly this revision; without effect if there is none.
    fn replace_secret<'a>(&'a self, caller: &'a Caller, api: &'a StoredApi)
    -> BoxFuture<'a, StoreResult<()>>;
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str)
    -> BoxFuture<'a, StoreResult<Option<StoredApi>>>;
    /// The document of exactly this revision.
    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>>;
    /// All APIs of a caller, by name, without secrets.
    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>>;
    /// Removes an API; `false` if there was none.
    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>>;
}

/// Handle to the store of APIs.
pub type Apis = Arc<dyn ApiStore>;

/// Checks whether a caller with `known` APIs may add another.
pub fn check_count(known: usize) -> StoreResult<()> {
    if known < MAX_APIS { Ok(()) } else { Err(StoreError::Full(Limit::Apis)) }
}
