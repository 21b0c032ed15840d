//! One link to a server, with one account: its state, and how a connection is waited for.

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
use octo_model::{Kind, ToolError};
use octo_oauth::{Account, Accounts};
use octo_toolkit::SourceState;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A call waits this long for a server that is being started again.
const RECONNECT_WAIT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkRole {
    /// The first one. It lists, and speaks for the server as a whole.
    Primary,
    /// Of somebody with a login of their own. It lists as well: the server may show more to them.
    Personal,
    /// One more for calls.
    Calls,
}

pub(crate) struct Link {
    pub(crate) server: Arc<Server>,
    pub(crate) role: LinkRole,
    /// The login with which it speaks, and no other.
    pub(crate) account: Option<Arc<Account>>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    pub(crate) breaker: Breaker,
    pub(crate) stderr: Arc<StderrLog>,
    pub(crate) stop: CancellationToken,
    /// Cuts the wait before the next try short.
    pub(crate) connect_request: Notify,
    /// A login has begun or ended.
    pub(crate) login_changed: Notify,
    /// A call was not answered in time.
    pub(crate) health_check: Arc<Notify>,
    pub(crate) negotiation: Negotiation,
    state: watch::Sender<LinkState>,
    /// Why the last try failed. Of the primary link the server's listing says it.
    failure: Mutex<Option<String>>,
    client: OnceLock<HttpClient>,
}

impl Link {
    pub(crate) fn primary(server: Arc<Server>) -> Self {
        let account = server.spec.accounts.as_ref().and_then(Accounts::shared);
        let (era, stderr, stop) = (server.era.clone(), server.stderr.clone(), server.stop.clone());
        let state = LinkState::Connecting { on_demand: false };
        Self::new(server, LinkRole::Primary, account, state, era, stderr, stop)
    }

