//! One change of a memory at a time in this process. Changes that wait for the row of an owner would each keep a session
//! of the pool from the other owners.

use octo_model::Principal;
use octo_ports::{Port, StoreError, StoreResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// How long a change waits for those before it.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type OwnerLock = OwnedMutexGuard<()>;

#[derive(Default)]
pub(super) struct OwnerLocks(Mutex<HashMap<Principal, Arc<tokio::sync::Mutex<()>>>>);

impl OwnerLocks {
    pub(super) async fn lock(&self, owner: &Principal) -> StoreResult<OwnerLock> {
        let lock = self.of(owner);
        timeout(WAIT_TIMEOUT, lock.lock_owned()).await.map_err(|_| StoreError::Busy(Port::Memory))
    }

    fn of(&self, owner: &Principal) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(owner.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[tokio::test]
    async fn one_change_at_a_time_of_each_owner() {
        let locks = OwnerLocks::default();
        let [ada, bob] = ["ada", "bob"].map(|name| Principal::new("t", name));
        let first = locks.lock(&ada).await.unwrap();
        drop(locks.lock(&bob).await.unwrap());
        assert!(timeout(Duration::from_millis(50), locks.lock(&ada)).await.is_err());
        drop(first);
        drop(locks.lock(&ada).await.unwrap());
        drop(locks.lock(&bob).await.unwrap());
        assert_eq!(locks.0.lock().unwrap().len(), 1, "only the last one is remembered");
    }
}
