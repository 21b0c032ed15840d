//! The MCP frontend and its settings.

use crate::legacy_session::Session;
use crate::legacy_session::event_log::EventBudget;
use crate::legacy_session::session_registry::SessionRegistry;
use crate::request_state::StateSealer;
use crate::shared_fronts::{SharedFronts, SharedFrontsConfig};
use crate::stateless_epochs::StatelessEpochs;
use crate::suspended_calls::SuspendedCalls;
use crate::task_registry::{TaskRegistry, TaskSettings};
use octo_hub::Hub;
use octo_model::{Caller, JsonObject};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Limits of the frontend.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// Legacy sessions without a request or open stream for this long are dropped.
    pub session_idle: Duration,
    pub max_sessions: usize,
    /// Maximum sessions per caller.
    pub max_sessions_per_caller: usize,
    pub max_body_bytes: usize,
    /// Keep-alive interval of a quiet stream.
    pub keep_alive: Duration,
    /// Whether caches may share lists between callers, while the policy shows all callers the same.
    pub shared_lists: bool,
    pub tasks: TaskSettings,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            session_idle: Duration::from_secs(1_800),
            max_sessions: 200_000,
            max_sessions_per_caller: 200_000,
            max_body_bytes: 4 << 20,
            keep_alive: Duration::from_secs(15),
            shared_lists: true,
            tasks: TaskSettings::default(),
        }
    }
}

pub struct Mcp {
    pub(crate) hub: Arc<Hub>,
    pub(crate) settings: McpSettings,
    pub(crate) sessions: SessionRegistry,
    pub(crate) stateless_epochs: StatelessEpochs,
    pub(crate) suspended: SuspendedCalls,
    pub(crate) tasks: TaskRegistry,
    pub(crate) event_budget: Arc<EventBudget>,
    pub(crate) state_sealer: StateSealer,
    /// Set if other fronts can continue the sessions of this one.
    pub(crate) fronts: Option<Arc<SharedFronts>>,
    /// Whether callers have been distinguished since the start, so that caches must not share lists.
    private_lists: AtomicBool,
    /// Ends all open streams and tasks.
    pub(crate) closing: CancellationToken,
    /// Params of the request to leave, once it is made.
    pub(crate) draining: watch::Sender<Option<JsonObject>>,
}

impl Mcp {
    /// Needs a runtime, because idle sessions are swept.
    pub fn new(hub: Arc<Hub>, settings: McpSettings) -> Result<Arc<Self>, std::io::Error> {
        Ok(Self::build(hub, settings, StateSealer::new()?, None))
    }

    /// One of several fronts that share their sessions. Needs a runtime.
    pub fn with_fronts(hub: Arc<Hub>, settings: McpSettings, fronts: SharedFrontsConfig) -> Arc<Self> {
        let (fronts, state_sealer) = SharedFronts::new(fronts);
        Self::build(hub, settings, state_sealer, Some(fronts))
    }

    fn build(
        hub: Arc<Hub>,
        settings: McpSettings,
        state_sealer: StateSealer,
        fronts: Option<Arc<SharedFronts>>,
    ) -> Arc<Self> {
        let mcp = Arc::new(Self {
            hub,
            sessions: SessionRegistry::new(settings.max_sessions, settings.max_sessions_per_caller),
            stateless_epochs: StatelessEpochs::default(),
            suspended: SuspendedCalls::default(),
            tasks: TaskRegistry::default(),
            event_budget: Arc::default(),
            state_sealer,
            fronts,
            private_lists: AtomicBool::new(!settings.shared_lists),
            closing: CancellationToken::new(),
            draining: watch::Sender::new(None),
            settings,
        });
        let weak = Arc::downgrade(&mcp);
        let idle = mcp.settings.session_idle;
        let pause = (idle / 10).clamp(Duration::from_millis(100), Duration::from_secs(10));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(mcp) = weak.upgrade() else { return };
                for session in mcp.sessions.sweep(idle) {
                    mcp.close_session(&session).await;
                }
                mcp.stateless_epochs.sweep();
                mcp.suspended.sweep();
                mcp.tasks.sweep();
            }
        });
        mcp
    }

    /// Name of this node among the fronts; empty if it is alone.
    pub(crate) fn node(&self) -> &str {
        self.fronts.as_ref().map_or("", |fronts| fronts.node())
    }

    /// Whether other fronts can be reached.
    pub(crate) fn has_other_fronts(&self) -> bool {
        self.fronts.as_ref().is_some_and(|fronts| fronts.link.is_some())
    }

    /// Callers are distinguished from now on.
    pub fn keep_lists_private(&self) {
        self.private_lists.store(true, Ordering::Relaxed);
    }

    /// Whether caches may share lists between callers.
    pub(crate) fn cache_scope(&self) -> &'static str {
        let is_private = self.private_lists.load(Ordering::Relaxed) || !self.hub.has_shared_listing();
        if is_private { "private" } else { "public" }
    }

    /// Ends all open streams, so that the listener can drain, and all tasks.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Closes, and waits for the tasks: when this returns, their audit records are closed, too.
    pub async fn shutdown(&self) {
        self.close();
        self.tasks.shutdown().await;
        if let Some(fronts) = &self.fronts {
            fronts.leave().await;
        }
    }

    /// Ends the sessions and tasks of callers whose token was revoked or has fewer scopes than at their start. Needs a
    /// runtime.
    pub fn end_revoked_callers(self: &Arc<Self>, is_allowed: impl Fn(&Caller) -> bool) {
        self.tasks.cancel_where(|caller| !is_allowed(caller));
        for session in self.sessions.remove_where(|session| !is_allowed(&session.client.caller)) {
            session.close();
            let mcp = Arc::clone(self);
            tokio::spawn(async move { mcp.close_session(&session).await });
        }
    }

    /// Ends everything that runs for a closed session, and its subscriptions.
    pub(crate) async fn close_session(&self, session: &Session) {
        session.close();
        for subscription in session.take_subscriptions() {
            let _ = subscription.end().await;
        }
    }
}
