//! One link to a server, with one account: its state, and waiting for a connection.

use crate::admission::active_calls::ActiveCalls;
use crate::admission::breaker::Breaker;
use crate::error::{UpstreamError, UpstreamResult};
use crate::lifecycle::link_state::{LinkEvent, LinkState};
use crate::lifecycle::negotiation::{KnownEra, Negotiation};
use crate::lifecycle::server::Server;
use crate::lifecycle::server_status::ServerStatus;
use crate::session::connection::Connection;
use crate::session::handshake::NegotiationPlan;
use crate::transport::http::http_client::{HttpClient, build_client};
use crate::transport::stdio::stderr_log::StderrLog;
use crate::upstream_spec::ConnectMode;
use octo_model::{Kind, Principal, ToolError};
use octo_oauth::{Account, Accounts};
use octo_toolkit::SourceState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum wait of a call for a server that is reconnecting.
const RECONNECT_WAIT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkRole {
    /// The first link. It lists, and represents the server as a whole.
    Primary,
    /// Link of a principal with its own login. It lists as well, because the server may show more to that login.
    Personal,
    /// Additional link for calls.
    Calls,
}

pub(crate) struct Link {
    pub(crate) server: Arc<Server>,
    pub(crate) role: LinkRole,
    /// The only login that this link uses.
    pub(crate) account: Option<Arc<Account>>,
    /// The only caller that uses this link; `None` if callers share it.
    pub(crate) owner: Option<Principal>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    pub(crate) breaker: Breaker,
    pub(crate) stderr: Arc<StderrLog>,
    pub(crate) stop: CancellationToken,
    /// Ends the backoff early.
    pub(crate) connect_request: Notify,
    /// A login was added or removed.
    pub(crate) login_changed: Notify,
    /// A call timed out.
    pub(crate) health_check: Arc<Notify>,
    pub(crate) negotiation: Negotiation,
    state: watch::Sender<LinkState>,
    /// Reason of the last failed attempt. For the primary link it is in the server's listing.
    failure: Mutex<Option<String>>,
    /// Whether it has ever had a connection.
    was_up: AtomicBool,
    client: OnceLock<HttpClient>,
}

impl Link {
    pub(crate) fn primary(server: Arc<Server>) -> Self {
        let account = server.spec.accounts.as_ref().and_then(Accounts::shared);
        let (era, stderr, stop) = (server.era.clone(), server.stderr.clone(), server.stop.clone());
        let state = LinkState::Connecting { on_demand: false };
        Self::new(server, LinkRole::Primary, account, state, era, stderr, stop)
    }

    /// Additional link to the same server, with this login. It ends with the primary link.
    pub(crate) fn extra(
        server: &Arc<Server>,
        owner: Option<Principal>,
        account: Option<Arc<Account>>,
    ) -> Self {
        let role = if server.has_personal_logins() { LinkRole::Personal } else { LinkRole::Calls };
        // Standard error of one person's process is not shown to another.
        let stderr = if role == LinkRole::Personal { Arc::default() } else { server.stderr.clone() };
        let era = Arc::new(KnownEra::new(server.era.get()));
        let stop = server.stop.child_token();
        Self { owner, ..Self::new(server.clone(), role, account, LinkState::Idle, era, stderr, stop) }
    }

