//! What each server behind the hub listed last, so that its tools are known before it is started again.

use crate::StoreResult;
use octo_model::BoxFuture;
use std::sync::Arc;

/// What keeps them: the hub's store. A list belongs to a server as it was set up: the mark, a hash of its program or
/// address, is another one after a change, and the old list is not found any more.
pub trait ListingStore: Send + Sync {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>>;
    /// Keeps a list in place of the server's former one.
    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> BoxFuture<'a, StoreResult<()>>;
}

/// The last good listings of all servers.
pub type Listings = Arc<dyn ListingStore>;
