//! Secret header that is sent to one origin only.

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

/// What happened to a credential.
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
            ToolError::invalid("auth_header_name is not a valid header name.")
                .hint("Use a name such as Authorization or X-Api-Key.")
        })?;
        if matches!(name.as_str(), "host" | "content-length" | "transfer-encoding" | "connection") {
            return Err(ToolError::invalid(format!("The header `{name}` cannot carry a credential."))
                .hint("Use a name such as Authorization or X-Api-Key."));
        }
        // The value is not repeated: it is a secret.
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
            ToolError::invalid("auth_header has characters that are invalid in a header.")
                .hint("Use one line of plain characters, such as `Bearer` and the token.")
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

    /// The secret value; only for redacting it in a response.
    pub fn value(&self) -> Option<&str> {
        self.value.to_str().ok()
    }

    /// Adds itself to a request to its own origin.
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
