//! Link set of one server: one shared link or several, as configured.

use crate::admission::active_calls::ActiveCall;
use crate::lifecycle::link::{Link, LinkRole};
use crate::lifecycle::server::Server;
use crate::lifecycle::supervisor;
use crate::upstream_spec::{ConnectMode, Share, TransportSpec};
use octo_model::{Caller, Principal, ToolError};
use octo_oauth::Account;
use octo_ports::Owner;
use octo_toolkit::Peer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Maximum number of processes besides the primary one.
const MAX_EXTRA_PROCESSES: usize = 64;
/// Maximum number of sessions besides the primary one; they are cheap.
const MAX_EXTRA_SESSIONS: usize = 1024;

/// Key of a link: the principal, if the link is dedicated to one, and the client session or the index in the pool.
type LinkKey = (Option<Principal>, u64);

pub(crate) struct LinkSet {
    /// The link that lists.
    pub(crate) primary: Arc<Link>,
    pub(crate) server: Arc<Server>,
    extra: Mutex<ExtraLinks>,
}

#[derive(Default)]
struct ExtraLinks {
    open: HashMap<LinkKey, ExtraLink>,
    /// Links that are being closed.
    closing: Vec<JoinHandle<()>>,
}

struct ExtraLink {
    link: Arc<Link>,
    task: JoinHandle<()>,
}

impl LinkSet {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let primary = Arc::new(Link::primary(server.clone()));
        Self { primary, server, extra: Mutex::default() }
    }

    fn extra(&self) -> MutexGuard<'_, ExtraLinks> {
        self.extra.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the link for a call. The link stays open while the `ActiveCall` is held.
    pub(crate) fn link_for_call(
        &self,
        caller: &Caller,
        peer: &dyn Peer,
    ) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        match self.server.spec.share {
            Share::PerSession => self.dedicated_link(caller, peer.key()),
            Share::PerCaller => self.dedicated_link(caller, 0),
            // A link uses one login only.
            Share::One | Share::Pool(_) if self.server.has_personal_logins() => {
                self.dedicated_link(caller, 0)
            }
            Share::One => Ok(self.primary_link()),
            Share::Pool(most) => Ok(self.least_busy(most)),
        }
    }

    /// Returns the link to connect for this caller.
    pub(crate) fn link_to_connect(&self, caller: &Caller) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        if self.server.has_personal_logins() {
            self.dedicated_link(caller, 0)
        } else {
            Ok(self.primary_link())
        }
    }

    /// Whether the server has already refused the current login of this caller.
    pub(crate) async fn is_refused(&self, caller: &Caller) -> bool {
        let key = (Some(caller.principal.clone()), 0);
        let account = self.extra().open.get(&key).and_then(|extra| extra.link.account.clone());
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
        let mut links = self.extra();
        let all = std::iter::once(&self.primary).chain(links.open.values().map(|extra| &extra.link));
        // Prefer a link that is up.
        let weight = |link: &&Arc<Link>| (link.active_calls.count(), !link.state().is_up());
        let mut chosen = all.min_by_key(weight).unwrap_or(&self.primary).clone();
        let count = links.open.len();
        if chosen.active_calls.count() > 0 && count < self.max_extra().min(most.saturating_sub(1)) {
            let number = count as u64 + 1;
            let account = self.primary.account.clone();
            chosen = links.open_link(&self.server, (None, number), account);
        }
        let busy = chosen.active_calls.begin();
        (chosen, busy)
    }

    fn max_extra(&self) -> usize {
        match self.server.spec.transport {
            TransportSpec::Stdio(_) => MAX_EXTRA_PROCESSES,
            TransportSpec::Http { .. } => MAX_EXTRA_SESSIONS,
        }
    }

    /// The only place that decides who owns a link: who may use it, and which login it uses.
    fn dedicated_link(&self, caller: &Caller, session: u64) -> Result<(Arc<Link>, ActiveCall), ToolError> {
        let key = (Some(caller.principal.clone()), session);
        if self.server.spec.connect == ConnectMode::Always {
            self.primary.resume();
        }
        let mut links = self.extra();
        let known = links.open.get(&key).map(|extra| extra.link.clone());
        let link = match known {
            Some(link) => link,
            None if links.evict_idle(self.max_extra()) => {
                let account = self.server.spec.accounts.as_ref().map(|accounts| accounts.for_caller(caller));
                links.open_link(&self.server, key, account)
            }
            None => {
                return Err(ToolError::unavailable(format!(
                    "{} has reached its maximum number of connections.",
                    self.server.name
                ))
                .hint("Try again later.")
                .retry_after(Duration::from_secs(10)));
            }
        };
        let busy = link.active_calls.begin();
        Ok((link, busy))
    }

    pub(crate) fn for_each(&self, mut act: impl FnMut(&Link)) {
        act(&self.primary);
        self.extra().open.values().for_each(|extra| act(&extra.link));
    }

    /// Closes the links of an owner who has logged out.
    pub(crate) fn close_links_of(&self, owner: &Owner) {
        let mut links = self.extra();
        let theirs = |extra: &ExtraLink| {
            extra.link.role == LinkRole::Personal
                && extra.link.account.as_ref().is_some_and(|one| one.owner() == owner)
        };
        let gone: Vec<LinkKey> =
            links.open.iter().filter(|(_, extra)| theirs(extra)).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| links.close_link(key));
    }

    /// Closes all additional links and waits for them.
    pub(crate) async fn close(&self) {
        let ending: Vec<_> = {
            let mut links = self.extra();
            let open = links.open.drain().map(|(_, extra)| extra.stop()).collect::<Vec<_>>();
            links.closing.drain(..).chain(open).collect()
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
        self.link.active_calls.count() == 0 && self.link.state().is_dormant()
    }
}

