//! In-memory results, evicted by newer ones.

use super::ready;
use crate::{Port, ResultStore, StoreError, StoreResult};
use octo_model::{BoxFuture, CallId, Caller, Json, Principal};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum bytes of all results; the oldest are evicted.
const MAX_BYTES: usize = 1 << 28;

#[derive(Default)]
pub struct InMemoryResults(Mutex<VecDeque<(String, Principal, Json)>>);

impl InMemoryResults {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Principal, Json)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResultStore for InMemoryResults {
    fn store<'a>(&'a self, caller: &'a Caller, _: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        let mut results = self.lock();
        let handle = format!("r_{}", CallId::fresh());
        results.push_back((handle.clone(), caller.principal.clone(), whole));
        let mut bytes: usize = results.iter().map(|(_, _, whole)| whole.bytes().len()).sum();
        while bytes > MAX_BYTES && results.len() > 1 {
            bytes -= results.pop_front().map_or(0, |(_, _, whole)| whole.bytes().len());
        }
        ready(Ok(handle))
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        let results = self.lock();
        let found = results.iter().find(|(name, owner, _)| name == handle && *owner == caller.principal);
        ready(found.map(|(_, _, whole)| whole.clone()).ok_or(StoreError::NotFound(Port::Results)))
    }
}
