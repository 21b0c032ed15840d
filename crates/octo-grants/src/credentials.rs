//! Credentials with which the hub logs in to the servers behind it, and logins that wait for a person.

use octo_model::{Caller, Kind, Principal, ToolError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// More than any answer of an authorization server needs.
const MAX_SECRET_BYTES: usize = 256 << 10;
/// Credentials of one owner.
const MAX_CREDENTIALS_PER_OWNER: usize = 1024;
/// Logins that wait at the same time, of all owners.
const MAX_PENDING_LOGINS: usize = 4096;

/// A text that nobody may read by accident: it has no `Display`, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Each use is a place where it could leak.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Whose a credential is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Everybody's who may use the server.
    Shared,
    Person(Principal),
}

impl Owner {
    /// Three texts that no two owners have in common.
    pub fn parts(&self) -> [&str; 3] {
        match self {
            Self::Shared => ["shared", "", ""],
            Self::Person(Principal { tenant, subject }) => ["person", tenant, subject],
        }
    }
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self::Person(caller.principal.clone())
    }
}

/// The one place where a credential is kept. The issuer is part of it, so that what one authorization server gave is never
/// shown to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    pub owner: Owner,
    pub server: String,
    pub issuer: String,
}

impl Slot {
    pub fn new(owner: Owner, server: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self { owner, server: server.into(), issuer: issuer.into() }
    }
}

/// A credential as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCredential {
    pub slot: Slot,
    /// Grows with every change of any credential, and never comes back.
    pub revision: u64,
    pub secret: Secret,
}

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLogin {
    /// Nobody can guess it; not the `state` itself.
    pub id: String,
    pub owner: Owner,
    pub server: String,
    /// Seconds since 1970.
    pub expires: i64,
    pub secret: Secret,
}

/// Whether something is ours to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseClaim {
    Acquired,
    Held,
}

/// What keeps them: the hub's store. Acknowledged means durable, also over a loss of power.
pub trait CredentialStore: Send + Sync {
    /// What an owner has for a server, the newest first.
    fn all<'a>(&'a self, owner: &'a Owner, server: &'a str) -> StoreFuture<'a, Vec<StoredCredential>>;
    fn find<'a>(&'a self, slot: &'a Slot) -> StoreFuture<'a, Option<StoredCredential>>;
    /// Where there are credentials, of all owners.
    fn slots(&self) -> StoreFuture<'_, Vec<Slot>>;
    /// Keeps a secret and says its revision. With `over`, only in place of exactly that revision; else it is a conflict.
    fn put<'a>(&'a self, slot: &'a Slot, secret: Secret, over: Option<u64>) -> StoreFuture<'a, u64>;
    /// Forgets a credential; `false` when there was none.
    fn remove<'a>(&'a self, slot: &'a Slot) -> StoreFuture<'a, bool>;
    /// Takes the turn to renew a credential, for so long, among all processes.
    fn acquire_lease<'a>(
        &'a self,
        slot: &'a Slot,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, LeaseClaim>;
    fn release_lease<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> StoreFuture<'a, ()>;
    /// Keeps a login in place of an earlier one of the same owner for the same server.
    fn put_pending<'a>(&'a self, waiting: PendingLogin, now: i64) -> StoreFuture<'a, ()>;
    /// Takes a login away: the second one to ask finds nothing.
    fn take_pending<'a>(&'a self, id: &'a str, now: i64) -> StoreFuture<'a, Option<PendingLogin>>;
    /// The login of an owner for a server, which goes on waiting.
    fn find_pending<'a>(
        &'a self,
        owner: &'a Owner,
        server: &'a str,
        now: i64,
    ) -> StoreFuture<'a, Option<PendingLogin>>;
}

/// Where credentials are kept.
#[derive(Clone)]
pub struct Credentials(Arc<dyn CredentialStore>);

impl Credentials {
    pub fn new(keeps: Arc<dyn CredentialStore>) -> Self {
        Self(keeps)
    }

    /// Kept in memory, until the process ends.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemoryCredentials::default()))
    }

    pub async fn all(&self, owner: &Owner, server: &str) -> Result<Vec<StoredCredential>, ToolError> {
        self.0.all(owner, server).await
    }

    pub async fn find(&self, slot: &Slot) -> Result<Option<StoredCredential>, ToolError> {
        self.0.find(slot).await
    }

    pub async fn slots(&self) -> Result<Vec<Slot>, ToolError> {
        self.0.slots().await
    }

    pub async fn put(&self, slot: &Slot, secret: Secret, over: Option<u64>) -> Result<u64, ToolError> {
        check_size(&secret)?;
        self.0.put(slot, secret, over).await
    }

    pub async fn remove(&self, slot: &Slot) -> Result<bool, ToolError> {
        self.0.remove(slot).await
    }

    pub async fn acquire_lease(
        &self,
        slot: &Slot,
        holder: &str,
        time: Duration,
    ) -> Result<LeaseClaim, ToolError> {
        self.0.acquire_lease(slot, holder, time).await
    }

    pub async fn release_lease(&self, slot: &Slot, holder: &str) -> Result<(), ToolError> {
        self.0.release_lease(slot, holder).await
    }

    pub async fn put_pending(&self, waiting: PendingLogin, now: i64) -> Result<(), ToolError> {
        check_size(&waiting.secret)?;
        self.0.put_pending(waiting, now).await
    }

    pub async fn take_pending(&self, id: &str, now: i64) -> Result<Option<PendingLogin>, ToolError> {
        self.0.take_pending(id, now).await
    }

    pub async fn find_pending(
        &self,
        owner: &Owner,
        server: &str,
        now: i64,
    ) -> Result<Option<PendingLogin>, ToolError> {
        self.0.find_pending(owner, server, now).await
    }
}