impl ExtraLinks {
    fn open_link(&mut self, server: &Arc<Server>, key: LinkKey, account: Option<Arc<Account>>) -> Arc<Link> {
        let link = Arc::new(Link::extra(server, key.0.clone(), account));
        let task = tokio::spawn(supervisor::run(link.clone()));
        self.open.insert(key, ExtraLink { link: link.clone(), task });
        link
    }

    /// Closes idle links, and if that is not enough, the least recently used link without active calls. Calls start
    /// under the same lock, so none can start in between.
    fn evict_idle(&mut self, most: usize) -> bool {
        self.closing.retain(|task| !task.is_finished());
        let asleep: Vec<LinkKey> =
            self.open.iter().filter(|(_, extra)| extra.is_idle()).map(|(key, _)| key.clone()).collect();
        asleep.iter().for_each(|key| self.close_link(key));
        if self.open.len() >= most {
            let unused = self.open.iter().filter(|(_, extra)| extra.link.active_calls.count() == 0);
            let oldest = unused
                .min_by_key(|(_, extra)| extra.link.active_calls.last_used())
                .map(|(key, _)| key.clone());
            oldest.iter().for_each(|key| self.close_link(key));
        }
        self.open.len() < most
    }

    fn close_link(&mut self, key: &LinkKey) {
        if let Some(extra) = self.open.remove(key) {
            self.closing.push(extra.stop());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream_spec::UpstreamSpec;
    use octo_grants::Command;

    #[tokio::test]
    async fn a_pool_has_as_many_links_as_configured_and_allowed() {
        let allowed = MAX_EXTRA_PROCESSES + 1;
        for (most, links) in [(0, 1), (1, 1), (3, 3), (allowed, allowed), (allowed + 1, allowed)] {
            let command = Command { program: "x".into(), args: vec![], env: [].into(), cwd: None };
            let set = LinkSet::new(Arc::new(Server::new(UpstreamSpec::stdio("s", command))));
            let calls: Vec<_> = (0..most + 10).map(|_| set.least_busy(most)).collect();
            assert_eq!(set.extra().open.len() + 1, links, "{most}");
            drop(calls);
            set.close().await;
        }
    }
}
