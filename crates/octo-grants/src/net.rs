//! The only way out: one HTTP client for the whole binary. The address is checked when connecting, after resolving, on
//! every hop, so that a name that changes its answer finds nothing.

mod allow_list;
mod body;
mod configured_host;
mod dial;
mod egress_proxy;
mod headers;
mod host_queue;
mod http_send;
mod net_errors;
mod public_address;
mod redirect;
mod resolve;
mod robots;
mod secret_header;
mod url_check;

pub(crate) use dial::Dialler;
pub use egress_proxy::{EgressProxy, PortRelay};
pub use resolve::{ResolveFuture, Resolver};
pub use secret_header::secret_header;

use crate::connector::{Connector, tls_connector};
use crate::{Capabilities, Grant};
use allow_list::AllowList;
use bytes::Bytes;
use configured_host::ConfiguredHost;
use host_queue::HostQueues;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use octo_model::ToolError;
use resolve::SystemResolver;
use robots::RobotsCache;
use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use url::Url;

/// What may be reached.
#[derive(Debug, Clone)]
pub struct NetSpec {
    /// Hosts (`api.local`, `*.corp.example`), addresses and networks (`10.0.0.0/8`), each with an optional `:port`, that are
    /// allowed although they are private. Everything public is allowed.
    pub allow: Vec<String>,
    /// Ports of this machine's loopback on which the hub itself listens: they are refused unless `allow` names them.
    pub own_ports: Vec<u16>,
    pub user_agent: String,
    /// Requests to one host at the same time.
    pub per_host: usize,
    /// The shortest time between the starts of two requests to one host; zero for none.
    pub min_interval: Duration,
    /// Whether [`Net::check_robots`] asks for a site's robots.txt.
    pub robots: bool,
}

/// What sites are told of this program.
pub const USER_AGENT: &str = concat!("octoprox/", env!("CARGO_PKG_VERSION"));
const DEFAULT_PER_HOST: usize = 6;

impl Default for NetSpec {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            own_ports: Vec::new(),
            user_agent: USER_AGENT.to_owned(),
            per_host: DEFAULT_PER_HOST,
            min_interval: Duration::ZERO,
            robots: false,
        }
    }
}

/// Sends requests to addresses that policy allows.
#[derive(Clone)]
pub struct Net(Arc<NetState>);

struct NetState {
    allow: Arc<AllowList>,
    user_agent: HeaderValue,
    dialler: Dialler,
    client: OnceCell<http_send::Client>,
    queue: HostQueues,
    /// Where robots.txt is respected.
    robots: Option<RobotsCache>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct NetRequest {
    pub method: Method,
    pub url: Url,
    /// Of the caller's; dropped for credentials when a redirect leads to another origin.
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// For everything, redirects and body included.
    pub timeout: Duration,
    /// Bytes of the decoded body; the rest is left out and said.
    pub max_bytes: usize,
    /// How many redirects are followed; 0 for none.
    pub max_redirects: usize,
}

impl NetRequest {
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            timeout: Duration::from_secs(30),
            max_bytes: 5 << 20,
            max_redirects: 10,
        }
    }
}

/// What came back. A status of 400 or more is an answer, too.
#[derive(Debug, Clone)]
pub struct NetResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Where it came from, after redirects.
    pub url: Url,
    /// Decoded (gzip, deflate, br, zstd), at most `max_bytes`.
    pub body: Bytes,
    pub truncated: bool,
    pub took: Duration,
}

impl NetResponse {
    /// For how long the server asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        host_queue::retry_after(&self.headers, Timestamp::now())
    }

    /// The error of a server whose limit is used up: the caller is to wait as long as it says, or `otherwise`.
    pub fn rate_limited(&self, message: impl Into<Cow<'static, str>>, otherwise: Duration) -> ToolError {
        let wait = self.retry_after().unwrap_or(otherwise);
        ToolError::rate_limited(message, wait).hint(format!("Try again in {} s.", wait.as_secs()))
    }
}

