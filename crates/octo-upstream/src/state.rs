//! What the parts of one upstream share, and how it is doing.

use crate::connection::Connection;
use crate::fail::{Fail, Outcome, login};
use crate::handshake::Plan;
use crate::http::{Client, client};
use crate::inbox::Inbox;
use crate::kind::Changes;
use crate::spec::{Link, Spec};
use crate::watched::Watched;
use octo_model::ToolError;
use octo_toolkit::{Definition, Event, Listing, Lists, State};
use octo_wire::Era;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A call waits this long for a server that is being started again.
const PATIENCE: Duration = Duration::from_secs(10);
const PROBE_CHILD: Duration = Duration::from_secs(3);
const PROBE_HTTP: Duration = Duration::from_secs(10);
/// So many events are kept for a slow listener.
const EVENTS: usize = 256;

/// Whether calls can be made.
#[derive(Clone)]
pub(crate) enum Status {
    Waiting,
    Up(Arc<Connection>),
    Refused(Fail),
    Stopped,
}

impl Status {
    fn is_final(&self) -> bool {
        match self {
            Self::Waiting => false,
            Self::Up(connection) => !connection.lost.is_set(),
            Self::Refused(_) | Self::Stopped => true,
        }
    }
}

pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) spec: Spec,
    pub(crate) listing: watch::Sender<Listing>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) watched: Watched,
    pub(crate) stop: CancellationToken,
    /// Cuts the wait before the next try short.
    pub(crate) wake: Notify,
    era: Mutex<Option<Era>>,
    /// How often neither era could be agreed on.
    disagreements: AtomicU32,
    client: OnceLock<Client>,
}

impl Inner {
    pub(crate) fn new(spec: Spec) -> Self {
        let listing = Listing { state: State::Starting, lists: Arc::default(), version: 0 };
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
            disagreements: AtomicU32::new(0),
            client: OnceLock::new(),
        }
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

    /// A connection that works, waited for if need be.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        if let Status::Up(connection) = &*self.status.borrow()
            && !connection.lost.is_set()
        {
            return Ok(connection.clone());
        }
        self.wake.notify_one();
        let until = deadline.min(Instant::now() + PATIENCE);
        let mut status = self.status.subscribe();
        let found = tokio::time::timeout_at(until, status.wait_for(Status::is_final)).await;
        match found {
            Ok(Ok(status)) => self.settled(&status),
            _ => Err(self.down_error()),
        }
    }

    fn settled(&self, status: &Status) -> Result<Arc<Connection>, ToolError> {
        match status {
            Status::Up(connection) => Ok(connection.clone()),
            Status::Refused(Fail::Login(_)) => Err(login(&self.name)),
            Status::Refused(why) => Err(why.to_error(&self.name)),
            Status::Waiting | Status::Stopped => Err(self.down_error()),
        }
    }

    fn down_error(&self) -> ToolError {
        let error = ToolError::unavailable(format!("{} is not running at the moment.", self.name))
            .hint("Try again later, or use another tool.")
            .retry_after(Duration::from_secs(5));
        match &self.listing.borrow().state {
            State::Down(why) => error.detail(why),
            _ => error,
        }
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
        if self.spec.era.is_some() {
            return;
        }
        let is_child = matches!(self.spec.link, Link::Child(_));
        let known = match (opened, plan) {
            (Ok(connection), _) => Some(connection.era()),
            (Err(Fail::NotSent(_) | Fail::Login(_)), _) => return,
            // Some legacy programs end when the first thing they hear is not the handshake they know.
            (Err(Fail::Lost(_)), Plan::Probe(_)) if is_child => Some(Era::Legacy),
            (Err(_), _) => {
                self.disagreements.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Says that the server cannot be used; what it listed before stays listed.
    pub(crate) fn down(&self, why: &str) {
        let state = State::Down(why.to_owned());
        let news = self.listing.send_if_modified(|listing| {
            let changed = listing.state != state;
            if changed {
                listing.state = state;
                listing.version += 1;
            }
            changed
        });
        if news && !self.stop.is_cancelled() {
            tracing::warn!(target: "upstream", server = %self.name, why, "down");
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.listing.borrow().state == State::Ready
    }

    /// Shows new lists. Lists that say the same as before are no change.
    pub(crate) fn publish(&self, lists: Lists) {
        self.listing.send_if_modified(|listing| {
            if listing.state == State::Ready && same(&listing.lists, &lists) {
                return false;
            }
            *listing = Listing { state: State::Ready, lists: Arc::new(lists), version: listing.version + 1 };
            true
        });
    }
}

fn same(old: &Lists, new: &Lists) -> bool {
    same_entries(&old.tools, &new.tools)
        && same_entries(&old.prompts, &new.prompts)
        && same_entries(&old.resources, &new.resources)
        && same_entries(&old.templates, &new.templates)
        && old.instructions == new.instructions
        && (old.ttl_ms, old.completes, old.subscribes) == (new.ttl_ms, new.completes, new.subscribes)
}

fn same_entries(old: &[Definition], new: &[Definition]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| old.key == new.key && old.members == new.members)
}
