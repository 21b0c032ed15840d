//! Who calls, proven at the face.

/// The scope of administrators, who may start, change and log in servers for everybody.
pub const ADMIN: &str = "admin";

/// A person or service. Only a face makes one, from what it has verified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    pub subject: String,
    pub tenant: String,
    pub scopes: Vec<String>,
}

impl Caller {
    /// Whoever uses the machine itself: the command line, stdio, or loopback without tokens.
    pub fn local() -> Self {
        Self { scopes: vec![ADMIN.to_owned()], ..Self::named("local") }
    }

    pub fn named(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), tenant: "default".to_owned(), scopes: Vec::new() }
    }

    /// Whether this is the same caller with at least the rights of the other.
    pub fn covers(&self, other: &Self) -> bool {
        (&self.tenant, &self.subject) == (&other.tenant, &other.subject)
            && other.scopes.iter().all(|scope| self.scopes.contains(scope))
    }

    pub fn is_admin(&self) -> bool {
        self.scopes.iter().any(|scope| scope == ADMIN)
    }
}