impl Net {
    /// Does nothing slow: names, certificates and connections wait for the first request.
    pub fn new(spec: NetSpec) -> Result<Self, ToolError> {
        Self::with_resolver(spec, Arc::new(SystemResolver::default()))
    }

    /// With another opinion on names than the machine's. Its answers are checked like any other's.
    pub fn with_resolver(spec: NetSpec, resolver: Arc<dyn Resolver>) -> Result<Self, ToolError> {
        let allow = Arc::new(AllowList::parse(&spec.allow)?);
        let user_agent = HeaderValue::from_str(&spec.user_agent)
            .map_err(|_| ToolError::invalid("The user agent has characters that cannot be sent."))?;
        let dialler = Dialler::public(allow.clone(), resolver).refusing_ports(&spec.own_ports);
        let queue = HostQueues::new(spec.per_host).with_min_interval(spec.min_interval);
        let robots = spec.robots.then(RobotsCache::default);
        Ok(Self(Arc::new(NetState { allow, user_agent, dialler, client: OnceCell::new(), queue, robots })))
    }

    /// The way to one server that the operator has named, and to no other. A literal address is that address, `localhost` is
    /// loopback, a name that only the operator's own network can have may be private; any other name must be public or on
    /// the list, whenever it is connected to.
    pub fn for_configured_host(&self, url: &str) -> Result<Self, ToolError> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let named = url.as_ref().and_then(ConfiguredHost::from_url).ok_or_else(|| {
            ToolError::invalid("That is not an http or https address.").hint("Write https://HOST/PATH.")
        })?;
        let way = &self.0;
        Ok(Self(Arc::new(NetState {
            allow: way.allow.clone(),
            user_agent: way.user_agent.clone(),
            dialler: way.dialler.for_host(named),
            client: OnceCell::new(),
            queue: HostQueues::new(way.queue.max_concurrent()),
            robots: None,
        })))
    }

    /// For a client that needs more than [`Net::send`] gives, such as streams. What it connects to is checked here.
    pub fn connector(&self) -> io::Result<Connector> {
        tls_connector(self.0.dialler.clone())
    }

    /// A URL that may be asked for, as far as its text tells: http or https, no credentials, a port that is not another
    /// protocol's. The address is checked when connecting.
    pub fn url(&self, text: &str) -> Result<Url, ToolError> {
        url_check::parse_url(text, &self.0.allow)
    }

    /// The addresses of a host that may be connected to; for drivers that connect by themselves.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ToolError> {
        self.0.dialler.addresses(host, port).await.map_err(|error| net_errors::dial_error(host, &error))
    }

    /// Says early and in words what [`Net::connect`] would refuse: a program behind a [`EgressProxy`] hears only that it failed.
    pub async fn check(&self, host: &str, port: u16) -> Result<(), ToolError> {
        self.check_port(host, port)?;
        self.addresses(host, port).await.map(drop)
    }

    fn check_port(&self, host: &str, port: u16) -> Result<(), ToolError> {
        if url_check::is_blocked_port(port) && !self.0.dialler.names_port(host, port) {
            return Err(url_check::blocked_port_error(port));
        }
        Ok(())
    }

    /// A connection to a host that was checked; for proxies.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ToolError> {
        self.check_port(host, port)?;
        self.0.dialler.connect(host, port).await.map_err(|error| net_errors::dial_error(host, &error))
    }
}

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Net")
    }
}

impl Default for Net {
    /// The public internet.
    fn default() -> Self {
        let allow = Arc::new(AllowList::default());
        let dialler = Dialler::public(allow.clone(), Arc::new(SystemResolver::default()));
        let user_agent = HeaderValue::from_static(USER_AGENT);
        let queue = HostQueues::new(DEFAULT_PER_HOST);
        Self(Arc::new(NetState { allow, user_agent, dialler, client: OnceCell::new(), queue, robots: None }))
    }
}

impl Grant for Net {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}
