//! Credentials with which the hub logs in to the servers behind it, and logins that wait for a person.

use octo_model::{Caller, Kind, Principal, ToolError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// More than any answer of an authorization server needs.
const LONGEST: usize = 256 << 10;
/// Credentials of one owner.
const MOST: usize = 1024;
/// Logins that wait at the same time, of all owners.
const MOST_WAITING: usize = 4096;

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
pub struct Kept {
    pub slot: Slot,
    /// Grows with every change of any credential, and never comes back.
    pub revision: u64,
    pub secret: Secret,
}

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
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
pub enum Claim {
    Ours,
    Taken,
}

/// What keeps them: the hub's store. Acknowledged means durable, also over a loss of power.
pub trait KeepsCredentials: Send + Sync {
    /// What an owner has for a server, the newest first.
    fn all<'a>(&'a self, owner: &'a Owner, server: &'a str) -> Later<'a, Vec<Kept>>;
    fn find<'a>(&'a self, slot: &'a Slot) -> Later<'a, Option<Kept>>;
    /// Where there are credentials, of all owners.
    fn slots(&self) -> Later<'_, Vec<Slot>>;
    /// Keeps a secret and says its revision. With `over`, only in place of exactly that revision; else it is a conflict.
    fn put<'a>(&'a self, slot: &'a Slot, secret: Secret, over: Option<u64>) -> Later<'a, u64>;
    /// Forgets a credential; `false` when there was none.
    fn remove<'a>(&'a self, slot: &'a Slot) -> Later<'a, bool>;
    /// Takes the turn to renew a credential, for so long, among all processes.
    fn claim<'a>(&'a self, slot: &'a Slot, holder: &'a str, time: Duration) -> Later<'a, Claim>;
    fn release<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> Later<'a, ()>;
    /// Keeps a login in place of an earlier one of the same owner for the same server.
    fn wait<'a>(&'a self, waiting: Waiting, now: i64) -> Later<'a, ()>;
    /// Takes a login away: the second one to ask finds nothing.
    fn take<'a>(&'a self, id: &'a str, now: i64) -> Later<'a, Option<Waiting>>;
    /// The login of an owner for a server, which goes on waiting.
    fn waits<'a>(&'a self, owner: &'a Owner, server: &'a str, now: i64) -> Later<'a, Option<Waiting>>;
}

/// Where credentials are kept.
#[derive(Clone)]
pub struct Credentials(Arc<dyn KeepsCredentials>);

impl Credentials {
    pub fn new(keeps: Arc<dyn KeepsCredentials>) -> Self {
        Self(keeps)
    }

    /// Kept in memory, until the process ends.
    pub fn until_the_end() -> Self {
        Self::new(Arc::new(Memory::default()))
    }

    pub async fn all(&self, owner: &Owner, server: &str) -> Result<Vec<Kept>, ToolError> {
        self.0.all(owner, server).await
    }

    pub async fn find(&self, slot: &Slot) -> Result<Option<Kept>, ToolError> {
        self.0.find(slot).await
    }

    pub async fn slots(&self) -> Result<Vec<Slot>, ToolError> {
        self.0.slots().await
    }

    pub async fn put(&self, slot: &Slot, secret: Secret, over: Option<u64>) -> Result<u64, ToolError> {
        fits(&secret)?;
        self.0.put(slot, secret, over).await
    }

    pub async fn remove(&self, slot: &Slot) -> Result<bool, ToolError> {
        self.0.remove(slot).await
    }

    pub async fn claim(&self, slot: &Slot, holder: &str, time: Duration) -> Result<Claim, ToolError> {
        self.0.claim(slot, holder, time).await
    }

    pub async fn release(&self, slot: &Slot, holder: &str) -> Result<(), ToolError> {
        self.0.release(slot, holder).await
    }

    pub async fn wait(&self, waiting: Waiting, now: i64) -> Result<(), ToolError> {
        fits(&waiting.secret)?;
        self.0.wait(waiting, now).await
    }

    pub async fn take(&self, id: &str, now: i64) -> Result<Option<Waiting>, ToolError> {
        self.0.take(id, now).await
    }

