//! How a connection is got: waited for, wished for, and ended by wish.

use crate::connection::Connection;
use crate::error::UpstreamError;
use crate::link::Link;
use octo_model::ToolError;
use octo_toolkit::SourceState;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call waits this long for a server that is being started again.
const RECONNECT_WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether calls can be made.
#[derive(Clone)]
pub(crate) enum LinkState {
    Connecting,
    /// The last try came to nothing; there will be another.
    BackingOff(UpstreamError),
    /// Nobody needs it; the next call starts it.
    Idle,
    Up(Arc<Connection>),
    Refused(UpstreamError),
    Stopped,
}

impl LinkState {
    fn is_settled(&self) -> bool {
        match self {
            Self::Connecting | Self::BackingOff(_) | Self::Idle => false,
            Self::Up(connection) => !connection.closed.is_set(),
            Self::Refused(_) | Self::Stopped => true,
        }
    }

    /// What came of one try.
    fn is_attempt_over(&self) -> bool {
        matches!(self, Self::BackingOff(_)) || self.is_settled()
    }
}

impl Link {
    /// A login that was made elsewhere is worth another try before anybody is told that there is none.
    async fn retry_with_new_login(&self) {
        let refused = matches!(&*self.state.borrow(), LinkState::Refused(UpstreamError::Unauthorized(_)));
        if let (true, Some(account)) = (refused, &self.account)
            && account.has_untried_login().await
        {
            self.state.send_replace(LinkState::Connecting);
        }
    }

    /// A connection that works, waited for if need be.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        if let LinkState::Up(connection) = &*self.state.borrow()
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
        let is_asleep = matches!(&*self.state.borrow(), LinkState::Idle);
        let patience = if is_asleep {
            self.spec.start_timeout.max(RECONNECT_WAIT_TIMEOUT)
        } else {
            RECONNECT_WAIT_TIMEOUT
        };
        let until = deadline.min(Instant::now() + patience);
        self.connect_and_wait(until, LinkState::is_settled).await
    }

    /// One more try now, whatever came of the last one.
    pub(crate) async fn connect_now(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.clear_failure();
        self.connect_and_wait(deadline, LinkState::is_attempt_over).await
    }

    /// Cuts all waits short.
    pub(crate) fn request_connect(&self) {
        self.suspension.set(false);
        self.connect_request.notify_one();
    }

    /// Wakes it and waits until enough is known.
    async fn connect_and_wait(
        &self,
        until: Instant,
        is_known: fn(&LinkState) -> bool,
    ) -> Result<Arc<Connection>, ToolError> {
        self.request_connect();
        let mut status = self.state.subscribe();
        let known = tokio::select! {
            known = status.wait_for(is_known) => known.ok().map(|status| status.clone()),
            () = self.suspension.wait_for(true) => None,
            () = tokio::time::sleep_until(until) => None,
        };
        match known {
            Some(LinkState::Up(connection)) => Ok(connection),
            Some(LinkState::Refused(why) | LinkState::BackingOff(why)) => Err(why.to_tool_error(&self.name)),
            Some(LinkState::Connecting | LinkState::Idle | LinkState::Stopped) | None => {
                Err(self.unavailable_error())
            }
        }
    }

    /// Ends the connection, if any, and waits for it. What was listed stays listed.
    pub(crate) async fn suspend(&self) {
        self.suspension.set(true);
        let mut status = self.state.subscribe();
        tokio::select! {
            _ = status.wait_for(|status| matches!(status, LinkState::Idle | LinkState::Stopped)) => {}
            // Somebody needs it again already.
            () = self.suspension.wait_for(false) => {}
        }
        if self.listing.borrow().state == SourceState::Starting {
            self.mark_down("disconnected");
        }
    }

    /// A login has begun or ended: what was made or refused with the one before counts no longer.
    pub(crate) fn reauthenticate(&self) {
        self.drop_connection("the login has changed");
        self.clear_failure();
        self.login_changed.notify_one();
    }

    /// What came of the last try counts no longer.
    pub(crate) fn clear_failure(&self) {
        self.state.send_if_modified(|status| {
            let again = matches!(status, LinkState::BackingOff(_) | LinkState::Refused(_));
            if again {
                *status = LinkState::Connecting;
            }
            again
        });
    }

    /// Gives up the connection there is, if any: it is made anew.
    pub(crate) fn drop_connection(&self, why: &str) {
        if let LinkState::Up(connection) = &*self.state.borrow() {
            connection.closed.set(UpstreamError::ConnectionLost(why.to_owned()));
        }
    }

    fn unavailable_error(&self) -> ToolError {
        let error = ToolError::unavailable(format!("{} is not running at the moment.", self.name))
            .hint("Try again later, or use another tool.")
            .retry_after(Duration::from_secs(5));
        match &self.listing.borrow().state {
            SourceState::Down(why) => error.detail(why),
            _ => error,
        }
    }
}
