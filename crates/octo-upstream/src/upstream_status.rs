//! How a server is doing, for whoever looks after it.

use crate::error::UpstreamError;
use crate::link::{Link, LinkState};
use octo_model::{JsonObject, Kind};
use octo_toolkit::SourceState;
use octo_wire::Era;

/// No name or version that a server gives itself is shown for longer.
const MAX_SERVER_INFO_LEN: usize = 100;

/// How it stands with the connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// Nobody needs it; the next call connects.
    Idle,
    Starting,
    Connected,
    NeedsLogin,
    /// It cannot be used, and why.
    Down(String),
}

impl ConnectionState {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Idle => "asleep",
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::NeedsLogin => "needs login",
            Self::Down(_) => "down",
        }
    }

    /// Of one connection.
    pub(crate) fn of(inner: &Link) -> Self {
        let down = match &inner.listing.borrow().state {
            SourceState::Down(why) => Some(Self::Down(why.clone())),
            SourceState::Starting | SourceState::Ready | SourceState::Off(_) => None,
        };
        match &*inner.state.borrow() {
            LinkState::Up(_) => down.unwrap_or(Self::Connected),
            LinkState::Idle => Self::Idle,
            LinkState::Connecting => down.unwrap_or(Self::Starting),
            LinkState::BackingOff(why) => down.unwrap_or_else(|| Self::Down(why.to_string())),
            // Somebody has logged in before, and what they saw is listed.
            LinkState::Refused(UpstreamError::Unauthorized(_))
                if inner.is_anonymous() && inner.is_ready() =>
            {
                Self::Idle
            }
            LinkState::Refused(UpstreamError::Unauthorized(_)) => Self::NeedsLogin,
            LinkState::Refused(UpstreamError::CredentialUnusable(error))
                if error.kind == Kind::Unauthorized =>
            {
                Self::NeedsLogin
            }
            LinkState::Refused(why) => Self::Down(why.to_string()),
            LinkState::Stopped => Self::Down("stopped".to_owned()),
        }
    }
}

/// What a server calls itself. It is a stranger's word: nothing may be decided by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: Option<String>,
}

impl ServerInfo {
    pub(crate) fn parse(info: &JsonObject) -> Option<Self> {
        let name = info.text("name").map(|name| sanitize(&name)).filter(|name| !name.is_empty())?;
        let version = info.text("version").map(|version| sanitize(&version)).filter(|text| !text.is_empty());
        Some(Self { name, version })
    }
}

/// Without anything that could hide, or move what is shown around it.
fn sanitize(text: &str) -> String {
    let shown = |c: &char| c.is_alphanumeric() || c.is_ascii_graphic() || *c == ' ';
    text.chars().filter(shown).take(MAX_SERVER_INFO_LEN).collect::<String>().trim().to_owned()
}

/// All connections to one server, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamStatus {
    pub connection: ConnectionState,
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

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    #[test]
    fn a_name_is_shown_without_what_could_hide_in_it() {
        for (info, name, version) in [
            (json!({"name": "files", "version": "1.2.0"}), Some("files"), Some("1.2.0")),
            (json!({"name": " \u{1b}[31mred\u{202e}\u{200b} ", "version": "\u{7}"}), Some("[31mred"), None),
            (json!({"name": "Größe 2"}), Some("Größe 2"), None),
            (json!({"name": "\n"}), None, None),
            (json!({"version": "1"}), None, None),
        ] {
            let about = ServerInfo::parse(&Json::from(info.clone()).members().unwrap());
            assert_eq!(about.as_ref().map(|about| about.name.as_str()), name, "{info}");
            assert_eq!(about.and_then(|about| about.version).as_deref(), version, "{info}");
        }
        let long = Json::from(json!({"name": "x".repeat(1000)})).members().unwrap();
        assert_eq!(ServerInfo::parse(&long).unwrap().name.len(), MAX_SERVER_INFO_LEN);
    }
}
