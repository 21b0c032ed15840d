//! Status of a server.

use crate::session::server_info::ServerInfo;
use octo_toolkit::SourceState;
use octo_wire::Era;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Status of a server, as shown by tools, the admin API, commands and `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// No problem is known; the server itself was not contacted.
    Ready,
    /// Not connected; the next call connects.
    Idle,
    Starting,
    Connected,
    /// A login is needed, with the reason if the last one was lost or failed.
    NeedsLogin(Option<String>),
    /// Unusable, with the reason.
    Down(String),
    /// Disabled, with the reason.
    Off(String),
    /// A variable or secret in its settings is not set, with what to do.
    Waiting(String),
    /// Its program is not installed, with what to do.
    Missing(String),
}

impl ServerStatus {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Idle => "asleep",
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::NeedsLogin(_) => "needs_login",
            Self::Down(_) => "down",
            Self::Off(_) => "off",
            Self::Waiting(_) => "waiting",
            Self::Missing(_) => "missing",
        }
    }

    /// Why it cannot be used, or what to do about it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Ready | Self::Idle | Self::Starting | Self::Connected => None,
            Self::NeedsLogin(why) => why.as_deref(),
            Self::Down(why) | Self::Off(why) | Self::Waiting(why) | Self::Missing(why) => Some(why),
        }
    }
}

/// For sources without a connection, such as documents: the state of the listing is all there is.
impl From<SourceState> for ServerStatus {
    fn from(state: SourceState) -> Self {
        match state {
            SourceState::Ready => Self::Connected,
            SourceState::Down(why) | SourceState::Off(why) => Self::Down(why),
            SourceState::Starting => Self::Starting,
        }
    }
}

/// Serialized as `state` and, if there is one, the `reason`.
impl Serialize for ServerStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("state", self.as_str())?;
        if let Some(why) = self.reason() {
            members.serialize_entry("reason", why)?;
        }
        members.end()
    }
}

/// Status of all links to one server, combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamReport {
    pub status: ServerStatus,
    pub era: Option<Era>,
    /// Name and version from the last connection.
    pub server_info: Option<ServerInfo>,
    /// Process ids of a stdio server; one per process tree.
    pub pids: Vec<u32>,
    /// Active calls.
    pub calls: usize,
    /// The last calls all failed; new ones are refused for a time.
    pub is_breaker_open: bool,
}
