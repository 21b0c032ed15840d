//! The connections to one server: one for everybody, or several, by what the settings say.

use crate::active_calls::ActiveCall;
use crate::link::{Link, LinkState};
use crate::login::Account;
use crate::supervisor;
use crate::upstream_spec::{ConnectMode, Share, TransportSpec};
use octo_grants::credentials::Owner;
use octo_model::{Caller, Principal, ToolError};
use octo_toolkit::Peer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Programs beside the first.
const MAX_EXTRA_PROCESSES: usize = 64;
/// Sessions beside the first; they cost little.
const MAX_EXTRA_SESSIONS: usize = 1024;

/// Whose connection it is: the caller, if it has one of its own, and the client's session or the number in the pool.
type LinkKey = (Option<Principal>, u64);

pub(crate) struct LinkSet {
    /// The one that lists.
    pub(crate) primary: Arc<Link>,
    extra: Mutex<ExtraLinks>,
}

#[derive(Default)]
struct ExtraLinks {
    open: HashMap<LinkKey, ExtraLink>,
    /// Those that are being ended.
    closing: Vec<JoinHandle<()>>,
}

struct ExtraLink {
    link: Arc<Link>,
    task: JoinHandle<()>,
}

impl LinkSet {
    pub(crate) fn new(first: Arc<Link>) -> Self {
        Self { primary: first, extra: Mutex::default() }
    }

    fn extra(&self) -> MutexGuard<'_, ExtraLinks> {
        self.extra.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for a call. It does not end as long as the second part is kept.
    pub(crate) fn link_for_call(
        &self,
        caller: &Caller,
        peer: &dyn Peer,
    ) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        match self.primary.spec.share {
            Share::PerSession => self.dedicated_link(caller, peer.key()),
            Share::PerCaller => self.dedicated_link(caller, 0),
            // A connection speaks with one login only.
            Share::One | Share::Pool(_) if self.primary.has_personal_logins() => {
                self.dedicated_link(caller, 0)
            }
            Share::One => Ok(self.primary_link()),
            Share::Pool(most) => Ok(self.least_busy(most)),
        }
    }

    /// The connection that is made when this caller wants one.
    pub(crate) fn link_to_connect(&self, caller: &Caller) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        if self.primary.has_personal_logins() {
            self.dedicated_link(caller, 0)
        } else {
            Ok(self.primary_link())
        }
    }

    /// Whether the server has already refused this caller's present login.
    pub(crate) async fn is_refused(&self, caller: &Caller) -> bool {
        let whose = (Some(caller.principal.clone()), 0);
        let account = self.extra().open.get(&whose).and_then(|lane| lane.link.account.clone());
        match account {
            Some(account) => !account.has_untried_login().await,
            None => false,
        }
    }

    fn primary_link(&self) -> (Arc<Link>, ActiveCall) {
        let busy = self.primary.active_calls.begin();
        (self.primary.clone(), busy)
    }

    fn least_busy(&self, most: usize) -> (Arc<Link>, ActiveCall) {
        let mut lanes = self.extra();
        let all = std::iter::once(&self.primary).chain(lanes.open.values().map(|lane| &lane.link));
        // Of equals one that runs already.
        let weight = |inner: &&Arc<Link>| {
            (inner.active_calls.count(), !matches!(&*inner.state.borrow(), LinkState::Up(_)))
        };
        let mut chosen = all.min_by_key(weight).unwrap_or(&self.primary).clone();
        let count = lanes.open.len();
        if chosen.active_calls.count() > 0 && count + 1 < most.min(self.max_extra()) {
            let number = count as u64 + 1;
            let account = self.primary.account.clone();
            chosen = lanes.open_link(&self.primary, (None, number), account);
        }
        let busy = chosen.active_calls.begin();
        (chosen, busy)
    }

    fn max_extra(&self) -> usize {
        match self.primary.spec.transport {
            TransportSpec::Stdio(_) => MAX_EXTRA_PROCESSES,
            TransportSpec::Http { .. } => MAX_EXTRA_SESSIONS,
        }
    }

    /// The one place that says whose a connection is: who may use it, and with which login it speaks.
    fn dedicated_link(&self, caller: &Caller, session: u64) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        let whose = (Some(caller.principal.clone()), session);
        if self.primary.spec.connect == ConnectMode::Always {
            self.primary.suspension.set(false);
        }
        let mut lanes = self.extra();
        let known = lanes.open.get(&whose).map(|lane| lane.link.clone());
        let inner = match known {
            Some(inner) => inner,
            None if lanes.evict_idle(self.max_extra()) => {
                let account = self.primary.spec.accounts.as_ref().map(|accounts| accounts.for_caller(caller));
                lanes.open_link(&self.primary, whose, account)
            }
            None => {
                return Err(ToolError::unavailable(format!(
                    "{} already works for as many callers as it can.",
                    self.primary.name
                ))
                .hint("Try again later.")
                .retry_after(Duration::from_secs(10)));
            }
        };
        let busy = inner.active_calls.begin();
        Ok((inner, busy))
    }

    /// Does this with every connection.
    pub(crate) fn for_each(&self, mut act: impl FnMut(&Link)) {
        act(&self.primary);
        self.extra().open.values().for_each(|lane| act(&lane.link));
    }

    /// Ends the connections of somebody who has logged out.
    pub(crate) fn close_links_of(&self, owner: &Owner) {
        let mut lanes = self.extra();
        let theirs = |lane: &ExtraLink| {
            lane.link.has_personal_logins()
                && lane.link.account.as_ref().is_some_and(|one| one.owner() == owner)
        };
        let gone: Vec<LinkKey> =
            lanes.open.iter().filter(|(_, lane)| theirs(lane)).map(|(whose, _)| whose.clone()).collect();
        gone.iter().for_each(|whose| lanes.close_link(whose));
    }

    /// Ends all connections beside the first, and waits for it.
    pub(crate) async fn close(&self) {
        let ending: Vec<_> = {
            let mut lanes = self.extra();
            let open = lanes.open.drain().map(|(_, lane)| lane.stop()).collect::<Vec<_>>();
            lanes.closing.drain(..).chain(open).collect()
        };
        for task in ending {
            let _ = task.await;
        }
    }
}

