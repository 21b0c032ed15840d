//! Callers, as verified by the frontend.

use serde::{Deserialize, Serialize};

/// The scope of administrators, who may start, change and log in servers for all callers.
pub const ADMIN: &str = "admin";

/// The tenant of callers whose token names none.
pub const DEFAULT_TENANT: &str = "default";

/// The user of the machine itself. No token has this name: it would be that user.
pub const LOCAL_SUBJECT: &str = "local";

/// A person or service. Logins, results, runs, limits and cached replies belong to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Principal {
    pub tenant: String,
    /// One caller within the tenant.
    pub subject: String,
}

impl Principal {
    pub fn new(tenant: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), subject: subject.into() }
    }
}

/// `tenant/subject`, as rules name them. A tenant never contains a slash.
impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.tenant, self.subject)
    }
}

/// A principal with the scopes of its token. Created only by frontends, after verification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    pub principal: Principal,
    pub scopes: Vec<String>,
}

impl Caller {
    /// The user of the machine itself: the command line, stdio, or loopback without tokens.
    pub fn local() -> Self {
        Self { scopes: vec![ADMIN.to_owned()], ..Self::named(LOCAL_SUBJECT) }
    }

    /// A subject of the default tenant, without scopes.
    pub fn named(subject: impl Into<String>) -> Self {
        Principal::new(DEFAULT_TENANT, subject).into()
    }

    /// Returns whether this is the same principal with at least the scopes of the other.
    pub fn covers(&self, other: &Self) -> bool {
        self.principal == other.principal && other.scopes.iter().all(|scope| self.scopes.contains(scope))
    }

    pub fn is_admin(&self) -> bool {
        self.scopes.iter().any(|scope| scope == ADMIN)
    }
}

/// Without scopes.
impl From<Principal> for Caller {
    fn from(principal: Principal) -> Self {
        Self { principal, scopes: Vec::new() }
    }
}
