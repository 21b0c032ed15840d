//! What all logins of a process share: the store, what waits to be written to it, and whose turn it is.

use super::authorize;
use super::challenge::Challenge;
use super::grant::{Grant, Held};
use super::settings::{Auth, Identity, LoginSpec};
use super::start_page::StartPages;
use octo_grants::credentials::{Owner, Slot};
use octo_grants::{Clock, Credentials};
use octo_model::{Kind, ToolError};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Entries of each map; past it the map begins anew.
const MOST: usize = 10_000;
/// Seconds by which processes differ.
const SPREAD: u64 = 30;
/// Tries to write what must not be lost, and the first wait between them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// So much news is kept for a slow listener.
const NEWS: usize = 256;

pub(super) type Account = (Owner, String);

/// A login that has begun or ended, as this process has noticed.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) owner: Owner,
    pub(crate) server: String,
    pub(crate) change: LoginChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginChange {
    LoggedIn,
    LoggedOut,
    /// It can no longer be used, and why.
    Lost(String),
}

pub(super) struct Shelf {
    pub(super) store: Credentials,
    pub(super) identity: Identity,
    clock: Clock,
    specs: Mutex<HashMap<String, Arc<LoginSpec>>>,
    /// What servers have asked for since.
    challenges: Mutex<HashMap<Account, Challenge>>,
    /// Why the last login came to nothing.
    failures: Mutex<HashMap<Account, String>>,
    gates: Mutex<HashMap<Slot, Arc<tokio::sync::Mutex<()>>>>,
    /// Renewals that failed are not tried again before this.
    rests: Mutex<HashMap<Slot, (Instant, ToolError)>>,
    /// Logins of which it was announced that they are lost.
    lost: Mutex<HashSet<Slot>>,
    /// What was given and could not be written: the revision that it follows, and the grant.
    unwritten: Mutex<HashMap<Slot, (u64, Grant)>>,
    /// Pages at which logins begin.
    pub(super) start: StartPages,
    pub(super) changed: watch::Sender<u64>,
    pub(super) news: broadcast::Sender<Settled>,
    /// This process, among those that renew.
    pub(super) holder: String,
    pub(super) early: i64,
}

pub(super) fn locked<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn insert<K: Hash + Eq, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut map = locked(map);
    if map.len() >= MOST {
        map.clear();
    }
    map.insert(key, value);
}

impl Shelf {
    pub(super) fn new(store: Credentials, identity: Identity, clock: Clock) -> Result<Self, ToolError> {
        let holder = authorize::random()?;
        let early = holder.bytes().map(u64::from).sum::<u64>() % SPREAD;
        Ok(Self {
            store,
            identity,
            clock,
            specs: Mutex::default(),
            challenges: Mutex::default(),
            failures: Mutex::default(),
            gates: Mutex::default(),
            rests: Mutex::default(),
            lost: Mutex::default(),
            unwritten: Mutex::default(),
            start: StartPages::default(),
            changed: watch::Sender::new(0),
            news: broadcast::Sender::new(NEWS),
            holder,
            early: early.cast_signed(),
        })
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.clock.now().as_second()
    }

    pub(super) fn set(&self, spec: LoginSpec) {
        insert(&self.specs, spec.server.clone(), Arc::new(spec));
    }

    pub(super) fn unset(&self, server: &str) {
        locked(&self.specs).remove(server);
    }

    pub(super) fn spec(&self, server: &str) -> Result<Arc<LoginSpec>, ToolError> {
        locked(&self.specs).get(server).cloned().ok_or_else(|| {
            ToolError::not_found(format!("There is no login for a server called `{server}`."))
                .hint("Look at the list of servers; a server without `auth` needs none.")
        })
    }

    /// Whether there is a server at which somebody logs in.
    pub(super) fn has_logins(&self) -> bool {
        locked(&self.specs).values().any(|spec| matches!(spec.auth, Auth::OAuth(_)))
    }

    pub(super) fn challenge(&self, account: &Account) -> Option<Challenge> {
        locked(&self.challenges).get(account).cloned()
    }

    pub(super) fn challenged(&self, account: Account, challenge: Challenge) {
        insert(&self.challenges, account, challenge);
    }

