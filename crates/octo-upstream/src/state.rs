//! What the parts of one upstream share.

use crate::board::Shown;
use crate::breaker::Breaker;
use crate::child::Said;
use crate::connection::Connection;
use crate::fail::{Fail, Outcome};
use crate::handshake::Plan;
use crate::http::{Client, client};
use crate::idle::Load;
use crate::inbox::Inbox;
use crate::kind::Changes;
use crate::listers::Listers;
use crate::login::{Account, Accounts};
pub(crate) use crate::reach::Status;
use crate::report::About;
use crate::rest::Rest;
use crate::spec::{Connect, Link, Spec};
use crate::turns::Turns;
use crate::watched::Watched;
use octo_grants::Command;
use octo_toolkit::{Event, ListingState, SourceState};
use octo_wire::Era;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

const PROBE_CHILD: Duration = Duration::from_secs(3);
const PROBE_HTTP: Duration = Duration::from_secs(10);
/// So many events are kept for a slow listener.
const EVENTS: usize = 256;

pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) spec: Spec,
    pub(crate) listing: watch::Sender<ListingState>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) watched: Watched,
    pub(crate) stop: CancellationToken,
    /// Cuts the wait before the next try short.
    pub(crate) wake: Notify,
    /// Whether it is without a connection until somebody needs one.
    pub(crate) rest: Rest,
    pub(crate) load: Arc<Load>,
    pub(crate) breaker: Breaker,
    /// A call was not answered in time.
    pub(crate) doubt: Notify,
    /// What the server's connections have in common.
    pub(crate) turns: Arc<Turns>,
    pub(crate) said: Arc<Said>,
    /// A connection beside the first one: it is made for calls only.
    pub(crate) is_lane: bool,
    /// The login with which it speaks, and no other.
    pub(crate) account: Option<Arc<Account>>,
    /// A login has begun or ended.
    pub(crate) relogin: Notify,
    /// The first connection, for one that lists in its stead because it has a person's login.
    pub(crate) home: Option<Arc<Inner>>,
    pub(crate) shown: Mutex<Shown>,
    pub(crate) listers: Arc<Listers>,
    era: Mutex<Option<Era>>,
    /// What the server has called itself last.
    about: Arc<Mutex<Option<About>>>,
    /// How often neither era could be agreed on.
    disagreements: AtomicU32,
    client: OnceLock<Client>,
}

impl Inner {
    pub(crate) fn new(spec: Spec) -> Self {
        let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
        let account = spec.accounts.as_ref().and_then(Accounts::everybodys);
        let (breaker, turns) = (Breaker::new(spec.trip), Arc::new(Turns::new(spec.limits)));
        Self {
            name: spec.name.as_str().into(),
            era: Mutex::new(spec.era),
            spec,
            listing: watch::Sender::new(listing),
            status: watch::Sender::new(Status::Waiting),
            events: broadcast::Sender::new(EVENTS),
            changes: Arc::default(),
            watched: Watched::default(),
            stop: CancellationToken::new(),
            wake: Notify::new(),
            rest: Rest::default(),
            load: Arc::default(),
            breaker,
            doubt: Notify::new(),
            turns,
            said: Arc::default(),
            is_lane: false,
            account,
            relogin: Notify::new(),
            home: None,
            shown: Mutex::default(),
            listers: Arc::default(),
            about: Arc::default(),
            disagreements: AtomicU32::new(0),
            client: OnceLock::new(),
        }
    }

    /// One more connection to the same server, with this login. It ends with the first.
    pub(crate) fn lane(first: &Arc<Self>, account: Option<Arc<Account>>) -> Self {
        let is_persons = first.is_per_person();
        Self {
            account,
            home: is_persons.then(|| first.clone()),
            listers: if is_persons { first.listers.clone() } else { Arc::default() },
            // What one person's program says is not told to another.
            said: if is_persons { Arc::default() } else { first.said.clone() },
            era: Mutex::new(first.era()),
            events: first.events.clone(),
            changes: first.changes.clone(),
            status: watch::Sender::new(Status::Asleep),
            stop: first.stop.child_token(),
            turns: first.turns.clone(),
            about: first.about.clone(),
            is_lane: true,
            ..Self::new(first.spec.clone())
        }
    }

    /// Whether each caller has a login of their own.
    pub(crate) fn is_per_person(&self) -> bool {
        self.spec.accounts.as_ref().is_some_and(Accounts::is_per_person)
    }

    /// Speaks without a login to a server at which each person has their own.
    pub(crate) fn is_bare(&self) -> bool {
        !self.is_lane && self.is_per_person()
    }

    /// Whether what the server lists is asked for here.
    pub(crate) fn is_lister(&self) -> bool {
        !self.is_lane || self.home.is_some()
    }

    /// The connection whose lists everybody sees.
    pub(crate) fn board(&self) -> &Self {
        self.home.as_deref().unwrap_or(self)
    }

    /// Whether it may go without a connection while nobody calls.
    pub(crate) fn may_sleep(&self) -> bool {
        self.is_lane || (self.spec.connect == Connect::OnDemand && self.is_ready())
    }

    pub(crate) fn inbox(&self) -> Inbox {
        Inbox::new(self.name.clone(), self.events.clone(), self.changes.clone())
    }

    /// The pool of HTTP connections, made when it is first needed.
    pub(crate) fn client(&self, url: &str) -> Outcome<Client> {
        if let Some(ready) = self.client.get() {
            return Ok(ready.clone());
        }
        let fresh = client(&self.spec.net, url)?;
        Ok(self.client.get_or_init(|| fresh).clone())
    }

    /// The program with the key that it is told by a variable, where it has one.
    pub(crate) async fn dressed(&self, command: &Command) -> Outcome<Command> {
        let mut command = command.clone();
        match (&self.account, &self.spec.accounts) {
            (Some(account), _) => command.env.extend(account.variable().await?),
            (None, Some(accounts)) if accounts.is_variable() => return Err(Fail::Login(401)),
            (None, _) => {}
        }
        Ok(command)
    }

    pub(crate) fn about(&self) -> Option<About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn era(&self) -> Option<Era> {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to try first. A program that was slow to start gets more time after each failure.
    pub(crate) fn plan(&self) -> Plan {
        let limit = match self.spec.link {
            Link::Child(_) => PROBE_CHILD * (1 + self.disagreements.load(Ordering::Relaxed)),
            Link::Http { .. } => PROBE_HTTP,
        };
        self.era().map_or(Plan::Probe(limit.min(self.spec.start_timeout / 2)), Plan::Only)
    }

    /// Remembers the era that worked, and forgets one that did not.
    pub(crate) fn learn(&self, plan: Plan, opened: &Outcome<Arc<Connection>>) {
        if let Ok(connection) = opened {
            *self.about.lock().unwrap_or_else(PoisonError::into_inner) = connection.server.about.clone();
        }
        if self.spec.era.is_some() {
            return;
        }
        let is_child = matches!(self.spec.link, Link::Child(_));
        let known = match (opened, plan) {
            (Ok(connection), _) => Some(connection.era()),
            (Err(Fail::NotSent(_) | Fail::Login(_) | Fail::Barred(_)), _) => return,
            // Some legacy programs end when the first thing they hear is not the handshake they know.
            (Err(Fail::Lost(_)), Plan::Probe(_)) if is_child => Some(Era::Legacy),
            (Err(_), _) => {
                self.disagreements.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = known;
        if let (Some(home), Some(_)) = (&self.home, known) {
            *home.era.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
    }
}
