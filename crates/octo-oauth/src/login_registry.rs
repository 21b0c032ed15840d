//! State shared by all logins of a process: the store, unsaved tokens and refresh locks.

use crate::authorization_code;
use crate::challenge::Challenge;
use crate::login_spec::{Auth, ClientIdentity, LoginKey, LoginSpec};
use crate::start_page::StartPages;
use crate::token_set::{StoredLogin, TokenSet};
use octo_grants::Clock;
use octo_model::ToolError;
use octo_ports::{ChangeNotifier, Changes, Credentials, Leases, Owner, Slot, StoreError, Stores};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Maximum entries of each map; a full map is cleared.
const MAX_ENTRIES: usize = 10_000;
/// Maximum refresh jitter between processes, in seconds.
const MAX_JITTER_SECS: u64 = 30;
/// Attempts to write refreshed tokens, and the first delay between them.
const MAX_WRITE_ATTEMPTS: u32 = 4;
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Events buffered for a slow receiver.
const EVENT_CAPACITY: usize = 256;

/// A login or logout that this process has noticed.
#[derive(Debug, Clone)]
pub struct LoginEvent {
    pub owner: Owner,
    pub server: String,
    pub change: LoginChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginChange {
    LoggedIn,
    LoggedOut,
    /// No longer usable, with the reason.
    Lost(String),
}

pub(crate) struct LoginRegistry {
    pub(crate) store: Credentials,
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) identity: ClientIdentity,
    clock: Clock,
    specs: Mutex<HashMap<String, Arc<LoginSpec>>>,
    /// Last challenges of the servers.
    challenges: Mutex<HashMap<LoginKey, Challenge>>,
    /// Why the last login attempt failed.
    failures: Mutex<HashMap<LoginKey, String>>,
    failure_notifier: ChangeNotifier,
    /// Held from the storage of a login to its announcement.
    announcement_lock: tokio::sync::Mutex<()>,
    refresh_locks: Mutex<HashMap<Slot, Arc<tokio::sync::Mutex<()>>>>,
    /// Failed refreshes; not retried before this time.
    refresh_failures: Mutex<HashMap<Slot, (Instant, ToolError)>>,
    /// Logins whose loss has been announced.
    announced_losses: Mutex<HashMap<Slot, ()>>,
    /// Tokens that could not be written, with the revision that they replace.
    unsaved: Mutex<HashMap<Slot, (u64, TokenSet)>>,
    /// Start pages of pending logins.
    pub(crate) start_pages: StartPages,
    pub(crate) version: watch::Sender<u64>,
    pub(crate) events: broadcast::Sender<LoginEvent>,
    pub(crate) refresh_jitter: i64,
}

fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the key is new.
fn insert_bounded<K: Hash + Eq, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) -> bool {
    let mut map = lock(map);
    if map.len() >= MAX_ENTRIES && !map.contains_key(&key) {
        map.clear();
    }
    map.insert(key, value).is_none()
}

impl LoginRegistry {
    pub(crate) fn new(stores: &Stores, identity: ClientIdentity, clock: Clock) -> Result<Self, ToolError> {
        let random = authorization_code::random_token()?;
        let early = random.bytes().map(u64::from).sum::<u64>() % MAX_JITTER_SECS;
        Ok(Self {
            store: Arc::clone(&stores.credentials),
            leases: Arc::clone(&stores.leases),
            clock,
            specs: Mutex::default(),
            challenges: Mutex::default(),
            failures: Mutex::default(),
            failure_notifier: ChangeNotifier::default(),
            announcement_lock: tokio::sync::Mutex::default(),
            refresh_locks: Mutex::default(),
            refresh_failures: Mutex::default(),
            announced_losses: Mutex::default(),
            unsaved: Mutex::default(),
            start_pages: StartPages::new(&identity.redirect_uri),
            version: watch::Sender::new(0),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            refresh_jitter: early.cast_signed(),
            identity,
        })
    }

