//! How a connection is got: waited for, wished for, and ended by wish.

use crate::connection::Connection;
use crate::fail::Fail;
use crate::state::Inner;
use octo_model::ToolError;
use octo_toolkit::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call waits this long for a server that is being started again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether calls can be made.
#[derive(Clone)]
pub(crate) enum Status {
    Waiting,
    /// The last try came to nothing; there will be another.
    Failed(Fail),
    /// Nobody needs it; the next call starts it.
    Asleep,
    Up(Arc<Connection>),
    Refused(Fail),
    Stopped,
}

impl Status {
    fn is_final(&self) -> bool {
        match self {
            Self::Waiting | Self::Failed(_) | Self::Asleep => false,
            Self::Up(connection) => !connection.lost.is_set(),
            Self::Refused(_) | Self::Stopped => true,
        }
    }

    /// What came of one try.
    fn is_told(&self) -> bool {
        matches!(self, Self::Failed(_)) || self.is_final()
    }
}

impl Inner {
    /// A login that was made elsewhere is worth another try before anybody is told that there is none.
    async fn try_new_login(&self) {
        let refused = matches!(&*self.status.borrow(), Status::Refused(Fail::Login(_)));
        if let (true, Some(account)) = (refused, &self.account)
            && account.is_new().await
        {
            self.status.send_replace(Status::Waiting);
        }
    }

    /// A connection that works, waited for if need be.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        if let Status::Up(connection) = &*self.status.borrow()
            && !connection.lost.is_set()
        {
            return Ok(connection.clone());
        }
        // In a box, because every call would carry its states otherwise.
        Box::pin(self.connect(deadline)).await
    }

    async fn connect(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.try_new_login().await;
        // A start on demand may take its time: nothing is known to be wrong.
        let is_asleep = matches!(&*self.status.borrow(), Status::Asleep);
        let patience = if is_asleep { self.spec.start_timeout.max(PATIENCE) } else { PATIENCE };
        let until = deadline.min(Instant::now() + patience);
        self.wanted(until, Status::is_final).await
    }

    /// One more try now, whatever came of the last one.
    pub(crate) async fn raise(&self, deadline: Instant) -> Result<Arc<Connection>, ToolError> {
        self.forgive();
        self.wanted(deadline, Status::is_told).await
    }

    /// Cuts all waits short.
    pub(crate) fn wish(&self) {
        self.rest.set(false);
        self.wake.notify_one();
    }

    /// Wakes it and waits until enough is known.
    async fn wanted(
        &self,
        until: Instant,
        is_known: fn(&Status) -> bool,
    ) -> Result<Arc<Connection>, ToolError> {
        self.wish();
        let mut status = self.status.subscribe();
        let known = tokio::select! {
            known = status.wait_for(is_known) => known.ok().map(|status| status.clone()),
            () = self.rest.until(true) => None,
            () = tokio::time::sleep_until(until) => None,
        };
        match known {
            Some(Status::Up(connection)) => Ok(connection),
            Some(Status::Refused(why) | Status::Failed(why)) => Err(why.to_error(&self.name)),
            Some(Status::Waiting | Status::Asleep | Status::Stopped) | None => Err(self.down_error()),
        }
    }

    /// Ends the connection, if any, and waits for it. What was listed stays listed.
    pub(crate) async fn lie_down(&self) {
        self.rest.set(true);
        let mut status = self.status.subscribe();
        tokio::select! {
            _ = status.wait_for(|status| matches!(status, Status::Asleep | Status::Stopped)) => {}
            // Somebody needs it again already.
            () = self.rest.until(false) => {}
        }
        if self.listing.borrow().state == State::Starting {
            self.down("disconnected");
        }
    }

    /// A login has begun or ended: what was made or refused with the one before counts no longer.
    pub(crate) fn look_again(&self) {
        self.give_up("the login has changed");
        self.forgive();
        self.relogin.notify_one();
    }

    /// What came of the last try counts no longer.
    pub(crate) fn forgive(&self) {
        self.status.send_if_modified(|status| {
            let again = matches!(status, Status::Failed(_) | Status::Refused(_));
            if again {
                *status = Status::Waiting;
            }
            again
        });
    }

    /// Gives up the connection there is, if any: it is made anew.
    pub(crate) fn give_up(&self, why: &str) {
        if let Status::Up(connection) = &*self.status.borrow() {
            connection.lost.set(Fail::Lost(why.to_owned()));
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
}
