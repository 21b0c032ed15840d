//! Documents of APIs that callers have loaded, kept for their next calls and beyond a restart.

use crate::{Limit, StoreError, StoreResult};
use octo_model::{BoxFuture, Caller, Secret};
use std::sync::Arc;

/// APIs of one caller.
pub const MAX_APIS: usize = 64;

/// What is kept of an API beside its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApi {
    pub name: String,
    /// Another one each time that the API is loaded.
    pub revision: String,
    /// JSON that only whoever wrote it understands.
    pub settings: String,
    /// The credential. On a disk it is sealed, bound to its owner, name and revision.
    pub secret: Option<Secret>,
}

/// What keeps them: the hub's store. An API belongs to the caller who has loaded it, and no other can see it.
pub trait ApiStore: Send + Sync {
    /// Keeps an API in place of one of the same name, and no more than [`MAX_APIS`] of a caller. Acknowledged means durable.
    fn put<'a>(&'a self, caller: &'a Caller, api: StoredApi, text: String) -> BoxFuture<'a, StoreResult<()>>;
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str)
    -> BoxFuture<'a, StoreResult<Option<StoredApi>>>;
    /// The document of exactly this revision.
    fn text<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        revision: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<String>>>;
    /// All of a caller's, by name, without secrets.
    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, StoreResult<Vec<StoredApi>>>;
    /// Forgets an API; `false` when there was none.
    fn remove<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, StoreResult<bool>>;
}

/// The APIs of whoever calls.
pub type Apis = Arc<dyn ApiStore>;

/// Whether an API may be added to those that its caller has.
pub fn check_count(known: usize) -> StoreResult<()> {
    if known < MAX_APIS { Ok(()) } else { Err(StoreError::Full(Limit::Apis)) }
}
