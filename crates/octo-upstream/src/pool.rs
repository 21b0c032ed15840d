//! The connections to one server: one for everybody, or several, by what the settings say.

use crate::idle::Busy;
use crate::login::Account;
use crate::spec::{Connect, Link, Share};
use crate::state::{Inner, Status};
use crate::supervisor;
use octo_grants::credentials::Owner;
use octo_model::{Caller, Principal, ToolError};
use octo_toolkit::Peer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Programs beside the first.
const MOST_PROGRAMS: usize = 64;
/// Sessions beside the first; they cost little.
const MOST_SESSIONS: usize = 1024;

/// Whose connection it is: the caller, if it has one of its own, and the client's session or the number in the pool.
type Whose = (Option<Principal>, u64);

pub(crate) struct Pool {
    /// The one that lists.
    pub(crate) first: Arc<Inner>,
    lanes: Mutex<Lanes>,
}

#[derive(Default)]
struct Lanes {
    open: HashMap<Whose, Lane>,
    /// Those that are being ended.
    leaving: Vec<JoinHandle<()>>,
}

struct Lane {
    inner: Arc<Inner>,
    task: JoinHandle<()>,
}

impl Pool {
    pub(crate) fn new(first: Arc<Inner>) -> Self {
        Self { first, lanes: Mutex::default() }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for a call. It does not end as long as the second part is kept.
    pub(crate) fn pick(&self, caller: &Caller, peer: &dyn Peer) -> Result<(Arc<Inner>, Busy), ToolError> {
        match self.first.spec.share {
            Share::PerSession => self.own_lane(caller, peer.key()),
            Share::PerCaller => self.own_lane(caller, 0),
            // A connection speaks with one login only.
            Share::One | Share::Pool(_) if self.first.is_per_person() => self.own_lane(caller, 0),
            Share::One => Ok(self.first()),
            Share::Pool(most) => Ok(self.least_busy(most)),
        }
    }

    /// The connection that is made when this caller wants one.
    pub(crate) fn pick_to_connect(&self, caller: &Caller) -> Result<(Arc<Inner>, Busy), ToolError> {
        if self.first.is_per_person() { self.own_lane(caller, 0) } else { Ok(self.first()) }
    }

    /// Whether the server has already refused this caller's present login.
    pub(crate) async fn is_refused(&self, caller: &Caller) -> bool {
        let whose = (Some(caller.principal.clone()), 0);
        let account = self.lanes().open.get(&whose).and_then(|lane| lane.inner.account.clone());
        match account {
            Some(account) => !account.is_new().await,
            None => false,
        }
    }

    fn first(&self) -> (Arc<Inner>, Busy) {
        let busy = self.first.load.enter();
        (self.first.clone(), busy)
    }

    fn least_busy(&self, most: usize) -> (Arc<Inner>, Busy) {
        let mut lanes = self.lanes();
        let all = std::iter::once(&self.first).chain(lanes.open.values().map(|lane| &lane.inner));
        // Of equals one that runs already.
        let weight =
            |inner: &&Arc<Inner>| (inner.load.calls(), !matches!(&*inner.status.borrow(), Status::Up(_)));
        let mut chosen = all.min_by_key(weight).unwrap_or(&self.first).clone();
        let count = lanes.open.len();
        if chosen.load.calls() > 0 && count + 1 < most.min(self.most()) {
            let number = count as u64 + 1;
            let account = self.first.account.clone();
            chosen = lanes.open(&self.first, (None, number), account);
        }
        let busy = chosen.load.enter();
        (chosen, busy)
    }

    fn most(&self) -> usize {
        match self.first.spec.link {
            Link::Child(_) => MOST_PROGRAMS,
            Link::Http { .. } => MOST_SESSIONS,
        }
    }

    /// The one place that says whose a connection is: who may use it, and with which login it speaks.
    fn own_lane(&self, caller: &Caller, session: u64) -> Result<(Arc<Inner>, Busy), ToolError> {
        let whose = (Some(caller.principal.clone()), session);
        if self.first.spec.connect == Connect::Always {
            self.first.rest.set(false);
        }
        let mut lanes = self.lanes();
        let known = lanes.open.get(&whose).map(|lane| lane.inner.clone());
        let inner = match known {
            Some(inner) => inner,
            None if lanes.make_room(self.most()) => {
                let account = self.first.spec.accounts.as_ref().map(|accounts| accounts.of(caller));
                lanes.open(&self.first, whose, account)
            }
            None => {
                return Err(ToolError::unavailable(format!(
                    "{} already works for as many callers as it can.",
                    self.first.name
                ))
                .hint("Try again later.")
                .retry_after(Duration::from_secs(10)));
            }
        };
        let busy = inner.load.enter();
        Ok((inner, busy))
    }

    /// Does this with every connection.
    pub(crate) fn each(&self, mut act: impl FnMut(&Inner)) {
        act(&self.first);
        self.lanes().open.values().for_each(|lane| act(&lane.inner));
    }

    /// Ends the connections of somebody who has logged out.
    pub(crate) fn end_lanes_of(&self, owner: &Owner) {
        let mut lanes = self.lanes();
        let theirs = |lane: &Lane| {
            lane.inner.is_per_person() && lane.inner.account.as_ref().is_some_and(|one| one.owner() == owner)
        };
        let gone: Vec<Whose> =
            lanes.open.iter().filter(|(_, lane)| theirs(lane)).map(|(whose, _)| whose.clone()).collect();
        gone.iter().for_each(|whose| lanes.end(whose));
    }

    /// Ends all connections beside the first, and waits for it.
    pub(crate) async fn close(&self) {
        let ending: Vec<_> = {
            let mut lanes = self.lanes();
            let open = lanes.open.drain().map(|(_, lane)| lane.leave()).collect::<Vec<_>>();
            lanes.leaving.drain(..).chain(open).collect()
        };
        for task in ending {
            let _ = task.await;
        }
    }
}

impl Lane {
    fn leave(self) -> JoinHandle<()> {
        self.inner.stop.cancel();
        self.task
    }

    fn is_asleep(&self) -> bool {
        self.inner.load.calls() == 0 && matches!(&*self.inner.status.borrow(), Status::Asleep)
    }
}

impl Lanes {
    fn open(&mut self, first: &Arc<Inner>, whose: Whose, account: Option<Arc<Account>>) -> Arc<Inner> {
        let inner = Arc::new(Inner::lane(first, account));
        let task = tokio::spawn(supervisor::run(inner.clone()));
        self.open.insert(whose, Lane { inner: inner.clone(), task });
        inner
    }

    /// Forgets those that sleep, and where that is not enough ends the one that nobody has used for longest. Calls enter
    /// under the same lock, so that none can come in between.
    fn make_room(&mut self, most: usize) -> bool {
        self.leaving.retain(|task| !task.is_finished());
        let asleep: Vec<Whose> =
            self.open.iter().filter(|(_, lane)| lane.is_asleep()).map(|(whose, _)| whose.clone()).collect();
        asleep.iter().for_each(|whose| self.end(whose));
        if self.open.len() >= most {
            let unused = self.open.iter().filter(|(_, lane)| lane.inner.load.calls() == 0);
            let oldest =
                unused.min_by_key(|(_, lane)| lane.inner.load.last()).map(|(whose, _)| whose.clone());
            oldest.iter().for_each(|whose| self.end(whose));
        }
        self.open.len() < most
    }

    fn end(&mut self, whose: &Whose) {
        if let Some(lane) = self.open.remove(whose) {
            self.leaving.push(lane.leave());
        }
    }
}
