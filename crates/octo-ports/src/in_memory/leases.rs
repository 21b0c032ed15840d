//! Leases within this process.

use super::ready;
use crate::leases::MAX_LEASE_DURATION;
use crate::{Lease, Leases, StoreResult};
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct InMemoryLeases(Mutex<Table>);

#[derive(Default)]
struct Table {
    last_token: u64,
    held: HashMap<String, (u64, Instant)>,
}

impl InMemoryLeases {
    fn lock(&self) -> MutexGuard<'_, Table> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        table.held.retain(|_, (_, until)| *until > now);
        table
    }
}

impl Leases for InMemoryLeases {
    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>> {
        let mut table = self.lock();
        if table.held.contains_key(name) {
            return ready(Ok(None));
        }
        table.last_token += 1;
        let token = table.last_token;
        table.held.insert(name.to_owned(), (token, Instant::now() + ttl.min(MAX_LEASE_DURATION)));
        ready(Ok(Some(Lease { name: name.to_owned(), token })))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        let mut table = self.lock();
        let held = table.held.get_mut(&lease.name).filter(|(token, _)| *token == lease.token);
        let renewed = held.map(|(_, until)| *until = Instant::now() + ttl.min(MAX_LEASE_DURATION));
        ready(Ok(renewed.is_some()))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>> {
        let mut table = self.lock();
        if table.held.get(&lease.name).is_some_and(|(token, _)| *token == lease.token) {
            table.held.remove(&lease.name);
        }
        ready(Ok(()))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        ready(Ok(self.lock().held.get(name).map(|_| format!("process {}", std::process::id()))))
    }
}
