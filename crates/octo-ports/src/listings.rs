//! The last listing of each upstream, so that its tools are known before it is started again.

use crate::StoreResult;
use octo_model::BoxFuture;
use std::sync::Arc;

/// Maximum bytes of a stored listing; the server of a larger one is started again to be listed.
pub const MAX_LISTING_TEXT_BYTES: usize = 4 << 20;

/// Store of listings. A listing belongs to a server configuration: `mark`, a hash of its program or address,
/// differs after a change, and the old listing is not found any more.
pub trait ListingStore: Send + Sync {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>>;
    /// Stores a listing, replacing the server's previous one.
    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> BoxFuture<'a, StoreResult<()>>;
}

/// Handle to the store of listings.
pub type Listings = Arc<dyn ListingStore>;