impl ExtraLink {
    fn stop(self) -> JoinHandle<()> {
        self.link.stop.cancel();
        self.task
    }

    fn is_idle(&self) -> bool {
        self.link.active_calls.count() == 0 && matches!(&*self.link.state.borrow(), LinkState::Idle)
    }
}

impl ExtraLinks {
    fn open_link(&mut self, first: &Arc<Link>, whose: LinkKey, account: Option<Arc<Account>>) -> Arc<Link> {
        let inner = Arc::new(Link::extra(first, account));
        let task = tokio::spawn(supervisor::run(inner.clone()));
        self.open.insert(whose, ExtraLink { link: inner.clone(), task });
        inner
    }

    /// Forgets those that sleep, and where that is not enough ends the one that nobody has used for longest. Calls enter
    /// under the same lock, so that none can come in between.
    fn evict_idle(&mut self, most: usize) -> bool {
        self.closing.retain(|task| !task.is_finished());
        let asleep: Vec<LinkKey> =
            self.open.iter().filter(|(_, lane)| lane.is_idle()).map(|(whose, _)| whose.clone()).collect();
        asleep.iter().for_each(|whose| self.close_link(whose));
        if self.open.len() >= most {
            let unused = self.open.iter().filter(|(_, lane)| lane.link.active_calls.count() == 0);
            let oldest = unused
                .min_by_key(|(_, lane)| lane.link.active_calls.last_used())
                .map(|(whose, _)| whose.clone());
            oldest.iter().for_each(|whose| self.close_link(whose));
        }
        self.open.len() < most
    }

    fn close_link(&mut self, whose: &LinkKey) {
        if let Some(lane) = self.open.remove(whose) {
            self.closing.push(lane.stop());
        }
    }
}
