//! The face, put together once.

use crate::eventlog::EventBudget;
use crate::parking::Parking;
use crate::seal::Seal;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::tasks::{TaskSettings, Tasks};
use octo_hub::Hub;
use octo_model::Caller;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Limits of the face.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// A legacy session without a request or an open stream for this long is dropped.
    pub session_idle: Duration,
    pub max_sessions: usize,
    /// How many of them one caller may have.
    pub max_sessions_per_caller: usize,
    pub max_body_bytes: usize,
    /// How often a quiet stream is kept alive.
    pub keep_alive: Duration,
    /// Whether caches may share lists between callers, as long as policy shows everybody the same.
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
    pub(crate) sessions: Sessions,
    pub(crate) parking: Parking,
    pub(crate) tasks: Tasks,
    pub(crate) events: Arc<EventBudget>,
    pub(crate) seal: Seal,
    /// Whether callers are told apart since the start, so that no cache may share their lists.
    private_lists: AtomicBool,
    /// Ends every open stream and every task.
    pub(crate) closing: CancellationToken,
}

impl Mcp {
    /// Needs a runtime, since idle sessions are swept.
    pub fn new(hub: Arc<Hub>, settings: McpSettings) -> Result<Arc<Self>, std::io::Error> {
        let mcp = Arc::new(Self {
            hub,
            sessions: Sessions::new(settings.max_sessions, settings.max_sessions_per_caller),
            parking: Parking::default(),
            tasks: Tasks::default(),
            events: Arc::default(),
            seal: Seal::new()?,
            private_lists: AtomicBool::new(!settings.shared_lists),
            closing: CancellationToken::new(),
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
                    mcp.farewell(&session).await;
                }
                mcp.parking.sweep();
                mcp.tasks.sweep();
            }
        });
        Ok(mcp)
    }

    /// From now on callers are told apart.
    pub fn keep_lists_private(&self) {
        self.private_lists.store(true, Ordering::Relaxed);
    }

    /// Whether lists may be shared between callers.
    pub(crate) fn scope(&self) -> &'static str {
        let is_private = self.private_lists.load(Ordering::Relaxed) || !self.hub.has_shared_listing();
        if is_private { "private" } else { "public" }
    }

    /// Ends every stream that would otherwise stay open, so that the listener can drain, and the calls that went on
    /// without one.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Closes, and waits for the calls that went on: when this returns, their records are closed, too.
    pub async fn end(&self) {
        self.close();
        self.tasks.end().await;
    }

    /// Ends the sessions and tasks of callers who may not come in any more, or have fewer rights than these began with. Needs
    /// a runtime.
    pub fn end_callers(self: &Arc<Self>, is_allowed: impl Fn(&Caller) -> bool) {
        self.tasks.cancel_where(|caller| !is_allowed(caller));
        for session in self.sessions.take(|session| !is_allowed(&session.client.caller)) {
            session.close();
            let mcp = Arc::clone(self);
            tokio::spawn(async move { mcp.farewell(&session).await });
        }
    }

    /// Ends what runs for a session that is over, and its subscriptions.
    pub(crate) async fn farewell(&self, session: &Session) {
        session.close();
        for subscription in session.take_subscriptions() {
            let _ = subscription.end().await;
        }
    }
}
