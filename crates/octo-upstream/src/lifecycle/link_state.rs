//! The states of a link, and all transitions between them.

use crate::error::UpstreamError;
use crate::session::connection::Connection;
use std::sync::Arc;

/// State of a link: whether calls can be made, and the result of the last attempt. A retry does not change the state
/// until its own result is known.
#[derive(Clone)]
pub(crate) enum LinkState<C = Arc<Connection>> {
    /// Not needed; the next call connects.
    Idle,
    /// No result yet. `on_demand`: the link was idle before, so there was no failure.
    Connecting {
        on_demand: bool,
    },
    Up(C),
    /// The last attempt failed; another one follows.
    BackingOff(UpstreamError),
    /// The server rejected the login; calls fail immediately.
    Refused(UpstreamError),
    /// Ended on request, until it is needed again.
    Suspended {
        is_closed: bool,
    },
    Stopped,
}

#[derive(Clone)]
pub(crate) enum LinkEvent<C = Arc<Connection>> {
    /// A connection is requested.
    Needed,
    AttemptStarted,
    Connected(C),
    /// An attempt failed.
    Failed(UpstreamError),
    /// The login was rejected.
    Refused(UpstreamError),
    /// The result of the last attempt is void.
    FailureCleared,
    ConnectionLost,
    /// The connection was unused for its idle timeout.
    IdleTimeout,
    /// Nothing is open or waited for.
    Closed,
    Suspended,
    Stopped,
}

impl<C> LinkState<C> {
    /// Returns the state after an event; `None` if the event has no effect in this state.
    pub(crate) fn after(&self, event: LinkEvent<C>) -> Option<Self> {
        use LinkEvent as On;
        Some(match (self, event) {
            (Self::Stopped, _) => return None,
            (_, On::Stopped) => Self::Stopped,
            (Self::Suspended { is_closed }, On::Needed) => Self::Connecting { on_demand: *is_closed },
            (Self::Suspended { is_closed: false }, On::Closed) => Self::Suspended { is_closed: true },
            // Late events of an attempt or connection that has been ended.
            (Self::Suspended { .. }, _) => return None,
            (state, On::Suspended) => Self::Suspended { is_closed: matches!(state, Self::Idle) },
            (Self::Idle, On::Needed | On::AttemptStarted) => Self::Connecting { on_demand: true },
            (Self::Idle, _) => return None,
            (Self::Up(_), On::ConnectionLost) => Self::Connecting { on_demand: false },
            (Self::Up(_), On::IdleTimeout) => Self::Idle,
            (Self::Up(_), _) => return None,
            (_, On::Connected(connection)) => Self::Up(connection),
            (_, On::Failed(why)) => Self::BackingOff(why),
            (_, On::Refused(why)) => Self::Refused(why),
            (_, On::Closed) => Self::Idle,
            (Self::BackingOff(_) | Self::Refused(_), On::FailureCleared) => {
                Self::Connecting { on_demand: false }
            }
            (
                _,
                On::FailureCleared | On::Needed | On::AttemptStarted | On::ConnectionLost | On::IdleTimeout,
            ) => return None,
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self, Self::Up(_))
    }

    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self, Self::Suspended { .. })
    }

    /// Whether there was nothing to do before the next call, or an on-demand start has no result yet.
    pub(crate) fn is_dormant(&self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Connecting { on_demand: true } | Self::Suspended { is_closed: true }
        )
    }

    /// Whether nothing is open and nothing to do until the link is needed.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self, Self::Idle | Self::Suspended { is_closed: true })
    }
}

impl LinkState {
    /// Whether a call has a connection, or will not get one.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Self::Up(connection) => !connection.closed.is_set(),
            Self::Refused(_) | Self::Suspended { .. } | Self::Stopped => true,
            Self::Connecting { .. } | Self::BackingOff(_) | Self::Idle => false,
        }
    }

    /// Whether the current attempt is over.
    pub(crate) fn is_attempt_over(&self) -> bool {
        matches!(self, Self::BackingOff(_)) || self.is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// State names, as in the columns of the table.
    const STATES: [(&str, LinkState<()>); 9] = [
        ("idle", LinkState::Idle),
        ("retry", LinkState::Connecting { on_demand: false }),
        ("demand", LinkState::Connecting { on_demand: true }),
        ("up", LinkState::Up(())),
        ("backoff", LinkState::BackingOff(UpstreamError::SessionExpired)),
        ("refused", LinkState::Refused(UpstreamError::SessionExpired)),
        ("closing", LinkState::Suspended { is_closed: false }),
        ("closed", LinkState::Suspended { is_closed: true }),
        ("stopped", LinkState::Stopped),
    ];

    fn name(state: &LinkState<()>) -> &'static str {
        match state {
            LinkState::Idle => "idle",
            LinkState::Connecting { on_demand: false } => "retry",
            LinkState::Connecting { on_demand: true } => "demand",
            LinkState::Up(()) => "up",
            LinkState::BackingOff(_) => "backoff",
            LinkState::Refused(_) => "refused",
            LinkState::Suspended { is_closed: false } => "closing",
            LinkState::Suspended { is_closed: true } => "closed",
            LinkState::Stopped => "stopped",
        }
    }

    #[test]
    fn every_event_in_every_state() {
        use UpstreamError::SessionExpired as Why;
        #[rustfmt::skip]
        let table: [(LinkEvent<()>, [&str; 9]); 11] = [
            //                           idle      retry      demand     up         backoff    refused    closing    closed    stopped
            (LinkEvent::Needed,         ["demand", "-",       "-",       "-",       "-",       "-",       "retry",   "demand", "-"]),
            (LinkEvent::AttemptStarted, ["demand", "-",       "-",       "-",       "-",       "-",       "-",       "-",      "-"]),
            (LinkEvent::Connected(()),  ["-",      "up",      "up",      "-",       "up",      "up",      "-",       "-",      "-"]),
            (LinkEvent::Failed(Why),    ["-",      "backoff", "backoff", "-",       "backoff", "backoff", "-",       "-",      "-"]),
            (LinkEvent::Refused(Why),   ["-",      "refused", "refused", "-",       "refused", "refused", "-",       "-",      "-"]),
            (LinkEvent::FailureCleared, ["-",      "-",       "-",       "-",       "retry",   "retry",   "-",       "-",      "-"]),
            (LinkEvent::ConnectionLost, ["-",      "-",       "-",       "retry",   "-",       "-",       "-",       "-",      "-"]),
            (LinkEvent::IdleTimeout,    ["-",      "-",       "-",       "idle",    "-",       "-",       "-",       "-",      "-"]),
            (LinkEvent::Closed,         ["-",      "idle",    "idle",    "-",       "idle",    "idle",    "closed",  "-",      "-"]),
            (LinkEvent::Suspended,      ["closed", "closing", "closing", "closing", "closing", "closing", "-",       "-",      "-"]),
            (LinkEvent::Stopped,        ["stopped", "stopped", "stopped", "stopped", "stopped", "stopped", "stopped", "stopped", "-"]),
        ];
        for (row, (event, after)) in table.into_iter().enumerate() {
            for ((column, state), expected) in STATES.into_iter().zip(after) {
                let next = state.after(event.clone());
                assert_eq!(next.as_ref().map_or("-", name), expected, "row {row}, {column}");
            }
        }
    }
}
