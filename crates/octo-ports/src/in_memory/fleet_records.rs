//! Records of the fleet within this process.

use super::ready;
use crate::{ChangeNotifier, Changes, FleetRecords, StoreResult};
use octo_model::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct InMemoryFleetRecords {
    records: Mutex<BTreeMap<String, String>>,
    notifier: ChangeNotifier,
}

impl InMemoryFleetRecords {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FleetRecords for InMemoryFleetRecords {
    fn changes(&self) -> Changes {
        self.notifier.subscribe()
    }

    fn with_prefix<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, StoreResult<Vec<(String, String)>>> {
        let records = self.lock();
        let found = records.range(prefix.to_owned()..).take_while(|(name, _)| name.starts_with(prefix));
        ready(Ok(found.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }

    fn add<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<String>> {
        let known = self.lock().entry(name.to_owned()).or_insert_with(|| value.to_owned()).clone();
        self.notifier.notify();
        ready(Ok(known))
    }

    fn put<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, StoreResult<()>> {
        self.lock().insert(name.to_owned(), value.to_owned());
        self.notifier.notify();
        ready(Ok(()))
    }
}