    pub async fn waits(&self, owner: &Owner, server: &str, now: i64) -> Result<Option<Waiting>, ToolError> {
        self.0.waits(owner, server, now).await
    }
}

fn fits(secret: &Secret) -> Result<(), ToolError> {
    if secret.0.len() <= LONGEST {
        return Ok(());
    }
    Err(ToolError::new(Kind::TooLarge, "The credential is too long to be kept."))
}

/// Said by whatever keeps them when a limit is reached.
pub fn too_many() -> ToolError {
    ToolError::new(Kind::TooLarge, "Too many credentials are kept, or too many logins wait.")
        .hint("Log out of servers that are no longer used, or wait until logins that nobody has finished have expired.")
}

/// Said when a credential is not the one any more that was read before.
pub fn changed_meanwhile() -> ToolError {
    ToolError::new(Kind::Conflict, "The credential was changed by somebody else in the meantime.")
        .hint("Try again.")
}

/// Whether another one fits in.
pub fn has_room(credentials: usize) -> bool {
    credentials < MOST
}

/// Whether another login may wait.
pub fn may_wait(waiting: usize) -> bool {
    waiting < MOST_WAITING
}

#[derive(Default)]
struct Memory(Mutex<Table>);

#[derive(Default)]
struct Table {
    revision: u64,
    kept: HashMap<Slot, (u64, Secret)>,
    claims: HashMap<Slot, (String, Instant)>,
    waiting: HashMap<(Owner, String), Waiting>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn put(&mut self, slot: &Slot, secret: Secret, over: Option<u64>) -> Result<u64, ToolError> {
        let present = self.kept.get(slot).map(|(revision, _)| *revision);
        if over.is_some() && over != present {
            return Err(changed_meanwhile());
        }
        let owned = self.kept.keys().filter(|kept| kept.owner == slot.owner).count();
        if present.is_none() && !has_room(owned) {
            return Err(too_many());
        }
        self.revision += 1;
        self.kept.insert(slot.clone(), (self.revision, secret));
        Ok(self.revision)
    }

    fn wait(&mut self, waiting: Waiting, now: i64) -> Result<(), ToolError> {
        self.waiting.retain(|_, one| one.expires > now);
        if !may_wait(self.waiting.len()) {
            return Err(too_many());
        }
        self.waiting.insert((waiting.owner.clone(), waiting.server.clone()), waiting);
        Ok(())
    }
}

fn kept(slot: &Slot, (revision, secret): &(u64, Secret)) -> Kept {
    Kept { slot: slot.clone(), revision: *revision, secret: secret.clone() }
}

fn now<'a, T: Send + 'a>(value: Result<T, ToolError>) -> Later<'a, T> {
    Box::pin(std::future::ready(value))
}

