//! Who calls, proven at the face.

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
        Self::named("local")
    }

    pub fn named(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), tenant: "default".to_owned(), scopes: Vec::new() }
    }
}
