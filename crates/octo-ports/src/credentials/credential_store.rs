//! The store of credentials: seals them for any backend, each bound to its slot and revision, so that a record
//! that was moved, changed or restored is detected.

#[cfg(test)]
mod tests;

use super::revision_list::RevisionList;
use super::{
    CredentialChange, CredentialRecords, CredentialSet, Owner, PendingLogin, SealedRevisions, Slot,
    StoredCredential, check_secret, tampered,
};
use crate::seal::{Keyring, OpenKeyring, Seal};
use crate::{Changes, Port, StoreError, StoreResult};
use octo_model::{BoxFuture, Secret};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Mutex, OnceCell};

/// Attempts of a change while other processes change credentials, too.
const MAX_ATTEMPTS: usize = 64;

/// Credentials and pending logins. Durable once acknowledged, also across a power failure.
pub struct CredentialStore {
    records: Arc<dyn CredentialRecords>,
    open_keyring: OpenKeyring,
    seal: OnceCell<Seal>,
    /// The highest revision that this process has seen.
    last_revision: AtomicU64,
    /// Changes of this process are made one after another.
    change_lock: Mutex<()>,
}

/// Handle to the credential store.
pub type Credentials = Arc<CredentialStore>;

impl CredentialStore {
    /// The keys are opened on first use.
    pub fn new(
        records: Arc<dyn CredentialRecords>,
        open_keyring: impl Fn() -> BoxFuture<'static, StoreResult<Keyring>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            records,
            open_keyring: Box::new(open_keyring),
            seal: OnceCell::new(),
            last_revision: AtomicU64::default(),
            change_lock: Mutex::default(),
        }
    }

    /// Changes of credentials and pending logins.
    pub fn changes(&self) -> Changes {
        self.records.changes()
    }

    /// The credentials of an owner for a server, newest first.
    pub async fn all(&self, owner: &Owner, server: &str) -> StoreResult<Vec<StoredCredential>> {
        let (seal, list, mut found) = self.load(|| self.records.load(owner, server)).await?;
        found.credentials.sort_by_key(|kept| Reverse(kept.revision));
        found.credentials.iter().map(|kept| unseal_credential(seal, &list, kept)).collect()
    }

    pub async fn find(&self, slot: &Slot) -> StoreResult<Option<StoredCredential>> {
        let (seal, list, found) = self.load(|| self.records.load(&slot.owner, &slot.server)).await?;
        match found.credentials.iter().find(|kept| kept.slot == *slot) {
            Some(kept) => unseal_credential(seal, &list, kept).map(Some),
            None if list.revision_of(slot).is_some() => Err(tampered()),
            None => Ok(None),
        }
    }

    /// The slots of all credentials, of all owners. Whether a record is genuine is checked when it is opened.
    pub async fn slots(&self) -> StoreResult<Vec<Slot>> {
        let (_, _, found) = self.load(|| self.records.load_all()).await?;
        Ok(found.credentials.into_iter().map(|kept| kept.slot).collect())
    }

    /// Stores a secret and returns its revision. With `over`, only if that is the current revision; otherwise
    /// it is a conflict.
    pub async fn put(&self, slot: &Slot, secret: Secret, over: Option<u64>) -> StoreResult<u64> {
        check_secret(&secret)?;
        self.change(|seal, list| {
            if over.is_some() && over != list.revision_of(slot) {
                return Err(StoreError::Conflict(Port::Credentials));
            }
            let revision = list.advance(slot);
            let kept = StoredCredential { slot: slot.clone(), revision, secret: secret.clone() };
            Ok((revision, CredentialChange::Put(seal_credential(seal, kept)?)))
        })
        .await
    }

    /// Removes a credential; `false` if there was none.
    pub async fn remove(&self, slot: &Slot) -> StoreResult<bool> {
        self.change(|_, list| Ok((list.forget(slot), CredentialChange::Remove(slot.clone())))).await
    }

    /// Stores a login, replacing an earlier one of the same owner for the same server.
    pub async fn put_pending(&self, login: PendingLogin, now: i64) -> StoreResult<()> {
        check_secret(&login.secret)?;
        let (seal, ..) = self.revisions().await?;
        self.records.put_pending(seal_login(seal, login)?, now).await
    }

    /// Removes and returns a login: a second caller finds nothing. Removed by the first request, whether it is
    /// usable or not.
    pub async fn take_pending(&self, id: &str, now: i64) -> StoreResult<Option<PendingLogin>> {
        let (seal, ..) = self.revisions().await?;
        usable_login(seal, self.records.take_pending(id).await?, now)
    }

    /// The login of an owner for a server, which stays pending.
    pub async fn find_pending(
        &self,
        owner: &Owner,
        server: &str,
        now: i64,
    ) -> StoreResult<Option<PendingLogin>> {
        let (seal, ..) = self.revisions().await?;
        usable_login(seal, self.records.find_pending(owner, server).await?, now)
    }

    /// Records, with the verified list of the same moment.
    async fn load<'a>(
        &'a self,
        load: impl FnOnce() -> BoxFuture<'a, StoreResult<CredentialSet>>,
    ) -> StoreResult<(&'a Seal, RevisionList, CredentialSet)> {
        let seal = self.seal().await?;
        let seen = self.last_revision.load(Ordering::Acquire);
        let found = load().await?;
        let list = self.verify(seal, found.revisions.as_ref(), seen)?;
        Ok((seal, list, found))
    }

    /// The list as stored, and verified.
    async fn revisions(&self) -> StoreResult<(&Seal, RevisionList, Option<SealedRevisions>)> {
        let seal = self.seal().await?;
        let seen = self.last_revision.load(Ordering::Acquire);
        let stored = self.records.revisions().await?;
        let list = self.verify(seal, stored.as_ref(), seen)?;
        Ok((seal, list, stored))
    }

    /// The list must be no older than what was seen before it was read.
    fn verify(&self, seal: &Seal, stored: Option<&SealedRevisions>, seen: u64) -> StoreResult<RevisionList> {
        let list = RevisionList::unseal(stored.ok_or_else(tampered)?, seal)?.ok_or_else(wrong_key)?;
        if list.revision < seen {
            return Err(tampered());
        }
        self.last_revision.fetch_max(list.revision, Ordering::AcqRel);
        Ok(list)
    }

    /// Makes a change, again if another process was first.
    async fn change<T>(
        &self,
        work: impl Fn(&Seal, &mut RevisionList) -> StoreResult<(T, CredentialChange)>,
    ) -> StoreResult<T> {
        let _turn = self.change_lock.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let (seal, mut list, before) = self.revisions().await?;
            let (done, change) = work(seal, &mut list)?;
            if self.records.write(before, list.seal(seal)?, change).await? {
                self.last_revision.fetch_max(list.revision, Ordering::AcqRel);
                return Ok(done);
            }
        }
        Err(StoreError::Busy(Port::Credentials))
    }

    async fn seal(&self) -> StoreResult<&Seal> {
        self.seal.get_or_try_init(|| self.open()).await
    }

    /// All or nothing: each secret can be opened with exactly one key, even after a crash.
    async fn open(&self) -> StoreResult<Seal> {
        let Keyring { current, previous } = (self.open_keyring)().await?;
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.records.load_all().await?;
            let (after, change) = match &stored.revisions {
                Some(list) if RevisionList::unseal(list, &current)?.is_some() => return Ok(current),
                Some(list) => reseal(&stored, list, &previous, &current)?,
                None if stored.credentials.is_empty() => {
                    let nothing = CredentialChange::Replace { credentials: Vec::new(), logins: Vec::new() };
                    (RevisionList::default().seal(&current)?, nothing)
                }
                None => return Err(tampered()),
            };
            let is_resealed = stored.revisions.is_some();
            if self.records.write(stored.revisions, after, change).await? {
                if is_resealed {
                    tracing::info!("credentials were re-encrypted with the new key");
                }
                return Ok(current);
            }
        }
        Err(StoreError::Busy(Port::Credentials))
    }
}

