//! In-memory listings.

use super::ready;
use crate::{ListingStore, StoreResult};
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Configuration hashes and texts by server.
type ByServer = HashMap<String, (String, String)>;

#[derive(Default)]
pub struct InMemoryListings(Mutex<ByServer>);

impl InMemoryListings {
    fn lock(&self) -> MutexGuard<'_, ByServer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListingStore for InMemoryListings {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        ready(Ok(self.lock().get(server).filter(|(of, _)| of == mark).map(|(_, text)| text.clone())))
    }

    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> BoxFuture<'a, StoreResult<()>> {
        self.lock().insert(server.to_owned(), (mark.to_owned(), text));
        ready(Ok(()))
    }
}