    pub(super) fn failure(&self, account: &Account) -> Option<String> {
        locked(&self.failures).get(account).cloned()
    }

    pub(super) fn failed(&self, account: Account, why: String) {
        self.drop_start_page(&account);
        insert(&self.failures, account, why);
    }

    /// A login has begun or ended: nothing of before holds.
    pub(super) fn settled(&self, account: &Account, is_in: bool) {
        locked(&self.challenges).remove(account);
        locked(&self.failures).remove(account);
        self.drop_start_page(account);
        locked(&self.lost).retain(|slot| (&slot.owner, &slot.server) != (&account.0, &account.1));
        let change = if is_in { LoginChange::LoggedIn } else { LoginChange::LoggedOut };
        self.tell(account.clone(), change);
    }

    fn tell(&self, (owner, server): Account, change: LoginChange) {
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
        let _ = self.news.send(Settled { owner, server, change });
    }

    /// Says once that somebody has to log in again.
    pub(super) fn announce_loss(&self, slot: &Slot, why: &str) {
        if !locked(&self.lost).insert(slot.clone()) {
            return;
        }
        let (server, remedy) = (&slot.server, format!("octoprox login {}", slot.server));
        tracing::warn!(target: "upstream", %server, why, remedy, "the login was lost");
        self.tell((slot.owner.clone(), server.clone()), LoginChange::Lost(why.to_owned()));
    }

    /// The login is good, perhaps again: its next loss is news.
    pub(super) fn found_again(&self, slot: &Slot) {
        locked(&self.lost).remove(slot);
    }

    pub(super) fn gate(&self, slot: &Slot) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = locked(&self.gates);
        if gates.len() >= MOST {
            gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        gates.entry(slot.clone()).or_default().clone()
    }

    pub(super) fn resting(&self, slot: &Slot) -> Option<ToolError> {
        let mut rests = locked(&self.rests);
        let (until, why) = rests.get(slot)?.clone();
        if until > Instant::now() {
            return Some(why);
        }
        rests.remove(slot);
        None
    }

    pub(super) fn rest(&self, slot: &Slot, time: Duration, why: ToolError) {
        insert(&self.rests, slot.clone(), (Instant::now() + time, why));
    }

    /// The newest login of an owner at a server.
    pub(super) async fn newest(&self, owner: &Owner, server: &str) -> Result<Option<Held>, ToolError> {
        let newest = self.store.all(owner, server).await?.into_iter().next();
        newest.map(|kept| Held::try_from(kept).map(|held| self.overlaid(held))).transpose()
    }

    pub(super) async fn load(&self, slot: &Slot) -> Result<Option<Held>, ToolError> {
        let kept = self.store.find(slot).await?;
        kept.map(|kept| Held::try_from(kept).map(|held| self.overlaid(held))).transpose()
    }

    /// With what this process knows and could not write.
    fn overlaid(&self, held: Held) -> Held {
        let mut unwritten = locked(&self.unwritten);
        match unwritten.get(&held.slot) {
            Some((over, grant)) if *over == held.revision => Held { grant: grant.clone(), ..held },
            Some(_) => {
                unwritten.remove(&held.slot);
                held
            }
            None => held,
        }
    }

    /// Writes what was renewed in place of what it was renewed from. When the store does not take it, this process goes on
    /// with it: the old refresh token may be worth nothing any more.
    pub(super) async fn replace(&self, held: Held, grant: Grant) -> Result<Held, ToolError> {
        let secret = grant.seal()?;
        let mut pause = PAUSE;
        for last in (0..TRIES).rev() {
            match self.store.put(&held.slot, secret.clone(), Some(held.revision)).await {
                Ok(revision) => {
                    locked(&self.unwritten).remove(&held.slot);
                    return Ok(Held { revision, grant, ..held });
                }
                Err(error) if error.kind == Kind::Conflict => return Err(error),
                Err(_) if last > 0 => tokio::time::sleep(pause).await,
                Err(error) => {
                    tracing::error!(target: "upstream", server = %held.slot.server, %error, "a renewed login could not be written")
                }
            }
            pause *= 3;
        }
        insert(&self.unwritten, held.slot.clone(), (held.revision, grant.clone()));
        Ok(Held { grant, ..held })
    }
}
