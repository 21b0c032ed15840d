//! Egress: one HTTP client for the whole binary. Addresses are checked when connecting, after resolution and on every
//! redirect, which defeats DNS rebinding.

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
mod retry_after;
mod robots;
mod secret_header;
mod url_check;

pub use allow_list::HostList;
pub(crate) use dial::Dialler;
pub use egress_proxy::{EgressProxy, PortRelay};
pub use resolve::{ResolveFuture, Resolver};
pub use retry_after::retry_after;
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

/// Egress settings.
#[derive(Debug, Clone)]
pub struct NetSpec {
    /// Hosts (`api.local`, `*.corp.example`), addresses and networks (`10.0.0.0/8`), each with an optional `:port`,
    /// that are allowed although they are private. All public addresses are allowed.
    pub allow: Vec<String>,
    /// The only public hosts that are allowed, in the same form. Without a list all are.
    pub only: Option<Vec<String>>,
    /// Loopback ports on which the hub itself listens. They are refused unless `allow` names them.
    pub own_ports: Vec<u16>,
    pub user_agent: String,
    /// Concurrent requests to one host.
    pub per_host: usize,
    /// Minimum interval between the starts of two requests to one host; zero for none.
    pub min_interval: Duration,
    /// Whether [`Net::check_robots`] fetches and respects a site's robots.txt.
    pub robots: bool,
}

/// Default `User-Agent` header.
pub const USER_AGENT: &str = concat!("octoprox/", env!("CARGO_PKG_VERSION"));
const DEFAULT_PER_HOST: usize = 6;

impl Default for NetSpec {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            only: None,
            own_ports: Vec::new(),
            user_agent: USER_AGENT.to_owned(),
            per_host: DEFAULT_PER_HOST,
            min_interval: Duration::ZERO,
            robots: false,
        }
    }
}

/// HTTP client that sends requests only to addresses that the policy allows.
#[derive(Clone)]
pub struct Net(Arc<NetState>);

struct NetState {
    allow: Arc<AllowList>,
    user_agent: HeaderValue,
    dialler: Dialler,
    client: OnceCell<http_send::Client>,
    queue: HostQueues,
    /// Present if robots.txt is respected.
    robots: Option<RobotsCache>,
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct NetRequest {
    pub method: Method,
    pub url: Url,
    /// Headers of the caller. Credentials are dropped when a redirect leads to another origin.
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// Total timeout, including redirects and body.
    pub timeout: Duration,
    /// Maximum bytes of the decoded body. A longer body is truncated, see `NetResponse::truncated`.
    pub max_bytes: usize,
    /// Maximum number of redirects to follow; 0 for none.
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

/// An HTTP response. A status of 400 or more is not an error here.
#[derive(Debug, Clone)]
pub struct NetResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The final URL, after redirects.
    pub url: Url,
    /// Decoded (gzip, deflate, br, zstd), at most `max_bytes`.
    pub body: Bytes,
    pub truncated: bool,
    pub took: Duration,
}

impl NetResponse {
    /// The delay that the server requests with `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers, Timestamp::now())
    }

    /// Returns a rate-limit error with the server's retry delay, or `otherwise` if it sent none.
    pub fn rate_limited(&self, message: impl Into<Cow<'static, str>>, otherwise: Duration) -> ToolError {
        let wait = self.retry_after().unwrap_or(otherwise);
        ToolError::rate_limited(message, wait).hint(format!("Try again in {} s.", wait.as_secs()))
    }
}

impl Net {
    /// Creates the client without I/O: names, certificates and connections wait for the first request.
    pub fn new(spec: NetSpec) -> Result<Self, ToolError> {
        Self::with_resolver(spec, Arc::new(SystemResolver::default()))
    }

    /// Uses `resolver` instead of the system's. Its answers are checked in the same way.
    pub fn with_resolver(spec: NetSpec, resolver: Arc<dyn Resolver>) -> Result<Self, ToolError> {
        let allow = Arc::new(AllowList::parse("net.allow", &spec.allow)?);
        let user_agent = HeaderValue::from_str(&spec.user_agent)
            .map_err(|_| ToolError::invalid("The user agent contains invalid header characters."))?;
        let only =
            spec.only.as_ref().map(|only| AllowList::parse("net.only", only)).transpose()?.map(Arc::new);
        let dialler =
            Dialler::public(allow.clone(), resolver).refusing_ports(&spec.own_ports).restricted_to(only);
        let queue = HostQueues::new(spec.per_host).with_min_interval(spec.min_interval);
        let robots = spec.robots.then(RobotsCache::default);
        Ok(Self(Arc::new(NetState { allow, user_agent, dialler, client: OnceCell::new(), queue, robots })))
    }

    /// Returns a client for one configured server and no other. A literal address allows that address, `localhost`
    /// allows loopback, and a name that can only be on the operator's own network may be private. Any other name must
    /// resolve to a public or allow-listed address on every connect.
    pub fn for_configured_host(&self, url: &str) -> Result<Self, ToolError> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let named = url.as_ref().and_then(ConfiguredHost::from_url).ok_or_else(|| {
            ToolError::invalid("The address is not an http or https URL.")
                .hint("Use the form https://HOST/PATH.")
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

    /// Connector for clients that need more than [`Net::send`], such as streaming. Addresses are checked when
    /// connecting.
    pub fn connector(&self) -> io::Result<Connector> {
        tls_connector(self.0.dialler.clone())
    }

    /// Parses a URL and checks its text: http or https, no credentials, no port of another protocol. The address is
    /// checked when connecting.
    pub fn url(&self, text: &str) -> Result<Url, ToolError> {
        url_check::parse_url(text, &self.0.allow)
    }

    /// Resolves a host to the addresses that may be connected to; for drivers that connect by themselves.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ToolError> {
        self.0.dialler.addresses(host, port).await.map_err(|error| net_errors::dial_error(host, &error))
    }

    /// Reports early what [`Net::connect`] would refuse, because a program behind an [`EgressProxy`] only sees a failed
    /// connection.
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

    /// Opens a checked connection to a host; for proxies.
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
    /// Allows the public internet only.
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
