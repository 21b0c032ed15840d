//! Views of servers and logins.

use crate::server_registry::{ServerEntry, ServerKind, Servers};
use octo_model::{Caller, ToolError};
use octo_oauth::{LoginSharing, LoginState};
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_upstream::{Era, ServerInfo, ServerStatus, UpstreamReport};
use schemars::JsonSchema;
use serde::Serialize;

/// State of a server.
#[derive(Serialize, JsonSchema)]
pub struct ServerView {
    /// Name in the settings, the prefix of its tools' names.
    pub server: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Kind: program, address or document.
    pub kind: &'static str,
    /// State: connected, asleep (the next call starts it), starting, down, needs_login, or off.
    pub state: &'static str,
    /// Why it is down or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of tools.
    pub tools: usize,
    /// Software name that it declares, once connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Protocol era: legacy (the handshake of 2025) or modern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<&'static str>,
    /// Active calls.
    pub in_flight: usize,
    /// State of the caller's login, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginView>,
    /// Last lines of its program on standard error; for administrators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
}

/// Maximum lines of standard error.
const MAX_STDERR_LINES: usize = 10;

impl ServerView {
    pub(crate) async fn of(servers: &Servers, name: &str, known: &ServerEntry, caller: &Caller) -> Self {
        let report = known.upstream.as_ref().map(|upstream| upstream.report());
        let refuses = matches!(&report, Some(report) if matches!(report.status, ServerStatus::NeedsLogin(_)));
        let login = match known.login {
            Some(_) => LoginView::of(servers, name, caller).await.ok(),
            None => None,
        };
        let login =
            login.filter(|login| known.requires_login || refuses || login.state != LoginState::None.as_str());
        let status = status(known, report.as_ref(), login.as_ref());
        let tools = known.source.as_ref().map_or(0, |source| source.listing().borrow().listing.tools.len());
        let said = known.upstream.as_ref().filter(|_| caller.is_admin()).map(|upstream| upstream.stderr());
        let mut said = said.unwrap_or_default();
        said.drain(..said.len().saturating_sub(MAX_STDERR_LINES));
        Self {
            server: name.to_owned(),
            title: known.title.clone(),
            kind: match known.kind {
                ServerKind::Program => "program",
                ServerKind::Url => "address",
                ServerKind::Document => "document",
            },
            state: status.as_str(),
            reason: status.reason().map(|reason| visible(reason.to_owned())),
            tools,
            software: report
                .as_ref()
                .and_then(|report| report.server_info.as_ref())
                .map(software_label)
                .map(visible),
            era: report.as_ref().and_then(|report| report.era).map(Era::as_str),
            in_flight: report.map_or(0, |report| report.calls),
            login,
            said: said.into_iter().map(visible).collect(),
        }
    }
}

/// Text that a server controls, without characters that only a model sees.
pub(crate) fn visible(text: String) -> String {
    strip_hidden_owned(text, &mut 0)
}

fn status(known: &ServerEntry, report: Option<&UpstreamReport>, login: Option<&LoginView>) -> ServerStatus {
    if let Some(why) = &known.disabled {
        return ServerStatus::Off(why.clone());
    }
    if let Some(login) = login.filter(|login| known.requires_login && !login.connected) {
        return ServerStatus::NeedsLogin(login.reason.clone());
    }
    if let Some(report) = report {
        return report.status.clone();
    }
    let source = known.source.as_ref().map(|source| source.listing().borrow().state.clone());
    source.map_or(ServerStatus::Starting, ServerStatus::from)
}

fn software_label(about: &ServerInfo) -> String {
    match &about.version {
        Some(version) => format!("{} {version}", about.name),
        None => about.name.clone(),
    }
}

/// State of a login.
#[derive(Default, Serialize, JsonSchema)]
pub struct LoginView {
    /// Whether the server can be used with it now.
    pub connected: bool,
    /// State: none, waiting (for the person), connected, or lost.
    pub state: &'static str,
    /// Owner: person (each caller has their own) or shared (one for all).
    pub whose: &'static str,
    /// The authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Scopes of the login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Scopes that the server demands and the login lacks: log in again to add them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Seconds until the current token expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<i64>,
    /// Whether it is refreshed automatically.
    pub renews: bool,
    /// Seconds until a pending login expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<i64>,
    /// Why the login was lost, or why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl LoginView {
    pub(crate) async fn of(servers: &Servers, name: &str, caller: &Caller) -> Result<Self, ToolError> {
        let whose = servers.get(name)?.login.unwrap_or_default();
        let status = servers.logins().status(caller, name).await?;
        Ok(Self {
            connected: status.state == LoginState::Connected,
            state: status.state.as_str(),
            whose: match whose {
                LoginSharing::PerCaller => "person",
                LoginSharing::Shared => "shared",
            },
            issuer: status.issuer,
            scopes: status.scopes,
            missing: status.missing,
            expires_in: status.expires_in,
            renews: status.refreshes,
            waits: status.pending_secs,
            reason: status.reason.map(visible),
        })
    }
}
