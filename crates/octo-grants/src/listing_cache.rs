//! What each server behind the hub listed last, so that its tools are known before it is started again.

use octo_model::ToolError;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// What keeps them: the hub's store. A list belongs to a server as it was set up: the mark, a hash of its program or
/// address, is another one after a change, and the old list is not found any more.
pub trait ListingStore: Send + Sync {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> StoreFuture<'a, Option<String>>;
    /// Keeps a list in place of the server's former one.
    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> StoreFuture<'a, ()>;
}

/// The last good lists of all servers.
#[derive(Clone)]
pub struct ListingCache(Arc<dyn ListingStore>);

impl ListingCache {
    pub fn new(keeps: Arc<dyn ListingStore>) -> Self {
        Self(keeps)
    }

    /// Kept in memory, until the process ends.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemoryListings::default()))
    }

    pub async fn get(&self, server: &str, mark: &str) -> Result<Option<String>, ToolError> {
        self.0.get(server, mark).await
    }

    pub async fn put(&self, server: &str, mark: &str, text: String) -> Result<(), ToolError> {
        self.0.put(server, mark, text).await
    }
}

/// Marks and texts by server.
type CachedListings = HashMap<String, (String, String)>;

#[derive(Default)]
struct InMemoryListings(Mutex<CachedListings>);

impl InMemoryListings {
    fn lock(&self) -> MutexGuard<'_, CachedListings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListingStore for InMemoryListings {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> StoreFuture<'a, Option<String>> {
        let known = self.lock().get(server).filter(|(of, _)| of == mark).map(|(_, text)| text.clone());
        Box::pin(std::future::ready(Ok(known)))
    }

    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> StoreFuture<'a, ()> {
        self.lock().insert(server.to_owned(), (mark.to_owned(), text));
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_is_found_under_its_own_mark_only() {
        let lists = ListingCache::in_memory();
        lists.put("a", "m1", "one".into()).await.unwrap();
        assert_eq!(lists.get("a", "m1").await.unwrap().as_deref(), Some("one"));
        assert_eq!(lists.get("a", "m2").await.unwrap(), None);
        assert_eq!(lists.get("b", "m1").await.unwrap(), None);
        lists.put("a", "m2", "two".into()).await.unwrap();
        assert_eq!(lists.get("a", "m1").await.unwrap(), None);
    }
}
