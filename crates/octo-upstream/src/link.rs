//! What the parts of one upstream share.

use crate::active_calls::ActiveCalls;
use crate::breaker::Breaker;
use crate::connection::Connection;
use crate::dispatcher::Dispatcher;
use crate::error::{UpstreamError, UpstreamResult};
use crate::fair_queue::FairQueue;
use crate::handshake::NegotiationPlan;
use crate::http::{HttpClient, build_client};
pub(crate) use crate::link_connect::LinkState;
use crate::list_kind::ListChanges;
use crate::listing_election::ListingElection;
use crate::listing_publisher::ListingAccess;
use crate::login::{Account, Accounts};
use crate::resource_subscriptions::ResourceSubscriptions;
use crate::stdio::StderrLog;
use crate::suspension::Suspension;
use crate::upstream_spec::{ConnectMode, TransportSpec, UpstreamSpec};
use crate::upstream_status::ServerInfo;
use octo_grants::Command;
use octo_toolkit::{Event, ListingState, SourceState};
use octo_wire::Era;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

const STDIO_PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const HTTP_PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// So many events are kept for a slow listener.
const EVENT_CAPACITY: usize = 256;

pub(crate) struct Link {
    pub(crate) name: Arc<str>,
    pub(crate) spec: UpstreamSpec,
    pub(crate) listing: watch::Sender<ListingState>,
    pub(crate) state: watch::Sender<LinkState>,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) list_changes: Arc<ListChanges>,
    pub(crate) subscriptions: ResourceSubscriptions,
    pub(crate) stop: CancellationToken,
    /// Cuts the wait before the next try short.
    pub(crate) connect_request: Notify,
    /// Whether it is without a connection until somebody needs one.
    pub(crate) suspension: Suspension,
    pub(crate) active_calls: Arc<ActiveCalls>,
    pub(crate) breaker: Breaker,
    /// A call was not answered in time.
    pub(crate) health_check: Notify,
    /// What the server's connections have in common.
    pub(crate) queue: Arc<FairQueue>,
    pub(crate) stderr: Arc<StderrLog>,
    /// A connection beside the first one: it is made for calls only.
    pub(crate) is_extra: bool,
    /// The login with which it speaks, and no other.
    pub(crate) account: Option<Arc<Account>>,
    /// A login has begun or ended.
    pub(crate) login_changed: Notify,
    /// The first connection, for one that lists in its stead because it has a person's login.
    pub(crate) listing_link: Option<Arc<Link>>,
    pub(crate) access: Mutex<ListingAccess>,
    pub(crate) election: Arc<ListingElection>,
    era: Mutex<Option<Era>>,
    /// What the server has called itself last.
    server_info: Arc<Mutex<Option<ServerInfo>>>,
    /// How often neither era could be agreed on.
    failed_negotiations: AtomicU32,
    client: OnceLock<HttpClient>,
}

impl Link {
    pub(crate) fn new(spec: UpstreamSpec) -> Self {
        let listing = ListingState { state: SourceState::Starting, listing: Arc::default(), version: 0 };
        let account = spec.accounts.as_ref().and_then(Accounts::shared);
        let (breaker, turns) = (Breaker::new(spec.breaker), Arc::new(FairQueue::new(spec.limits)));
        Self {
            name: spec.name.as_str().into(),
            era: Mutex::new(spec.era),
            spec,
            listing: watch::Sender::new(listing),
            state: watch::Sender::new(LinkState::Connecting),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            list_changes: Arc::default(),
            subscriptions: ResourceSubscriptions::default(),
            stop: CancellationToken::new(),
            connect_request: Notify::new(),
            suspension: Suspension::default(),
            active_calls: Arc::default(),
            breaker,
            health_check: Notify::new(),
            queue: turns,
            stderr: Arc::default(),
            is_extra: false,
            account,
            login_changed: Notify::new(),
            listing_link: None,
            access: Mutex::default(),
            election: Arc::default(),
            server_info: Arc::default(),
            failed_negotiations: AtomicU32::new(0),
            client: OnceLock::new(),
        }
    }

