//! Names of what nodes serve, and the subjects of messages to it.

use crate::Subject;
use serde::{Deserialize, Serialize};
use std::fmt;

/// First token of every subject, and the version of the subjects.
const ROOT: &str = "octoprox.1";
/// Maximum bytes of a name. A subject has few names and is limited to 4 KB.
const MAX_NAME_LEN: usize = 256;

/// A name of no or too many bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a name in the fleet has 1 to {MAX_NAME_LEN} bytes")]
pub struct InvalidName;

/// What is served at one place: the files of a workspace, a browser, a process of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceAddress {
    /// The workspace, the browser or the server.
    instance: String,
    /// Name of the source there.
    source: String,
}

impl SourceAddress {
    pub fn new(instance: impl Into<String>, source: impl Into<String>) -> Result<Self, InvalidName> {
        let (instance, source) = (instance.into(), source.into());
        check_name(&instance)?;
        check_name(&source)?;
        Ok(Self { instance, source })
    }

    pub fn instance(&self) -> &str {
        &self.instance
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Requests to whoever serves the source: which process does, and what is listed.
    pub(crate) fn listing_requests(&self) -> Subject {
        self.subject("call")
    }

    /// Requests to one process that serves the source. Calls go to one process: of two that believe to serve, only the one
    /// with the newer lease is known to the others.
    pub(crate) fn requests_to(&self, server: &str) -> Subject {
        self.listing_requests().child(server)
    }

    /// Events of the source, and notices that its listing has changed.
    pub(crate) fn notices(&self) -> Subject {
        self.subject("notice")
    }

    fn subject(&self, kind: &str) -> Subject {
        Subject::new(format!("{ROOT}.{kind}.{}.{}", ServiceToken(&self.instance), ServiceToken(&self.source)))
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.instance, self.source)
    }
}

/// Checks the name of a node, an instance or a source.
pub(crate) fn check_name(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() || name.len() > MAX_NAME_LEN { Err(InvalidName) } else { Ok(()) }
}

/// Messages to one node.
pub(crate) fn inbox_of(node: &str) -> Subject {
    Subject::new(format!("{ROOT}.inbox.{}", ServiceToken(node)))
}

/// Requests for the status of every node.
pub(crate) fn status_requests() -> Subject {
    Subject::new(format!("{ROOT}.status"))
}

/// Messages to all fronts.
pub(crate) fn front_messages() -> Subject {
    Subject::new(format!("{ROOT}.fronts"))
}

/// Claims of a service.
pub(crate) fn claims_of(service: &str) -> Subject {
    Subject::new(format!("{ROOT}.claim.{}", ServiceToken(service)))
}

/// Scope of what all nodes may say. No name of a service has a `+` as a token.
pub(crate) const STATUS_SCOPE: &str = "+status";
const FRONTS_SCOPE: &str = "+fronts";
const OTHER_SCOPE: &str = "+";

/// The service that a message is about, as a token of its subject. A reply address has that of its request.
pub(crate) fn scope_of(subject: &Subject) -> &str {
    let rest = subject.as_str().strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('.'));
    let mut tokens = rest.unwrap_or_default().split('.');
    let scope = match tokens.next() {
        Some("call" | "notice" | "claim") => tokens.next(),
        // After the node and the number of the inbox.
        Some("inbox") => tokens.nth(2),
        Some("status") => Some(STATUS_SCOPE),
        Some("fronts") => Some(FRONTS_SCOPE),
        _ => None,
    };
    scope.unwrap_or(OTHER_SCOPE)
}

/// A name as one token of a subject. Letters, digits, `_` and `-` stay as they are; other bytes become `=` and two
/// digits.
pub(crate) struct ServiceToken<'a>(pub(crate) &'a str);

impl fmt::Display for ServiceToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "={byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_tokens() {
        let rows = [
            ("files", "files"),
            ("a.b", "a=2eb"),
            (">", "=3e"),
            ("*", "=2a"),
            ("a b\r\n", "a=20b=0d=0a"),
            ("=3e", "=3d3e"),
            ("é", "=c3=a9"),
        ];
        for (name, token) in rows {
            let address = SourceAddress::new(name, "git").unwrap();
            assert_eq!(address.listing_requests().as_str(), format!("octoprox.1.call.{token}.git"));
            assert_eq!(inbox_of(name).as_str(), format!("octoprox.1.inbox.{token}"));
        }
    }

    #[test]
    fn subjects_have_the_scope_of_their_service() {
        let address = SourceAddress::new("workspace/a.b", "git").unwrap();
        let inbox = inbox_of("front.1").child("random");
        for (subject, scope) in [
            (address.requests_to("server"), "workspace=2fa=2eb"),
            (address.notices(), "workspace=2fa=2eb"),
            (claims_of("workspace/a.b"), "workspace=2fa=2eb"),
            (inbox.child("workspace=2fone").child("token"), "workspace=2fone"),
            (inbox.child(STATUS_SCOPE).child("token"), STATUS_SCOPE),
            (status_requests(), STATUS_SCOPE),
            (front_messages(), FRONTS_SCOPE),
            (SourceAddress::new("+status", "x").unwrap().notices(), "=2bstatus"),
            (inbox, OTHER_SCOPE),
            (Subject::new("hostile.call.workspace=2fone"), OTHER_SCOPE),
            (Subject::new("octoprox.1call.workspace=2fone"), OTHER_SCOPE),
            (Subject::new(""), OTHER_SCOPE),
        ] {
            assert_eq!(scope_of(&subject), scope, "{subject}");
        }
    }

    #[test]
    fn names_have_a_length() {
        assert_eq!(SourceAddress::new("", "git"), Err(InvalidName));
        assert_eq!(SourceAddress::new("w", "g".repeat(257)), Err(InvalidName));
        assert!(SourceAddress::new("w", "g".repeat(256)).is_ok());
    }
}
