//! How a server is doing, for whoever looks after it.

use crate::session::server_info::ServerInfo;
use octo_toolkit::SourceState;
use octo_wire::Era;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The status of a server, as tools, the admin API, commands and `doctor` show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// Nothing is known to be wrong; nobody has asked the server itself.
    Ready,
    /// Nobody needs it; the next call connects.
    Idle,
    Starting,
    Connected,
    /// Somebody has to log in, and why the last login is no longer good or came to nothing.
    NeedsLogin(Option<String>),
    /// It cannot be used, and why.
    Down(String),
    /// It is not used, and why.
    Off(String),
    /// A variable of its settings is not set, and what to do.
    Waiting(String),
    /// Its program is not installed, and what to do.
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

/// Of a source that is always there, such as a document: what it lists is all that can be said.
impl From<SourceState> for ServerStatus {
    fn from(state: SourceState) -> Self {
        match state {
            SourceState::Ready => Self::Connected,
            SourceState::Down(why) | SourceState::Off(why) => Self::Down(why),
            SourceState::Starting => Self::Starting,
        }
    }
}

/// Written as its `state` and, where there is one, the reason.
impl Serialize for ServerStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("state", self.as_str())?;
        if let Some(why) = self.reason() {
            members.serialize_entry("why", why)?;
        }
        members.end()
    }
}

/// All connections to one server, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamReport {
    pub status: ServerStatus,
    pub era: Option<Era>,
    /// What it said of itself when it was last connected.
    pub server_info: Option<ServerInfo>,
    /// Its processes, where it is a program; each stands for those that it has started itself.
    pub pids: Vec<u32>,
    /// Calls under way.
    pub calls: usize,
    /// The last calls all failed, and new ones are refused for a while.
    pub is_breaker_open: bool,
}