    fn new(
        server: Arc<Server>,
        role: LinkRole,
        account: Option<Arc<Account>>,
        state: LinkState,
        era: Arc<KnownEra>,
        stderr: Arc<StderrLog>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            role,
            account,
            owner: None,
            active_calls: Arc::default(),
            breaker: Breaker::new(server.spec.breaker),
            stderr,
            stop,
            connect_request: Notify::new(),
            login_changed: Notify::new(),
            health_check: Arc::default(),
            negotiation: Negotiation::new(era),
            state: watch::Sender::new(state),
            failure: Mutex::default(),
            was_up: AtomicBool::new(false),
            client: OnceLock::new(),
            server,
        }
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.role == LinkRole::Primary
    }

    /// Whether the link has no login at a server with personal logins.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_primary() && self.server.has_personal_logins()
    }

    /// Whether this link lists the items of the server.
    pub(crate) fn lists_items(&self) -> bool {
        self.role != LinkRole::Calls
    }

    /// Whether the listing is known, for the link that is responsible for it.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_primary() && self.server.listing.is_ready()
    }

    /// Whether the link may be without a connection while it is unused.
    pub(crate) fn may_idle(&self) -> bool {
        !self.is_primary()
            || (self.server.spec.connect == ConnectMode::OnDemand && self.server.listing.is_ready())
    }

    pub(crate) fn state(&self) -> watch::Ref<'_, LinkState> {
        self.state.borrow()
    }

    pub(crate) fn watch_state(&self) -> watch::Receiver<LinkState> {
        self.state.subscribe()
    }

    /// Applies an event; false if it has no effect in the current state.
    pub(crate) fn apply(&self, event: LinkEvent) -> bool {
        self.state.send_if_modified(|state| match state.after(event) {
            Some(next) => {
                *state = next;
                true
            }
            None => false,
        })
    }

    /// Opens the link for calls; false if the connection is no longer wanted.
    pub(crate) fn come_up(&self, connection: Arc<Connection>) -> bool {
        let is_up = self.apply(LinkEvent::Connected(connection));
        if is_up {
            self.was_up.store(true, Ordering::Release);
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        is_up
    }

    pub(crate) async fn wait_for_state(&self, is_wanted: impl FnMut(&LinkState) -> bool) -> LinkState {
        // `self` holds the sender, so the channel does not close.
        self.watch_state().wait_for(is_wanted).await.map_or(LinkState::Stopped, |state| state.clone())
    }

    /// HTTP connection pool, created on first use.
    pub(crate) fn client(&self, url: &str) -> UpstreamResult<HttpClient> {
        if let Some(ready) = self.client.get() {
            return Ok(ready.clone());
        }
        let fresh = build_client(&self.server.spec.net, url)?;
        Ok(self.client.get_or_init(|| fresh).clone())
    }

    /// Stores what the negotiation revealed about the server.
    pub(crate) fn record_negotiation(&self, plan: NegotiationPlan, opened: &UpstreamResult<Arc<Connection>>) {
        if let Ok(connection) = opened {
            self.server.set_info(connection.server.info.clone());
        }
        let outcome = opened.as_ref().map(|connection| connection.era());
        let learned = self.negotiation.record(&self.server.spec, plan, outcome);
        if learned.is_some() && self.role == LinkRole::Personal {
            self.server.era.set(learned);
        }
    }

    /// Whether nothing has failed so far: it was idle, or this is its first start.
    pub(crate) fn is_starting(&self) -> bool {
        let state = self.state();
        let is_first_start =
            !self.was_up.load(Ordering::Acquire) && matches!(&*state, LinkState::Connecting { .. });
        state.is_dormant() || is_first_start
    }

    /// Returns a working connection; waits for one if necessary.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        if let LinkState::Up(connection) = &*self.state()
            && !connection.closed.is_set()
        {
            return Ok(connection.clone());
        }
        // Boxed, because every call would carry its state otherwise.
        Box::pin(self.connect(deadline)).await
    }

    async fn connect(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.retry_with_new_login().await;
        // An on-demand start may take longer: there was no failure.
        let limit = if self.is_starting() {
            self.server.spec.start_timeout.max(RECONNECT_WAIT_TIMEOUT)
        } else {
            RECONNECT_WAIT_TIMEOUT
        };
        self.connect_and_wait(deadline.min(Instant::now() + limit), LinkState::is_settled).await
    }

    /// Allows another attempt if a login was added elsewhere, before reporting that there is none.
    async fn retry_with_new_login(&self) {
        let refused = matches!(&*self.state(), LinkState::Refused(UpstreamError::Unauthorized(_)));
        if let (true, Some(account)) = (refused, &self.account)
            && account.has_untried_login().await
        {
            self.apply(LinkEvent::FailureCleared);
        }
    }

    /// Attempts to connect now, regardless of the last result.
    pub(crate) async fn connect_now(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.apply(LinkEvent::FailureCleared);
        self.connect_and_wait(deadline, LinkState::is_attempt_over).await
    }

    /// Ends all waits early.
    pub(crate) fn request_connect(&self) {
        self.apply(LinkEvent::Needed);
        self.connect_request.notify_one();
    }

    /// Requests a connection and waits until the outcome is known.
    async fn connect_and_wait(
        &self,
        until: Instant,
        is_known: fn(&LinkState) -> bool,
    ) -> Result<Arc<Connection>, ToolError> {
        self.request_connect();
        match tokio::time::timeout_at(until, self.wait_for_state(is_known)).await {
            Ok(LinkState::Up(connection)) => Ok(connection),
            Ok(LinkState::Refused(why) | LinkState::BackingOff(why)) => {
                Err(why.to_tool_error(&self.server.name))
            }
            Ok(_) | Err(_) => Err(self.unavailable_error()),
        }
    }

    fn unavailable_error(&self) -> ToolError {
        let (state, hint) = match &*self.state() {
            LinkState::Connecting { .. } if self.is_starting() => {
                ("still starting", "Try again in a few seconds.")
            }
            _ => ("not running", "Try again later, or use another tool."),
        };
        let error = ToolError::unavailable(format!("{} is {state}.", self.server.name))
            .hint(hint)
            .retry_after(Duration::from_secs(5));
        match self.failure() {
            Some(why) => error.detail(why),
            None => error,
        }
    }

    /// Closes the connection, if any, and waits for it. The listing stays.
    pub(crate) async fn suspend(&self) {
        self.apply(LinkEvent::Suspended);
        // Or until it is needed again.
        self.wait_for_state(|state| !matches!(state, LinkState::Suspended { is_closed: false })).await;
        if self.server.listing.current().state == SourceState::Starting {
            self.server.listing.mark_down("disconnected");
        }
    }

    /// Reconnects a suspended link.
    pub(crate) fn resume(&self) {
        if self.state().is_suspended() {
            self.apply(LinkEvent::Needed);
        }
    }

    /// A login was added or removed: connections and refusals of the previous login are void.
    pub(crate) fn reauthenticate(&self) {
        self.drop_connection("the login changed");
        self.apply(LinkEvent::FailureCleared);
        self.login_changed.notify_one();
    }

    /// Drops the current connection, if any; the supervisor reconnects.
    pub(crate) fn drop_connection(&self, why: &str) {
        if let LinkState::Up(connection) = &*self.state() {
            connection.closed.set(UpstreamError::ConnectionLost(why.to_owned()));
        }
    }

    /// Reports a failed attempt. A server that needs a personal login is reachable, and its listing stays valid.
    pub(crate) fn report_failure(&self, why: &UpstreamError) {
        if self.is_anonymous() && matches!(why, UpstreamError::Unauthorized(_)) {
            self.server.listing.report_login_required(why);
        } else {
            self.mark_down(&self.with_stderr_excerpt(why));
        }
    }

    /// Marks the link as unusable. Only the primary link changes the state of the server.
    pub(crate) fn mark_down(&self, why: &str) {
        if self.is_primary() {
            return self.server.listing.mark_down(why);
        }
        let last = self.failure.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_owned());
        if last.as_deref() != Some(why) && !self.stop.is_cancelled() {
            tracing::warn!(target: "upstream", server = %self.server.name, why, "down");
        }
    }

    fn failure(&self) -> Option<String> {
        match (&self.server.listing.current().state, self.role) {
            (SourceState::Down(why), LinkRole::Primary) => Some(why.clone()),
            (_, LinkRole::Primary) => None,
            (_, LinkRole::Personal | LinkRole::Calls) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
        }
    }

    /// Appends the last lines of standard error where the reason alone is not enough.
    fn with_stderr_excerpt(&self, why: &UpstreamError) -> String {
        match (why, self.stderr.excerpt()) {
            (UpstreamError::Timeout(_) | UpstreamError::Protocol(_) | UpstreamError::Rpc(_), Some(last)) => {
                format!("{why}; last stderr output: {last}")
            }
            _ => why.to_string(),
        }
    }

    /// Reports a failed listing. A failure of one person's link does not remove the items for others.
    pub(crate) fn report_listing_failure(&self, why: &UpstreamError) {
        if self.is_primary() || !self.server.listing.is_ready() {
            self.server.listing.mark_down(&format!("cannot list tools: {why}"));
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let down = || self.failure().map(ServerStatus::Down);
        let state = self.state().clone();
        match &state {
            LinkState::Up(_) => down().unwrap_or(ServerStatus::Connected),
            state if state.is_dormant() => ServerStatus::Idle,
            LinkState::Idle | LinkState::Connecting { .. } | LinkState::Suspended { .. } => {
                down().unwrap_or(ServerStatus::Starting)
            }
            LinkState::BackingOff(why) => down().unwrap_or_else(|| ServerStatus::Down(why.to_string())),
            // Someone has logged in before, and that listing is shown.
            LinkState::Refused(UpstreamError::Unauthorized(_)) if self.is_anonymous() && self.is_listed() => {
                ServerStatus::Idle
            }
            LinkState::Refused(UpstreamError::Unauthorized(_)) => ServerStatus::NeedsLogin(None),
            LinkState::Refused(UpstreamError::CredentialUnusable(error))
                if error.kind == Kind::Unauthorized =>
            {
                ServerStatus::NeedsLogin(None)
            }
            LinkState::Refused(why) => ServerStatus::Down(why.to_string()),
            LinkState::Stopped => ServerStatus::Down("stopped".to_owned()),
        }
    }
}