fn check_size(secret: &Secret) -> Result<(), ToolError> {
    if secret.0.len() <= MAX_SECRET_BYTES {
        return Ok(());
    }
    Err(ToolError::new(Kind::TooLarge, "The credential is too long to be kept."))
}

/// Said by whatever keeps them when a limit is reached.
pub fn limit_error() -> ToolError {
    ToolError::new(Kind::TooLarge, "Too many credentials are kept, or too many logins wait.")
        .hint("Log out of servers that are no longer used, or wait until logins that nobody has finished have expired.")
}

/// Said when a credential is not the one any more that was read before.
pub fn conflict_error() -> ToolError {
    ToolError::new(Kind::Conflict, "The credential was changed by somebody else in the meantime.")
        .hint("Try again.")
}

/// Whether another one fits in.
pub fn can_add_credential(credentials: usize) -> bool {
    credentials < MAX_CREDENTIALS_PER_OWNER
}

/// Whether another login may wait.
pub fn can_add_pending(waiting: usize) -> bool {
    waiting < MAX_PENDING_LOGINS
}

#[derive(Default)]
struct InMemoryCredentials(Mutex<Table>);

#[derive(Default)]
struct Table {
    revision: u64,
    credentials: HashMap<Slot, (u64, Secret)>,
    leases: HashMap<Slot, (String, Instant)>,
    pending: HashMap<(Owner, String), PendingLogin>,
}

impl InMemoryCredentials {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn put(&mut self, slot: &Slot, secret: Secret, over: Option<u64>) -> Result<u64, ToolError> {
        let present = self.credentials.get(slot).map(|(revision, _)| *revision);
        if over.is_some() && over != present {
            return Err(conflict_error());
        }
        let owned = self.credentials.keys().filter(|kept| kept.owner == slot.owner).count();
        if present.is_none() && !can_add_credential(owned) {
            return Err(limit_error());
        }
        self.revision += 1;
        self.credentials.insert(slot.clone(), (self.revision, secret));
        Ok(self.revision)
    }

    fn wait(&mut self, waiting: PendingLogin, now: i64) -> Result<(), ToolError> {
        self.pending.retain(|_, one| one.expires > now);
        if !can_add_pending(self.pending.len()) {
            return Err(limit_error());
        }
        self.pending.insert((waiting.owner.clone(), waiting.server.clone()), waiting);
        Ok(())
    }
}

fn stored(slot: &Slot, (revision, secret): &(u64, Secret)) -> StoredCredential {
    StoredCredential { slot: slot.clone(), revision: *revision, secret: secret.clone() }
}

