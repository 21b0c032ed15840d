//! What the settings say of one upstream.

use octo_grants::{Command, Net};
use octo_wire::Era;
use std::collections::BTreeMap;
use std::time::Duration;

/// How the server is reached.
#[derive(Clone)]
pub enum Link {
    /// A program that speaks on its standard streams.
    Child(Command),
    /// Streamable HTTP. The headers go with every request and may hold secrets.
    Http { url: String, headers: BTreeMap<String, String> },
}

/// One upstream with its limits.
#[derive(Clone)]
pub struct Spec {
    pub name: String,
    pub link: Link,
    /// The way to servers over HTTP. The server's own address is allowed because it was named; see [`Net::named`].
    pub net: Net,
    /// The longest that one call may take.
    pub call_timeout: Duration,
    /// The longest that one page of a list may take.
    pub list_timeout: Duration,
    /// The longest that starting and agreeing on a revision may take.
    pub start_timeout: Duration,
    /// Messages past this many bytes are refused.
    pub max_message: usize,
    /// Spoken without asking first; found out when it is not set.
    pub era: Option<Era>,
}

impl Spec {
    pub fn new(name: impl Into<String>, link: Link) -> Self {
        Self {
            name: name.into(),
            link,
            net: Net::default(),
            call_timeout: Duration::from_secs(300),
            list_timeout: Duration::from_secs(30),
            start_timeout: Duration::from_secs(30),
            max_message: 256 << 20,
            era: None,
        }
    }

    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, Link::Http { url: url.into(), headers: BTreeMap::new() })
    }

    pub fn child(name: impl Into<String>, command: Command) -> Self {
        Self::new(name, Link::Child(command))
    }
}
