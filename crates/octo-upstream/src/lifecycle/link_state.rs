//! The states of a link, and every transition between them.

use crate::error::UpstreamError;
use crate::session::connection::Connection;
use std::sync::Arc;

/// Whether calls can be made, and what came of the last try. A retry leaves the state as it is until its own outcome is
/// known.
#[derive(Clone)]
pub(crate) enum LinkState<C = Arc<Connection>> {
    /// Nobody needs it; the next call connects.
    Idle,
    /// Nothing has come of it yet. On demand: it was idle before, so that nothing is known to be wrong.
    Connecting {
        on_demand: bool,
    },
    Up(C),
    /// The last try failed; there will be another.
    BackingOff(UpstreamError),
    /// The server did not take the login; callers are told at once.
    Refused(UpstreamError),
    /// Ended by wish, until somebody needs it.
    Suspended {
        is_closed: bool,
    },
    Stopped,
}

#[derive(Clone)]
pub(crate) enum LinkEvent<C = Arc<Connection>> {
    /// Somebody wants a connection.
    Needed,
    AttemptStarted,
    Connected(C),
    /// A try failed.
    Failed(UpstreamError),
    /// The login was not taken.
    Refused(UpstreamError),
    /// What came of the last try counts no longer.
    FailureCleared,
    ConnectionLost,
    /// Nobody has used the connection for its idle time.
    IdleTimeout,
    /// Nothing is open, and nobody waits.
    Closed,
    Suspended,
    Stopped,
}

impl<C> LinkState<C> {
    /// The state after an event; nothing for an event that is impossible or means nothing in this state.
    pub(crate) fn after(&self, event: LinkEvent<C>) -> Option<Self> {
        use LinkEvent as On;
        Some(match (self, event) {
            (Self::Stopped, _) => return None,
            (_, On::Stopped) => Self::Stopped,
            (Self::Suspended { is_closed }, On::Needed) => Self::Connecting { on_demand: *is_closed },
            (Self::Suspended { is_closed: false }, On::Closed) => Self::Suspended { is_closed: true },
            // Whatever a try or a connection still says: it has been ended.
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

    /// Whether nothing is or was to be done before the next call: a start on demand has not come to anything yet.
    pub(crate) fn is_dormant(&self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Connecting { on_demand: true } | Self::Suspended { is_closed: true }
        )
    }

    /// Whether nothing is open, and nothing to be done until somebody needs it.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self, Self::Idle | Self::Suspended { is_closed: true })
    }
}

impl LinkState {
    /// Whether a call knows enough: it has a connection, or will get none.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Self::Up(connection) => !connection.closed.is_set(),
            Self::Refused(_) | Self::Suspended { .. } | Self::Stopped => true,
            Self::Connecting { .. } | Self::BackingOff(_) | Self::Idle => false,
        }
    }

    /// Whether one try is over.
    pub(crate) fn is_attempt_over(&self) -> bool {
        matches!(self, Self::BackingOff(_)) || self.is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states, as the columns of the table are named.
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