    /// One more link to the same server, with this login. It ends with the primary one.
    pub(crate) fn extra(server: &Arc<Server>, account: Option<Arc<Account>>) -> Self {
        let role = if server.has_personal_logins() { LinkRole::Personal } else { LinkRole::Calls };
        // What one person's program says is not told to another.
        let stderr = if role == LinkRole::Personal { Arc::default() } else { server.stderr.clone() };
        let era = Arc::new(KnownEra::new(server.era.get()));
        let stop = server.stop.child_token();
        Self::new(server.clone(), role, account, LinkState::Idle, era, stderr, stop)
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
            client: OnceLock::new(),
            server,
        }
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.role == LinkRole::Primary
    }

    /// Speaks without a login to a server at which each person has their own.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_primary() && self.server.has_personal_logins()
    }

    /// Whether what the server lists is asked for here.
    pub(crate) fn lists_items(&self) -> bool {
        self.role != LinkRole::Calls
    }

    /// Whether what the server lists is known, where this link answers for it.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_primary() && self.server.listing.is_ready()
    }

    /// Whether it may go without a connection while nobody calls.
    pub(crate) fn may_idle(&self) -> bool {
        !self.is_primary()
            || (self.server.spec.connect == ConnectMode::OnDemand && self.server.listing.is_ready())
    }

    pub(crate) fn state(&self) -> watch::Ref<'_, LinkState> {
        self.state.borrow()
    }

    /// Tells what has happened; false where it means nothing any more.
    pub(crate) fn apply(&self, event: LinkEvent) -> bool {
        self.state.send_if_modified(|state| match state.after(event) {
            Some(next) => {
                *state = next;
                true
            }
            None => false,
        })
    }

    /// Lets calls in; false where nobody wants the connection any more.
    pub(crate) fn come_up(&self, connection: Arc<Connection>) -> bool {
        let is_up = self.apply(LinkEvent::Connected(connection));
        if is_up {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        is_up
    }

    pub(crate) async fn wait_for_state(&self, is_wanted: impl FnMut(&LinkState) -> bool) -> LinkState {
        // The sender is here, so that there is no end to wait for.
        self.state.subscribe().wait_for(is_wanted).await.map_or(LinkState::Stopped, |state| state.clone())
    }

    /// The pool of HTTP connections, made when it is first needed.
    pub(crate) fn client(&self, url: &str) -> UpstreamResult<HttpClient> {
        if let Some(ready) = self.client.get() {
            return Ok(ready.clone());
        }
        let fresh = build_client(&self.server.spec.net, url)?;
        Ok(self.client.get_or_init(|| fresh).clone())
    }

    /// Remembers what the server has said of itself.
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

    /// A connection that works, waited for if need be.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        if let LinkState::Up(connection) = &*self.state()
            && !connection.closed.is_set()
        {
            return Ok(connection.clone());
        }
        // In a box, because every call would carry its states otherwise.
        Box::pin(self.connect(deadline)).await
    }

    async fn connect(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.retry_with_new_login().await;
        // A start on demand may take its time: nothing is known to be wrong.
        let limit = if self.state().is_dormant() {
            self.server.spec.start_timeout.max(RECONNECT_WAIT_TIMEOUT)
        } else {
            RECONNECT_WAIT_TIMEOUT
        };
        self.connect_and_wait(deadline.min(Instant::now() + limit), LinkState::is_settled).await
    }

    /// A login that was made elsewhere is worth another try before anybody is told that there is none.
    async fn retry_with_new_login(&self) {
        let refused = matches!(&*self.state(), LinkState::Refused(UpstreamError::Unauthorized(_)));
        if let (true, Some(account)) = (refused, &self.account)
            && account.has_untried_login().await
        {
            self.apply(LinkEvent::FailureCleared);
        }
    }

    /// One more try now, whatever came of the last one.
    pub(crate) async fn connect_now(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.apply(LinkEvent::FailureCleared);
        self.connect_and_wait(deadline, LinkState::is_attempt_over).await
    }

    /// Cuts all waits short.
    pub(crate) fn request_connect(&self) {
        self.apply(LinkEvent::Needed);
        self.connect_request.notify_one();
    }

    /// Wakes it and waits until enough is known.
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
        let error = ToolError::unavailable(format!("{} is not running at the moment.", self.server.name))
            .hint("Try again later, or use another tool.")
            .retry_after(Duration::from_secs(5));
        match self.failure() {
            Some(why) => error.detail(why),
            None => error,
        }
    }

    /// Ends the connection, if any, and waits for it. What was listed stays listed.
    pub(crate) async fn suspend(&self) {
        self.apply(LinkEvent::Suspended);
        // Or until somebody needs it again.
        self.wait_for_state(|state| !matches!(state, LinkState::Suspended { is_closed: false })).await;
        if self.server.listing.current().state == SourceState::Starting {
            self.server.listing.mark_down("disconnected");
        }
    }

    /// A link that was suspended connects again.
    pub(crate) fn resume(&self) {
        if self.state().is_suspended() {
            self.apply(LinkEvent::Needed);
        }
    }

    /// A login has begun or ended: what was made or refused with the one before counts no longer.
    pub(crate) fn reauthenticate(&self) {
        self.drop_connection("the login has changed");
        self.apply(LinkEvent::FailureCleared);
        self.login_changed.notify_one();
    }

    /// Gives up the connection there is, if any: it is made anew.
    pub(crate) fn drop_connection(&self, why: &str) {
        if let LinkState::Up(connection) = &*self.state() {
            connection.closed.set(UpstreamError::ConnectionLost(why.to_owned()));
        }
    }

    /// Says why a try failed. A server that wants a person's login is there, and its lists are what they were.
    pub(crate) fn report_failure(&self, why: &UpstreamError) {
        if self.is_anonymous() && matches!(why, UpstreamError::Unauthorized(_)) {
            self.server.listing.report_login_required(why);
        } else {
            self.mark_down(&self.with_stderr_excerpt(why));
        }
    }

    /// Says that it cannot be used. Only the primary link speaks for the server.
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

    /// What a program said last, where the reason alone does not tell it.
    fn with_stderr_excerpt(&self, why: &UpstreamError) -> String {
        match (why, self.stderr.excerpt()) {
            (UpstreamError::Timeout(_) | UpstreamError::Protocol(_) | UpstreamError::Rpc(_), Some(last)) => {
                format!("{why}; it said last: {last}")
            }
            _ => why.to_string(),
        }
    }

    /// Says why there is no list. One person's trouble does not take from the others what is listed.
    pub(crate) fn report_listing_failure(&self, why: &UpstreamError) {
        if self.is_primary() || !self.server.listing.is_ready() {
            self.server.listing.mark_down(&format!("cannot list its tools: {why}"));
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
            // Somebody has logged in before, and what they saw is listed.
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
