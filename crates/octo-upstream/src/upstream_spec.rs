//! What the settings say of one upstream.

use octo_grants::{Command, Exec, ListingCache, Net};
use octo_model::Caller;
use octo_oauth::Accounts;
use octo_wire::Era;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// How the server is reached.
#[derive(Clone)]
pub enum TransportSpec {
    /// A program that speaks on its standard streams.
    Stdio(Command),
    /// Streamable HTTP. The headers go with every request and may hold secrets.
    Http { url: String, headers: BTreeMap<String, String> },
}

/// When the connection is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConnectMode {
    /// At the start, and again whenever it is lost.
    #[default]
    Always,
    /// With the first call, and again with the first one after it was idle. A server of which no list is known yet is
    /// started once for its list.
    OnDemand,
}

/// Who shares a connection, and with it a program or a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Share {
    /// Everybody the same one.
    #[default]
    One,
    /// Up to so many, each call with the one that has least to do.
    Pool(usize),
    /// Each caller has one.
    PerCaller,
    /// Each client's session has one.
    PerSession,
}

/// How much is asked of the server at most; who comes later waits, each caller in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Calls that begin within any minute.
    pub per_minute: Option<usize>,
    /// Calls under way.
    pub in_flight: Option<usize>,
}

/// When calls fail at once rather than after a wait, because the last ones all failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSpec {
    /// So many failures in a row; 0 for never.
    pub max_failures: u32,
    /// The first pause; it doubles up to ten times this for as long as the server stays ill.
    pub pause: Duration,
}

/// A sandbox of its own. The roots, and where output is kept, are those of `exec`.
#[derive(Clone)]
pub struct SandboxSpec {
    pub exec: Exec,
    pub network: bool,
}

/// One upstream with its limits.
#[derive(Clone)]
pub struct UpstreamSpec {
    pub name: String,
    pub transport: TransportSpec,
    /// The way to servers over HTTP. The server's own address is allowed because it was named; see [`Net::named`].
    pub net: Net,
    /// The logins with which the server is spoken to. Where each caller has their own, each has a connection of their own as
    /// well, whatever `share` says.
    pub accounts: Option<Accounts>,
    /// Whose login lists the server at a start, where each has their own and nothing is known of it yet.
    pub listing_caller: Option<Caller>,
    /// The longest that one call may take.
    pub call_timeout: Duration,
    /// The longest that one page of a list may take.
    pub list_timeout: Duration,
    /// The longest that starting and agreeing on a revision may take.
    pub start_timeout: Duration,
    /// Messages past this many bytes are refused.
    pub max_message_bytes: usize,
    /// Spoken without asking first; found out when it is not set.
    pub era: Option<Era>,
    pub connect: ConnectMode,
    /// A connection that was made on demand, or beside the first, ends when nobody has used it for so long.
    pub idle_timeout: Duration,
    /// A server that nobody has called for so long is asked whether it is still there; never, when it is not set.
    pub ping_interval: Option<Duration>,
    pub share: Share,
    pub limits: CallLimits,
    pub breaker: BreakerSpec,
    /// The program and arguments that start the launcher, through which programs end with the hub however it ends. Without
    /// one, only a hub that ends in good order takes them along.
    pub launcher: Vec<OsString>,
    /// Where the program is shut in, when it shall be.
    pub sandbox: Option<SandboxSpec>,
    /// What the server listed last, for a start on demand.
    pub listing_cache: Option<ListingCache>,
}

impl UpstreamSpec {
    pub fn new(name: impl Into<String>, link: TransportSpec) -> Self {
        Self {
            name: name.into(),
            transport: link,
            net: Net::default(),
            accounts: None,
            listing_caller: None,
            call_timeout: Duration::from_secs(300),
            list_timeout: Duration::from_secs(30),
            start_timeout: Duration::from_secs(30),
            max_message_bytes: 256 << 20,
            era: None,
            connect: ConnectMode::Always,
            idle_timeout: Duration::from_secs(600),
            ping_interval: Some(Duration::from_secs(30)),
            share: Share::One,
            limits: CallLimits::default(),
            breaker: BreakerSpec { max_failures: 5, pause: Duration::from_secs(15) },
            launcher: Vec::new(),
            sandbox: None,
            listing_cache: None,
        }
    }

    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, TransportSpec::Http { url: url.into(), headers: BTreeMap::new() })
    }

    pub fn stdio(name: impl Into<String>, command: Command) -> Self {
        Self::new(name, TransportSpec::Stdio(command))
    }
}
