//! Leases within this process.

use super::ready;
use crate::leases::MAX_LEASE_DURATION;
use crate::{ChangeNotifier, Changes, Lease, Leases, StoreResult};
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct InMemoryLeases {
    table: Mutex<Table>,
    notifier: ChangeNotifier,
}

#[derive(Default)]
struct Table {
    last_token: u64,
    /// Token and expiry, until released or acquired again. Without an expiry a lease ends when it is released.
    leases: HashMap<String, (u64, Option<Instant>)>,
}

impl Table {
    fn is_held(&self, name: &str) -> bool {
        let now = Instant::now();
        self.leases.get(name).is_some_and(|(_, until)| until.is_none_or(|until| until > now))
    }
}

fn until(ttl: Duration) -> Option<Instant> {
    Some(Instant::now() + ttl.min(MAX_LEASE_DURATION))
}

impl InMemoryLeases {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn acquire_now(&self, name: &str, until: Option<Instant>) -> Option<Lease> {
        let mut table = self.lock();
        if table.is_held(name) {
            return None;
        }
        table.last_token += 1;
        let token = table.last_token;
        table.leases.insert(name.to_owned(), (token, until));
        self.notifier.notify();
        Some(Lease { name: name.to_owned(), token })
    }

    pub(super) fn release_now(&self, lease: &Lease) {
        let mut table = self.lock();
        if table.leases.get(&lease.name).is_some_and(|(token, _)| *token == lease.token) {
            table.leases.remove(&lease.name);
            self.notifier.notify();
        }
    }

    pub(super) fn is_held(&self, name: &str) -> bool {
        self.lock().is_held(name)
    }
}

impl Leases for InMemoryLeases {
    fn changes(&self) -> Changes {
        self.notifier.subscribe()
    }

    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>> {
        ready(Ok(self.acquire_now(name, until(ttl))))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        let mut table = self.lock();
        let held = table.leases.get_mut(&lease.name).filter(|(token, _)| *token == lease.token);
        let renewed = held.map(|(_, expiry)| *expiry = until(ttl));
        ready(Ok(renewed.is_some()))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>> {
        self.release_now(lease);
        ready(Ok(()))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        ready(Ok(self.is_held(name).then(|| format!("process {}", std::process::id()))))
    }
}
