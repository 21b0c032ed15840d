//! In-memory credentials.

use super::ready;
use crate::credentials::{
    CredentialChange, CredentialRecords, CredentialSet, SealedRevisions, check_credential_count,
    check_pending_count,
};
use crate::{ChangeNotifier, Changes, Owner, PendingLogin, StoreResult, StoredCredential};
use octo_model::BoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct InMemoryCredentials {
    set: Mutex<CredentialSet>,
    notifier: ChangeNotifier,
}

impl InMemoryCredentials {
    pub(crate) fn lock(&self) -> MutexGuard<'_, CredentialSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply(set: &mut CredentialSet, change: CredentialChange) -> StoreResult<()> {
    match change {
        CredentialChange::Put(kept) => {
            let others = |one: &&StoredCredential| one.slot.owner == kept.slot.owner && one.slot != kept.slot;
            check_credential_count(set.credentials.iter().filter(others).count())?;
            set.credentials.retain(|one| one.slot != kept.slot);
            set.credentials.push(kept);
        }
        CredentialChange::Remove(slot) => set.credentials.retain(|one| one.slot != slot),
        CredentialChange::Replace { credentials, mut logins } => {
            logins.retain(|login| set.logins.iter().any(|known| known.id == login.id));
            (set.credentials, set.logins) = (credentials, logins);
        }
    }
    Ok(())
}

impl CredentialRecords for InMemoryCredentials {
    fn changes(&self) -> Changes {
        self.notifier.subscribe()
    }

    fn revisions(&self) -> BoxFuture<'_, StoreResult<Option<SealedRevisions>>> {
        ready(Ok(self.lock().revisions.clone()))
    }

    fn load<'a>(&'a self, owner: &'a Owner, server: &'a str) -> BoxFuture<'a, StoreResult<CredentialSet>> {
        let mut set = self.lock().clone();
        set.credentials.retain(|kept| kept.slot.owner == *owner && kept.slot.server == server);
        ready(Ok(set))
    }

    fn load_all(&self) -> BoxFuture<'_, StoreResult<CredentialSet>> {
        ready(Ok(self.lock().clone()))
    }

    fn write<'a>(
        &'a self,
        before: Option<SealedRevisions>,
        after: SealedRevisions,
        change: CredentialChange,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let mut set = self.lock();
        if set.revisions != before {
            return ready(Ok(false));
        }
        let applied = apply(&mut set, change);
        if applied.is_ok() {
            set.revisions = Some(after);
            self.notifier.notify();
        }
        ready(applied.map(|()| true))
    }

    fn put_pending(&self, login: PendingLogin, now: i64) -> BoxFuture<'_, StoreResult<()>> {
        let logins = &mut self.lock().logins;
        logins.retain(|one| one.expires > now);
        let checked = check_pending_count(logins.len());
        if checked.is_ok() {
            logins.retain(|one| (&one.owner, &one.server) != (&login.owner, &login.server));
            logins.push(login);
            self.notifier.notify();
        }
        ready(checked)
    }

    fn take_pending<'a>(&'a self, id: &'a str) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let logins = &mut self.lock().logins;
        let at = logins.iter().position(|one| one.id == id);
        self.notifier.notify();
        ready(Ok(at.map(|at| logins.remove(at))))
    }

    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
    ) -> BoxFuture<'a, StoreResult<Option<PendingLogin>>> {
        let set = self.lock();
        ready(Ok(set.logins.iter().find(|one| one.owner == *owner && one.server == server).cloned()))
    }
}
