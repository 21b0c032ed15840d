//! The servers of the settings, as a grant for the tools.

use octo_model::{Caller, ToolError};
use octo_oauth::{LoginSharing, Logins};
use octo_toolkit::{Capabilities, Grant, Source};
use octo_upstream::Upstream;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Program,
    Url,
    Document,
}

/// One server of the settings.
#[derive(Clone)]
pub struct ServerEntry {
    /// What people call it.
    pub title: Option<String>,
    pub kind: ServerKind,
    /// Why it is not used, when it is not.
    pub disabled: Option<String>,
    /// Whether somebody has to log in, and for whom.
    pub login: Option<LoginSharing>,
    /// As the catalogue shows it.
    pub source: Option<Arc<dyn Source>>,
    /// The connection, where there can be one.
    pub upstream: Option<Arc<Upstream>>,
}

/// All servers of the settings.
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

    /// Tells of a server, in place of what was told before; gives back what that was.
    pub fn put(&self, name: &str, known: ServerEntry) -> Option<ServerEntry> {
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), known)
    }

    pub fn remove(&self, name: &str) -> Option<ServerEntry> {
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// Everything, by name.
    pub fn all(&self) -> BTreeMap<String, ServerEntry> {
        self.0.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, name: &str) -> Result<ServerEntry, ToolError> {
        let known = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let hint = if names.is_empty() {
                "No server is in the settings yet: `octoprox servers add` adds one.".to_owned()
            } else {
                format!("The servers are: {}.", names.join(", "))
            };
            ToolError::not_found(format!("There is no server `{name}`.")).hint(hint)
        })
    }

    /// The connection of a server that is used.
    pub(crate) fn upstream(&self, name: &str) -> Result<Arc<Upstream>, ToolError> {
        let known = self.get(name)?;
        if let Some(why) = known.disabled {
            return Err(ToolError::unavailable(format!("`{name}` is not used: {why}."))
                .hint("Its operator can change that in the settings."));
        }
        known.upstream.ok_or_else(|| {
            ToolError::invalid(format!("`{name}` is described by a document and has no connection."))
                .hint("Call its tools; nothing has to be connected first.")
        })
    }

    /// A server that somebody can log in at. Who logs in for everybody has to be an administrator.
    pub(crate) fn login_sharing(&self, name: &str, caller: &Caller) -> Result<LoginSharing, ToolError> {
        let whose = self.get(name)?.login.ok_or_else(|| {
            ToolError::invalid(format!("Nobody has to log in at `{name}`.")).hint(
                "If it wants a login nevertheless, its entry in the settings needs `auth`, such as `auth: {type: oauth2-pkce}`.",
            )
        })?;
        if whose == LoginSharing::Shared {
            require_admin(caller, "log in for everybody")?;
        }
        Ok(whose)
    }
}

/// Starting and ending connections concerns everybody who uses the server.
pub(crate) fn require_admin(caller: &Caller, what: &str) -> Result<(), ToolError> {
    if caller.is_admin() {
        return Ok(());
    }
    Err(ToolError::denied(format!("Only an administrator may {what}."))
        .hint("Ask the operator; their token has the scope `admin`."))
}