impl KeepsCredentials for Memory {
    fn all<'a>(&'a self, owner: &'a Owner, server: &'a str) -> Later<'a, Vec<Kept>> {
        let table = self.lock();
        let own = table.kept.iter().filter(|(slot, _)| slot.owner == *owner && slot.server == server);
        let mut found: Vec<Kept> = own.map(|(slot, value)| kept(slot, value)).collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.revision));
        now(Ok(found))
    }

    fn find<'a>(&'a self, slot: &'a Slot) -> Later<'a, Option<Kept>> {
        now(Ok(self.lock().kept.get(slot).map(|value| kept(slot, value))))
    }

    fn slots(&self) -> Later<'_, Vec<Slot>> {
        now(Ok(self.lock().kept.keys().cloned().collect()))
    }

    fn put<'a>(&'a self, slot: &'a Slot, secret: Secret, over: Option<u64>) -> Later<'a, u64> {
        now(self.lock().put(slot, secret, over))
    }

    fn remove<'a>(&'a self, slot: &'a Slot) -> Later<'a, bool> {
        now(Ok(self.lock().kept.remove(slot).is_some()))
    }

    fn claim<'a>(&'a self, slot: &'a Slot, holder: &'a str, time: Duration) -> Later<'a, Claim> {
        let (mut table, at) = (self.lock(), Instant::now());
        table.claims.retain(|_, (_, until)| *until > at);
        if table.claims.get(slot).is_some_and(|(by, _)| by != holder) {
            return now(Ok(Claim::Taken));
        }
        table.claims.insert(slot.clone(), (holder.to_owned(), at + time));
        now(Ok(Claim::Ours))
    }

    fn release<'a>(&'a self, slot: &'a Slot, holder: &'a str) -> Later<'a, ()> {
        let mut table = self.lock();
        if table.claims.get(slot).is_some_and(|(by, _)| by == holder) {
            table.claims.remove(slot);
        }
        now(Ok(()))
    }

    fn wait<'a>(&'a self, waiting: Waiting, at: i64) -> Later<'a, ()> {
        now(self.lock().wait(waiting, at))
    }

    fn take<'a>(&'a self, id: &'a str, at: i64) -> Later<'a, Option<Waiting>> {
        let mut table = self.lock();
        let place = table.waiting.iter().find(|(_, one)| one.id == id).map(|(place, _)| place.clone());
        let taken = place.and_then(|place| table.waiting.remove(&place));
        now(Ok(taken.filter(|one| one.expires > at)))
    }

    fn waits<'a>(&'a self, owner: &'a Owner, server: &'a str, at: i64) -> Later<'a, Option<Waiting>> {
        let table = self.lock();
        let found = table.waiting.get(&(owner.clone(), server.to_owned())).filter(|one| one.expires > at);
        now(Ok(found.cloned()))
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
        let store = Credentials::until_the_end();
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
        let store = Credentials::until_the_end();
        let a = slot("ada", "i");
        let first = store.put(&a, Secret::new("one"), None).await.unwrap();
        let second = store.put(&a, Secret::new("two"), Some(first)).await.unwrap();
        let late = store.put(&a, Secret::new("late"), Some(first)).await.unwrap_err();
        assert_eq!(late.kind, Kind::Conflict);
        assert_eq!(store.find(&a).await.unwrap().unwrap().revision, second);
    }

    #[tokio::test]
    async fn only_one_may_renew_at_a_time() {
        let (store, a) = (Credentials::until_the_end(), slot("ada", "i"));
        let minute = Duration::from_secs(60);
        assert_eq!(store.claim(&a, "x", minute).await.unwrap(), Claim::Ours);
        assert_eq!(store.claim(&a, "y", minute).await.unwrap(), Claim::Taken);
        assert_eq!(store.claim(&slot("bob", "i"), "y", minute).await.unwrap(), Claim::Ours);
        store.release(&a, "y").await.unwrap();
        assert_eq!(store.claim(&a, "y", minute).await.unwrap(), Claim::Taken);
        store.release(&a, "x").await.unwrap();
        assert_eq!(store.claim(&a, "y", Duration::ZERO).await.unwrap(), Claim::Ours);
        assert_eq!(store.claim(&a, "x", minute).await.unwrap(), Claim::Ours, "the time was over");
    }

    #[tokio::test]
    async fn a_login_is_taken_once_and_replaced_by_the_next() {
        let store = Credentials::until_the_end();
        let owner = Owner::from(&Caller::named("ada"));
        let login = |id: &str, expires| Waiting {
            id: id.into(),
            owner: owner.clone(),
            server: "notion".into(),
            expires,
            secret: Secret::new("verifier"),
        };
        store.wait(login("one", 100), 0).await.unwrap();
        store.wait(login("two", 100), 0).await.unwrap();
        assert_eq!(store.take("one", 0).await.unwrap(), None);
        assert_eq!(store.waits(&owner, "notion", 0).await.unwrap().unwrap().id, "two");
        assert!(store.take("two", 0).await.unwrap().is_some());
        assert_eq!(store.take("two", 0).await.unwrap(), None);
        store.wait(login("three", 100), 0).await.unwrap();
        assert_eq!(store.take("three", 100).await.unwrap(), None, "too late");
    }

    #[test]
    fn secrets_are_not_printed_and_owners_are_never_mistaken() {
        let kept = Kept { slot: slot("ada", "i"), revision: 1, secret: Secret::new("s3cret") };
        assert!(!format!("{kept:?}").contains("s3cret"));
        let nobody = Owner::Person(Principal::new("", ""));
        assert_ne!(nobody.parts(), Owner::Shared.parts());
    }
}
