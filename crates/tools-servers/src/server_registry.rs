//! Registry of the configured servers, as a grant for the tools.

use octo_model::{Caller, Remedy, ToolError};
use octo_oauth::{LoginSharing, Logins};
use octo_toolkit::{Capabilities, Grant, Source};
use octo_upstream::Upstream;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Program,
    Url,
    Document,
}

/// One configured server.
#[derive(Clone)]
pub struct ServerEntry {
    /// Display name.
    pub title: Option<String>,
    pub kind: ServerKind,
    /// Why it is disabled, if it is.
    pub disabled: Option<String>,
    /// Who shares the login, if it can have one.
    pub login: Option<LoginSharing>,
    /// Whether the settings require the login, before the server does.
    pub requires_login: bool,
    /// As listed in the catalogue.
    pub source: Option<Arc<dyn Source>>,
    /// The upstream, if it has a connection.
    pub upstream: Option<Arc<Upstream>>,
}

/// All configured servers.
#[derive(Clone)]
pub struct Servers(Arc<ServersState>);

struct ServersState {
    logins: Logins,
    entries: RwLock<BTreeMap<String, ServerEntry>>,
}

impl Grant for Servers {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Servers {
    pub fn new(logins: Logins) -> Self {
        Self(Arc::new(ServersState { logins, entries: RwLock::default() }))
    }

    pub fn logins(&self) -> &Logins {
        &self.0.logins
    }

    /// Registers a server, replacing an earlier entry; returns that entry.
    pub fn put(&self, name: &str, known: ServerEntry) -> Option<ServerEntry> {
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), known)
    }

    pub fn remove(&self, name: &str) -> Option<ServerEntry> {
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// All entries, by name.
    pub fn all(&self) -> BTreeMap<String, ServerEntry> {
        self.0.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, name: &str) -> Result<ServerEntry, ToolError> {
        let known = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let error = ToolError::not_found(format!("Server not found: `{name}`."));
            if names.is_empty() {
                error.hint("No server is configured yet.").remedy(Remedy::AddServer)
            } else {
                error.hint(format!("Configured servers: {}.", names.join(", ")))
            }
        })
    }

    /// Upstream of an enabled server.
    pub(crate) fn upstream(&self, name: &str) -> Result<Arc<Upstream>, ToolError> {
        let known = self.get(name)?;
        if let Some(why) = known.disabled {
            return Err(ToolError::unavailable(format!("`{name}` is disabled: {why}."))
                .hint("Ask the operator to enable it."));
        }
        known.upstream.ok_or_else(|| {
            ToolError::invalid(format!("`{name}` is an OpenAPI document and has no connection."))
                .hint("Call its tools directly.")
        })
    }

    /// Returns who shares the login of a server. Only administrators may log in for all.
    pub(crate) fn login_sharing(&self, name: &str, caller: &Caller) -> Result<LoginSharing, ToolError> {
        let whose = self.get(name)?.login.ok_or_else(|| {
            ToolError::invalid(format!("`{name}` needs no login.")).hint(
                "If it needs one nevertheless, add `auth` to its entry in the settings, such as `auth: {type: oauth2-pkce}`.",
            )
        })?;
        if whose == LoginSharing::Shared {
            require_admin(caller, "log in for all callers")?;
        }
        Ok(whose)
    }
}

/// Connecting and disconnecting affects all users of the server.
pub(crate) fn require_admin(caller: &Caller, what: &str) -> Result<(), ToolError> {
    if caller.is_admin() {
        return Ok(());
    }
    Err(ToolError::denied(format!("Only an administrator may {what}."))
        .hint("Ask the operator; their token has the scope `admin`."))
}
