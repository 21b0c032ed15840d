//! A secret header that goes to one origin and to no other.

use crate::Request;
use http::{HeaderName, HeaderValue};
use octo_toolkit::ToolError;
use url::Url;

#[derive(Clone)]
pub struct Credential {
    name: HeaderName,
    value: HeaderValue,
    origin: String,
}

/// What became of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialOutcome {
    Added,
    /// The caller has set this header itself.
    SetByCaller,
    /// The request goes to another origin.
    Withheld,
}

impl Credential {
    pub fn new(name: &str, value: &str, origin: &Url) -> Result<Self, ToolError> {
        let name = HeaderName::try_from(name.trim()).map_err(|_| {
            ToolError::invalid("auth_header_name is no name of a header.")
                .hint("Give a name such as Authorization or X-Api-Key.")
        })?;
        if matches!(name.as_str(), "host" | "content-length" | "transfer-encoding" | "connection") {
            return Err(ToolError::invalid(format!("The header `{name}` carries no credential."))
                .hint("Give a name such as Authorization or X-Api-Key."));
        }
        // The value is not repeated: it is a secret.
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
            ToolError::invalid("auth_header has characters that no header can hold.")
                .hint("Give one line of plain characters, such as `Bearer` and the token.")
        })?;
        value.set_sensitive(true);
        Ok(Self { name, value, origin: origin.origin().ascii_serialization() })
    }

    pub fn header(&self) -> &str {
        self.name.as_str()
    }

    /// `https://api.example.com`
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What it sends; only to take it out of an answer again.
    pub fn value(&self) -> Option<&str> {
        self.value.to_str().ok()
    }

    /// Adds itself to a request of its own origin.
    pub fn add(&self, request: &mut Request) -> CredentialOutcome {
        if request.url.origin().ascii_serialization() != self.origin {
            return CredentialOutcome::Withheld;
        }
        if request.headers.contains_key(&self.name) {
            return CredentialOutcome::SetByCaller;
        }
        request.headers.insert(self.name.clone(), self.value.clone());
        CredentialOutcome::Added
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({} for {})", self.name, self.origin)
    }
}
