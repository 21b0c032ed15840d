//! In-memory credentials.

use super::ready;
use crate::credentials::{check_credential_count, check_pending_count, check_secret};
use crate::{CredentialStore, Owner, PendingLogin, Port, Slot, StoreError, StoreResult, StoredCredential};
use octo_model::BoxFuture;
use octo_model::Secret;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct InMemoryCredentials(Mutex<Table>);

#[derive(Default)]
struct Table {
    revision: u64,
    credentials: HashMap<Slot, (u64, Secret)>,
    pending: HashMap<(Owner, String), PendingLogin>,
}

impl InMemoryCredentials {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn put(&mut self, slot: &Slot, secret: Secret, over: Option<u64>) -> StoreResult<u64> {
        check_secret(&secret)?;
        let present = self.credentials.get(slot).map(|(revision, _)| *revision);
        if over.is_some() && over != present {
            return Err(StoreError::Conflict(Port::Credentials));
        }
        let owned = self.credentials.keys().filter(|kept| kept.owner == slot.owner).count();
        if present.is_none() {
            check_credential_count(owned)?;
        }
        self.revision += 1;
        self.credentials.insert(slot.clone(), (self.revision, secret));
        Ok(self.revision)
    }

    fn wait(&mut self, waiting: PendingLogin, now: i64) -> StoreResult<()> {
        check_secret(&waiting.secret)?;
        self.pending.retain(|_, one| one.expires > now);
        check_pending_count(self.pending.len())?;
        self.pending.insert((waiting.owner.clone(), waiting.server.clone()), waiting);
        Ok(())
    }
}

fn stored(slot: &Slot, (revision, secret): &(u64, Secret)) -> StoredCredential {
    StoredCredential { slot: slot.clone(), revision: *revision, secret: secret.clone() }
}

impl CredentialStore for InMemoryCredentials {
    fn all<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Vec<StoredCredential>>> {
        let table = self.lock();
        let own = table.credentials.iter().filter(|(slot, _)| slot.owner == *owner && slot.server == server);
        let mut found: Vec<StoredCredential> = own.map(|(slot, value)| stored(slot, value)).collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.revision));
        ready(Ok(found))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<Option<StoredCredential>>> {
        ready(Ok(self.lock().credentials.get(slot).map(|value| stored(slot, value))))
    }

    fn slots(&self) -> BoxFuture<'_, StoreResult<Vec<Slot>>> {
        ready(Ok(self.lock().credentials.keys().cloned().collect()))
    }

    fn put<'a>(
        &'a self,
        slot: &'a Slot,
        secret: Secret,
        over: Option<u64>,
    ) -> BoxFuture<'a, StoreResult<u64>> {
        ready(self.lock().put(slot, secret, over))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> BoxFuture<'a, StoreResult<bool>> {
        ready(Ok(self.lock().credentials.remove(slot).is_some()))
    }

    fn put_pending<'a>(&'a self, waiting: PendingLogin, at: i64) -> BoxFuture<'a, StoreResult<()>> {
        ready(self.lock().wait(waiting, at))
    }

    fn take_pending<'a>(&'a self, id: &'a str, at: i64) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let mut table = self.lock();
        let place = table.pending.iter().find(|(_, one)| one.id == id).map(|(place, _)| place.clone());
        let taken = place.and_then(|place| table.pending.remove(&place));
        ready(Ok(taken.filter(|one| one.expires > at)))
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        at: i64,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let table = self.lock();
        let found = table.pending.get(&(owner.clone(), server.to_owned())).filter(|one| one.expires > at);
        ready(Ok(found.cloned()))
    }
}