fn ready<'a, T: Send + 'a>(value: Result<T, ToolError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl CredentialStore for InMemoryCredentials {
    fn all<'a>(&'a self, owner: &'a Owner, server: &'a str) -> StoreFuture<'a, Vec<StoredCredential>> {
        let table = self.lock();
        let own = table.credentials.iter().filter(|(slot, _)| slot.owner == *owner && slot.server == server);
        let mut found: Vec<StoredCredential> = own.map(|(slot, value)| stored(slot, value)).collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.revision));
        ready(Ok(found))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> StoreFuture<'a, Option<StoredCredential>> {
        ready(Ok(self.lock().credentials.get(slot).map(|value| stored(slot, value))))
    }

    fn slots(&self) -> StoreFuture<'_, Vec<Slot>> {
        ready(Ok(self.lock().credentials.keys().cloned().collect()))
    }

    fn put<'a>(&'a self, slot: &'a Slot, secret: Secret, over: Option<u64>) -> StoreFuture<'a, u64> {
        ready(self.lock().put(slot, secret, over))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> StoreFuture<'a, bool> {
        ready(Ok(self.lock().credentials.remove(slot).is_some()))
    }

    fn acquire_lease<'a>(
        &'a self,
        slot: &'a Slot,
        holder: &'a str,
        time: Duration,
    ) -> StoreFuture<'a, LeaseClaim> {
        let (mut table, at) = (self.lock(), Instant::now());
        table.leases.retain(|_, (_, until)| *until > at);
        if table.leases.get(slot).is_some_and(|(by, _)| by != holder) {
            return ready(Ok(LeaseClaim::Held));
        }
        table.leases.insert(slot.clone(), (holder.to_owned(), at + time));
        ready(Ok(LeaseClaim::Acquired))
    }

    fn release_lease<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> StoreFuture<'a, ()> {
        let mut table = self.lock();
        if table.leases.get(slot).is_some_and(|(by, _)| by == holder) {
            table.leases.remove(slot);
        }
        ready(Ok(()))
    }

    fn put_pending<'a>(&'a self, waiting: PendingLogin, at: i64) -> StoreFuture<'a, ()> {
        ready(self.lock().wait(waiting, at))
    }

    fn take_pending<'a>(&'a self, id: &'a str, at: i64) -> StoreFuture<'a, Option<PendingLogin>> {
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
    ) -> StoreFuture<'a, Option<PendingLogin>> {
        let table = self.lock();
        let found = table.pending.get(&(owner.clone(), server.to_owned())).filter(|one| one.expires > at);
        ready(Ok(found.cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(subject: &str, issuer: &str) -> Slot {
        Slot::new(Owner::from(&Caller::named(subject)), "notion", issuer)
    }

    #[tokio::test]
    async fn a_credential_is_its_owners_and_its_issuers() {
        let store = Credentials::in_memory();
        let (a, b) = (slot("ada", "https://a.example"), slot("ada", "https://b.example"));
        let first = store.put(&a, Secret::new("one"), None).await.unwrap();
        let second = store.put(&b, Secret::new("two"), None).await.unwrap();
        assert!(second > first);
        let all = store.all(&a.owner, "notion").await.unwrap();
        assert_eq!(all.iter().map(|kept| kept.secret.expose()).collect::<Vec<_>>(), ["two", "one"]);
        assert_eq!(store.find(&slot("bob", "https://a.example")).await.unwrap(), None);
        let slots = store.slots().await.unwrap();
        assert!(slots.len() == 2 && slots.contains(&a) && slots.contains(&b), "{slots:?}");
        assert_eq!(store.all(&Owner::Shared, "notion").await.unwrap(), []);
        assert!(store.remove(&a).await.unwrap() && !store.remove(&a).await.unwrap());
    }

    #[tokio::test]
    async fn a_change_of_another_revision_is_a_conflict() {
        let store = Credentials::in_memory();
        let a = slot("ada", "i");
        let first = store.put(&a, Secret::new("one"), None).await.unwrap();
        let second = store.put(&a, Secret::new("two"), Some(first)).await.unwrap();
        let late = store.put(&a, Secret::new("late"), Some(first)).await.unwrap_err();
        assert_eq!(late.kind, Kind::Conflict);
        assert_eq!(store.find(&a).await.unwrap().unwrap().revision, second);
    }

    #[tokio::test]
    async fn only_one_may_renew_at_a_time() {
        let (store, a) = (Credentials::in_memory(), slot("ada", "i"));
        let minute = Duration::from_secs(60);
        assert_eq!(store.acquire_lease(&a, "x", minute).await.unwrap(), LeaseClaim::Acquired);
        assert_eq!(store.acquire_lease(&a, "y", minute).await.unwrap(), LeaseClaim::Held);
        assert_eq!(store.acquire_lease(&slot("bob", "i"), "y", minute).await.unwrap(), LeaseClaim::Acquired);
        store.release_lease(&a, "y").await.unwrap();
        assert_eq!(store.acquire_lease(&a, "y", minute).await.unwrap(), LeaseClaim::Held);
        store.release_lease(&a, "x").await.unwrap();
        assert_eq!(store.acquire_lease(&a, "y", Duration::ZERO).await.unwrap(), LeaseClaim::Acquired);
        assert_eq!(
            store.acquire_lease(&a, "x", minute).await.unwrap(),
            LeaseClaim::Acquired,
            "the time was over"
        );
    }

    #[tokio::test]
    async fn a_login_is_taken_once_and_replaced_by_the_next() {
        let store = Credentials::in_memory();
        let owner = Owner::from(&Caller::named("ada"));
        let login = |id: &str, expires| PendingLogin {
            id: id.into(),
            owner: owner.clone(),
            server: "notion".into(),
            expires,
            secret: Secret::new("verifier"),
        };
        store.put_pending(login("one", 100), 0).await.unwrap();
        store.put_pending(login("two", 100), 0).await.unwrap();
        assert_eq!(store.take_pending("one", 0).await.unwrap(), None);
        assert_eq!(store.find_pending(&owner, "notion", 0).await.unwrap().unwrap().id, "two");
        assert!(store.take_pending("two", 0).await.unwrap().is_some());
        assert_eq!(store.take_pending("two", 0).await.unwrap(), None);
        store.put_pending(login("three", 100), 0).await.unwrap();
        assert_eq!(store.take_pending("three", 100).await.unwrap(), None, "too late");
    }

    #[test]
    fn secrets_are_not_printed_and_owners_are_never_mistaken() {
        let kept = StoredCredential { slot: slot("ada", "i"), revision: 1, secret: Secret::new("s3cret") };
        assert!(!format!("{kept:?}").contains("s3cret"));
        let nobody = Owner::Person(Principal::new("", ""));
        assert_ne!(nobody.parts(), Owner::Shared.parts());
    }
}
