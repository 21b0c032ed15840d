//! Settings of one upstream.

use crate::transport::message_memory::{LARGE_BUDGET_BYTES, MessageMemory};
use octo_grants::exec::{NetworkAccess, ServerAccess};
use octo_grants::{Command, Exec, Net};
use octo_model::{BoxFuture, Caller, Principal, ToolError, sha256_hex};
use octo_oauth::Accounts;
use octo_ports::Listings;
use octo_wire::Era;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the server is reached.
#[derive(Clone)]
pub enum TransportSpec {
    /// Child process that speaks over stdin and stdout.
    Stdio(Command),
    /// Streamable HTTP. The headers are sent with every request and may contain secrets.
    Http { url: String, headers: BTreeMap<String, String> },
}

/// When to connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConnectMode {
    /// At startup, and again whenever the connection is lost.
    #[default]
    Always,
    /// On the first call, and again on the first call after an idle time. A server without a cached listing is started
    /// once to list its items.
    OnDemand,
}

/// Who shares a link, and with it a process or a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Share {
    /// One link for all callers.
    #[default]
    One,
    /// Up to this many links; each call takes the least busy one.
    Pool(usize),
    /// One link per caller.
    PerCaller,
    /// One link per client session.
    PerSession,
}

/// Limits of calls to the server. Further calls wait in a fair queue, each caller in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Calls started within any minute.
    pub per_minute: Option<usize>,
    /// Calls at the same time.
    pub in_flight: Option<usize>,
}

/// When calls are refused immediately because the last ones all failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSpec {
    /// Consecutive failures until calls are refused; 0 disables the breaker.
    pub max_failures: u32,
    /// First pause; doubles up to ten times this while the server keeps failing.
    pub pause: Duration,
}

/// Own sandbox of the server. The roots and the output directory are those of `exec`.
#[derive(Clone)]
pub struct SandboxSpec {
    pub exec: Exec,
    pub network: NetworkAccess,
    /// Directory of the hub with the home directories of the process: one for all callers that share it, and one for each
    /// caller with a process of its own.
    pub homes: PathBuf,
}

/// Home directory of a process that callers share.
pub const SHARED_HOME: &str = "shared";

impl SandboxSpec {
    /// What a process for this caller may use.
    pub(crate) fn access(&self, owner: Option<&Principal>, readable: Vec<PathBuf>) -> ServerAccess {
        let home = match owner {
            None => SHARED_HOME.to_owned(),
            Some(Principal { tenant, subject }) => {
                let mut name = sha256_hex(format!("{tenant}\0{subject}").as_bytes());
                name.truncate(32);
                format!("caller-{name}")
            }
        };
        ServerAccess { network: self.network.clone(), readable, home: self.homes.join(home) }
    }
}

/// One upstream with its limits.
#[derive(Clone)]
pub struct UpstreamSpec {
    pub name: String,
    pub transport: TransportSpec,
    /// Egress for HTTP. The server's own address is allowed because it is configured; see [`Net::for_configured_host`].
    pub net: Net,
    /// Logins for the server. With personal logins each caller also has its own link, regardless of `share`.
    pub accounts: Option<Accounts>,
    /// Caller whose login lists the server at startup, with personal logins and no cached listing.
    pub listing_caller: Option<Caller>,
    /// Timeout of a call.
    pub call_timeout: Duration,
    /// Timeout of one page of a list.
    pub list_timeout: Duration,
    /// Timeout of starting and negotiating a revision.
    pub start_timeout: Duration,
    /// Of a program that downloads itself at its first start, such as `npx`: timeout of that start, if it is longer. Ending it
    /// earlier would leave a broken cache.
    pub install_timeout: Option<Duration>,
    /// Larger messages are rejected; at most 64 MiB.
    pub max_message_bytes: usize,
    /// Budget for its messages, together with those of other servers.
    pub message_memory: MessageMemory,
    /// Era to use without negotiation; negotiated if unset.
    pub era: Option<Era>,
    /// Use HTTP+SSE without trying streamable HTTP first.
    pub sse: bool,
    pub connect: ConnectMode,
    /// Idle time after which an on-demand or additional connection is closed.
    pub idle_timeout: Duration,
    /// Idle time after which the server is pinged; unset disables pings.
    pub ping_interval: Option<Duration>,
    pub share: Share,
    pub limits: CallLimits,
    pub breaker: BreakerSpec,
    /// Program and arguments of the launcher, which ends the processes with the hub however the hub ends. Without it
    /// they end only on a clean shutdown.
    pub launcher: Vec<OsString>,
    /// Sandbox of the process, if any.
    pub sandbox: Option<SandboxSpec>,
    /// Package that contains the program, looked up before each start of the process.
    pub package: Option<PackageLookup>,
    /// Prepares each start of the process, or refuses it.
    pub prepare_start: Option<PrepareStart>,
    /// Cache of the last listing, for on-demand starts.
    pub listing_cache: Option<Listings>,
}

/// Program of an installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledProgram {
    pub path: PathBuf,
    /// Directories that it reads, also in a sandbox.
    pub readable: Vec<PathBuf>,
}

/// Finds the program of a package, or why it may not start now.
pub type PackageLookup =
    Arc<dyn Fn() -> BoxFuture<'static, Result<InstalledProgram, ToolError>> + Send + Sync>;

/// Prepares the start of a process, such as its directory. It may block.
pub type PrepareStart = Arc<dyn Fn() -> Result<(), ToolError> + Send + Sync>;

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
            install_timeout: None,
            max_message_bytes: LARGE_BUDGET_BYTES,
            message_memory: MessageMemory::of_process(),
            era: None,
            sse: false,
            connect: ConnectMode::Always,
            idle_timeout: Duration::from_secs(600),
            ping_interval: Some(Duration::from_secs(30)),
            share: Share::One,
            limits: CallLimits::default(),
            breaker: BreakerSpec { max_failures: 5, pause: Duration::from_secs(15) },
            launcher: Vec::new(),
            sandbox: None,
            package: None,
            prepare_start: None,
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