    /// Unix time in seconds.
    pub(crate) fn now(&self) -> i64 {
        self.clock.now().as_second()
    }

    pub(crate) fn set(&self, spec: LoginSpec) {
        insert_bounded(&self.specs, spec.server.clone(), Arc::new(spec));
    }

    pub(crate) fn unset(&self, server: &str) {
        lock(&self.specs).remove(server);
    }

    pub(crate) fn spec(&self, server: &str) -> Result<Arc<LoginSpec>, ToolError> {
        lock(&self.specs).get(server).cloned().ok_or_else(|| {
            ToolError::not_found(format!("No login is configured for server `{server}`."))
                .hint("Check the list of servers; a server without `auth` needs no login.")
        })
    }

    /// Whether a server with OAuth is configured.
    pub(crate) fn has_logins(&self) -> bool {
        lock(&self.specs).values().any(|spec| matches!(spec.auth, Auth::OAuth(_)))
    }

    pub(crate) fn challenge(&self, account: &LoginKey) -> Option<Challenge> {
        lock(&self.challenges).get(account).cloned()
    }

    pub(crate) fn set_challenge(&self, account: LoginKey, challenge: Challenge) {
        insert_bounded(&self.challenges, account, challenge);
    }

    pub(crate) fn failure(&self, account: &LoginKey) -> Option<String> {
        lock(&self.failures).get(account).cloned()
    }

    pub(crate) fn set_failure(&self, account: LoginKey, why: String) {
        self.start_pages.remove(&account);
        insert_bounded(&self.failures, account, why);
        self.failure_notifier.notify();
    }

    /// Changes of stored and pending logins, and failed login attempts of this process.
    pub(crate) fn changes(&self) -> Changes {
        self.store.changes().or(self.failure_notifier.subscribe())
    }

    /// A login was added or removed: earlier challenges, failures and start pages are void.
    pub(crate) fn login_changed(&self, account: &LoginKey, is_in: bool) {
        lock(&self.challenges).remove(account);
        lock(&self.failures).remove(account);
        self.start_pages.remove(account);
        lock(&self.announced_losses)
            .retain(|slot, ()| (&slot.owner, &slot.server) != (&account.0, &account.1));
        let change = if is_in { LoginChange::LoggedIn } else { LoginChange::LoggedOut };
        self.publish(account.clone(), change);
    }

    /// Stores a login, replacing all others of its owner at the server.
    pub(crate) async fn store_login(
        &self,
        account: &LoginKey,
        issuer: &str,
        tokens: &TokenSet,
    ) -> Result<(), ToolError> {
        let slot = Slot::new(account.0.clone(), &account.1, issuer);
        let _turn = self.announcement_lock.lock().await;
        self.store.put(&slot, tokens.to_secret()?, None).await?;
        for other in self.store.all(&account.0, &account.1).await.unwrap_or_default() {
            if other.slot != slot {
                self.store.remove(&other.slot).await?;
            }
        }
        self.login_changed(account, true);
        Ok(())
    }