/// Reseals all records of an earlier key. Fails on a credential that was tampered with, so that it is not made
/// valid; logins that cannot be opened are removed: they are quickly started again.
fn reseal(
    stored: &CredentialSet,
    list: &SealedRevisions,
    previous: &[Seal],
    to: &Seal,
) -> StoreResult<(SealedRevisions, CredentialChange)> {
    for from in previous {
        let Some(list) = RevisionList::unseal(list, from)? else { continue };
        let anew = |kept| seal_credential(to, unseal_credential(from, &list, kept)?);
        let credentials = stored.credentials.iter().map(anew).collect::<StoreResult<_>>()?;
        let logins = stored.logins.iter().filter_map(|login| unseal_login(from, login));
        let logins = logins.map(|login| seal_login(to, login)).collect::<StoreResult<_>>()?;
        return Ok((list.seal(to)?, CredentialChange::Replace { credentials, logins }));
    }
    Err(wrong_key())
}

pub(super) fn wrong_key() -> StoreError {
    StoreError::SealMismatch { port: Port::Credentials, name: "credentials".to_owned() }
}

/// The data that a credential is bound to.
fn credential_binding<'a>(slot: &'a Slot, revision: &'a str) -> [&'a str; 6] {
    let [kind, tenant, subject] = slot.owner.parts();
    [kind, tenant, subject, &slot.server, &slot.issuer, revision]
}

pub(super) fn seal_credential(seal: &Seal, plain: StoredCredential) -> StoreResult<StoredCredential> {
    let revision = plain.revision.to_string();
    let secret = seal.seal(plain.secret.expose(), &credential_binding(&plain.slot, &revision))?;
    Ok(StoredCredential { secret, ..plain })
}

pub(super) fn unseal_credential(
    seal: &Seal,
    list: &RevisionList,
    sealed: &StoredCredential,
) -> StoreResult<StoredCredential> {
    let revision = sealed.revision.to_string();
    let plain = seal
        .unseal(&sealed.secret, &credential_binding(&sealed.slot, &revision))
        .filter(|_| list.revision_of(&sealed.slot) == Some(sealed.revision));
    Ok(StoredCredential { secret: plain.ok_or_else(tampered)?, ..sealed.clone() })
}

/// The data that a login is bound to.
fn login_binding<'a>(login: &'a PendingLogin, expires: &'a str) -> [&'a str; 7] {
    let [kind, tenant, subject] = login.owner.parts();
    ["login", &login.id, kind, tenant, subject, &login.server, expires]
}

pub(super) fn seal_login(seal: &Seal, plain: PendingLogin) -> StoreResult<PendingLogin> {
    let expires = plain.expires.to_string();
    let secret = seal.seal(plain.secret.expose(), &login_binding(&plain, &expires))?;
    Ok(PendingLogin { secret, ..plain })
}

pub(super) fn unseal_login(seal: &Seal, sealed: &PendingLogin) -> Option<PendingLogin> {
    let expires = sealed.expires.to_string();
    let secret = seal.unseal(&sealed.secret, &login_binding(sealed, &expires))?;
    Some(PendingLogin { secret, ..sealed.clone() })
}

fn usable_login(seal: &Seal, found: Option<PendingLogin>, now: i64) -> StoreResult<Option<PendingLogin>> {
    let Some(sealed) = found.filter(|login| login.expires > now) else { return Ok(None) };
    unseal_login(seal, &sealed).ok_or_else(tampered).map(Some)
}