    /// One more connection to the same server, with this login. It ends with the first.
    pub(crate) fn extra(first: &Arc<Self>, account: Option<Arc<Account>>) -> Self {
        let is_persons = first.has_personal_logins();
        Self {
            account,
            listing_link: is_persons.then(|| first.clone()),
            election: if is_persons { first.election.clone() } else { Arc::default() },
            // What one person's program says is not told to another.
            stderr: if is_persons { Arc::default() } else { first.stderr.clone() },
            era: Mutex::new(first.era()),
            events: first.events.clone(),
            list_changes: first.list_changes.clone(),
            state: watch::Sender::new(LinkState::Idle),
            stop: first.stop.child_token(),
            queue: first.queue.clone(),
            server_info: first.server_info.clone(),
            is_extra: true,
            ..Self::new(first.spec.clone())
        }
    }

    /// Whether each caller has a login of their own.
    pub(crate) fn has_personal_logins(&self) -> bool {
        self.spec.accounts.as_ref().is_some_and(Accounts::is_per_person)
    }

    /// Speaks without a login to a server at which each person has their own.
    pub(crate) fn is_anonymous(&self) -> bool {
        !self.is_extra && self.has_personal_logins()
    }

    /// Whether what the server lists is asked for here.
    pub(crate) fn lists_items(&self) -> bool {
        !self.is_extra || self.listing_link.is_some()
    }

    /// The connection whose lists everybody sees.
    pub(crate) fn listing_owner(&self) -> &Self {
        self.listing_link.as_deref().unwrap_or(self)
    }

    /// Whether it may go without a connection while nobody calls.
    pub(crate) fn may_idle(&self) -> bool {
        self.is_extra || (self.spec.connect == ConnectMode::OnDemand && self.is_ready())
    }

    pub(crate) fn new_dispatcher(&self) -> Dispatcher {
        Dispatcher::new(self.name.clone(), self.events.clone(), self.list_changes.clone())
    }

    /// The pool of HTTP connections, made when it is first needed.
    pub(crate) fn client(&self, url: &str) -> UpstreamResult<HttpClient> {
        if let Some(ready) = self.client.get() {
            return Ok(ready.clone());
        }
        let fresh = build_client(&self.spec.net, url)?;
        Ok(self.client.get_or_init(|| fresh).clone())
    }

    /// The program with the key that it is told by a variable, where it has one.
    pub(crate) async fn with_credential_env(&self, command: &Command) -> UpstreamResult<Command> {
        let mut command = command.clone();
        match (&self.account, &self.spec.accounts) {
            (Some(account), _) => command.env.extend(account.env_variable().await?),
            (None, Some(accounts)) if accounts.needs_env_key() => {
                return Err(UpstreamError::Unauthorized(401));
            }
            (None, _) => {}
        }
        Ok(command)
    }

    pub(crate) fn server_info(&self) -> Option<ServerInfo> {
        self.server_info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn era(&self) -> Option<Era> {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to try first. A program that was slow to start gets more time after each failure.
    pub(crate) fn negotiation_plan(&self) -> NegotiationPlan {
        let limit = match self.spec.transport {
            TransportSpec::Stdio(_) => {
                STDIO_PROBE_TIMEOUT * (1 + self.failed_negotiations.load(Ordering::Relaxed))
            }
            TransportSpec::Http { .. } => HTTP_PROBE_TIMEOUT,
        };
        self.era()
            .map_or(NegotiationPlan::Probe(limit.min(self.spec.start_timeout / 2)), NegotiationPlan::Fixed)
    }

    /// Remembers the era that worked, and forgets one that did not.
    pub(crate) fn record_negotiation(&self, plan: NegotiationPlan, opened: &UpstreamResult<Arc<Connection>>) {
        if let Ok(connection) = opened {
            *self.server_info.lock().unwrap_or_else(PoisonError::into_inner) = connection.server.info.clone();
        }
        if self.spec.era.is_some() {
            return;
        }
        let is_child = matches!(self.spec.transport, TransportSpec::Stdio(_));
        let known = match (opened, plan) {
            (Ok(connection), _) => Some(connection.era()),
            (
                Err(
                    UpstreamError::NotSent(_)
                    | UpstreamError::Unauthorized(_)
                    | UpstreamError::CredentialUnusable(_),
                ),
                _,
            ) => return,
            // Some legacy programs end when the first thing they hear is not the handshake they know.
            (Err(UpstreamError::ConnectionLost(_)), NegotiationPlan::Probe(_)) if is_child => {
                Some(Era::Legacy)
            }
            (Err(_), _) => {
                self.failed_negotiations.fetch_add(1, Ordering::Relaxed);
                None
            }
        };
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = known;
        if let (Some(home), Some(_)) = (&self.listing_link, known) {
            *home.era.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
    }
}