    fn publish(&self, (owner, server): LoginKey, change: LoginChange) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
        let _ = self.events.send(LoginEvent { owner, server, change });
    }

    /// Announces a lost login, once.
    pub(crate) fn announce_loss(&self, slot: &Slot, why: &str) {
        if !insert_bounded(&self.announced_losses, slot.clone(), ()) {
            return;
        }
        let server = &slot.server;
        tracing::warn!(target: "upstream", %server, why, "login lost; log in again");
        self.publish((slot.owner.clone(), server.clone()), LoginChange::Lost(why.to_owned()));
    }

    /// The login is valid (again): its next loss is announced.
    pub(crate) fn clear_loss(&self, slot: &Slot) {
        lock(&self.announced_losses).remove(slot);
    }

    pub(crate) fn refresh_lock(&self, slot: &Slot) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = lock(&self.refresh_locks);
        if gates.len() >= MAX_ENTRIES {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        gates.entry(slot.clone()).or_default().clone()
    }

    pub(crate) fn recent_refresh_failure(&self, slot: &Slot) -> Option<ToolError> {
        let mut rests = lock(&self.refresh_failures);
        let (until, why) = rests.get(slot)?.clone();
        if until > Instant::now() {
            return Some(why);
        }
        rests.remove(slot);
        None
    }

    pub(crate) fn set_refresh_failure(&self, slot: &Slot, time: Duration, why: ToolError) {
        insert_bounded(&self.refresh_failures, slot.clone(), (Instant::now() + time, why));
    }

    /// Newest login of an owner at a server.
    pub(crate) async fn newest(&self, owner: &Owner, server: &str) -> Result<Option<StoredLogin>, ToolError> {
        let newest = self.store.all(owner, server).await?.into_iter().next();
        // What this process has stored is found after its announcement.
        drop(self.announcement_lock.lock().await);
        newest.map(|kept| StoredLogin::try_from(kept).map(|held| self.with_unsaved(held))).transpose()
    }

    pub(crate) async fn load(&self, slot: &Slot) -> Result<Option<StoredLogin>, ToolError> {
        let kept = self.store.find(slot).await?;
        kept.map(|kept| StoredLogin::try_from(kept).map(|held| self.with_unsaved(held))).transpose()
    }

    /// Applies tokens that this process could not write.
    fn with_unsaved(&self, held: StoredLogin) -> StoredLogin {
        let mut unwritten = lock(&self.unsaved);
        match unwritten.get(&held.slot) {
            Some((over, grant)) if *over == held.revision => StoredLogin { tokens: grant.clone(), ..held },
            Some(_) => {
                unwritten.remove(&held.slot);
                held
            }
            None => held,
        }
    }

    /// Replaces a login with its refreshed tokens. If the store fails, this process keeps using them: the old refresh
    /// token may be void.
    pub(crate) async fn replace(&self, held: StoredLogin, grant: TokenSet) -> Result<StoredLogin, ToolError> {
        let secret = grant.to_secret()?;
        let mut pause = WRITE_RETRY_DELAY;
        for last in (0..MAX_WRITE_ATTEMPTS).rev() {
            match self.store.put(&held.slot, secret.clone(), Some(held.revision)).await {
                Ok(revision) => {
                    lock(&self.unsaved).remove(&held.slot);
                    return Ok(StoredLogin { revision, tokens: grant, ..held });
                }
                Err(error @ StoreError::Conflict(_)) => return Err(error.into()),
                Err(_) if last > 0 => tokio::time::sleep(pause).await,
                Err(error) => {
                    tracing::error!(target: "upstream", server = %held.slot.server, %error, "cannot write a refreshed login")
                }
            }
            pause *= 3;
        }
        insert_bounded(&self.unsaved, held.slot.clone(), (held.revision, grant.clone()));
        Ok(StoredLogin { tokens: grant, ..held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_announced_once_and_losses_do_not_accumulate() {
        let identity = ClientIdentity::new("http://127.0.0.1/callback");
        let registry = LoginRegistry::new(&Stores::in_memory(), identity, Clock::default()).unwrap();
        let slot = |at: usize| Slot::new(Owner::Shared, format!("s{at}"), "i");
        for at in 0..=MAX_ENTRIES {
            registry.announce_loss(&slot(at), "expired");
            assert!(lock(&registry.announced_losses).len() <= MAX_ENTRIES);
        }
        let mut events = registry.events.subscribe();
        registry.announce_loss(&slot(MAX_ENTRIES), "expired");
        assert!(events.try_recv().is_err());
        registry.clear_loss(&slot(MAX_ENTRIES));
        registry.announce_loss(&slot(MAX_ENTRIES), "expired");
        assert_eq!(events.try_recv().unwrap().change, LoginChange::Lost("expired".to_owned()));
    }
}
