//! Dialler: resolves a name, checks every address, and connects to exactly the checked address.

use super::allow_list::AllowList;
use super::configured_host::{ConfiguredHost, is_private_name};
use super::public_address::is_public;
use super::resolve::Resolver;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::Service;
use url::Host;

/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 6;
/// Connect timeout while there is another address to try, and for the last one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const LAST_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of name resolution.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before TCP keepalive probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Connects to hosts as its rule allows: to public and allow-listed addresses, or to one configured server.
#[derive(Clone)]
pub struct Dialler {
    allow: Arc<AllowList>,
    /// The only public hosts that may be reached, if there is such a list.
    only: Option<Arc<AllowList>>,
    /// Ports on which the hub itself listens. It treats connections from loopback as its own user.
    own_ports: Arc<[u16]>,
    configured_host: Option<Arc<ConfiguredHost>>,
    resolver: Arc<dyn Resolver>,
}

/// Why a connection failed.
#[derive(Debug)]
pub enum DialError {
    NotAHost,
    Unresolved(Option<io::Error>),
    Refused,
    /// There is a list of hosts, and this one is not on it.
    Unlisted,
    /// The hub itself.
    Own,
    Unreachable(io::Error),
}

impl Dialler {
    pub(super) fn public(allow: Arc<AllowList>, resolver: Arc<dyn Resolver>) -> Self {
        Self { allow, only: None, own_ports: Arc::default(), configured_host: None, resolver }
    }

    /// Restricts it to a list of hosts, and to what `allow` names.
    pub(super) fn restricted_to(self, only: Option<Arc<AllowList>>) -> Self {
        Self { only, ..self }
    }

    pub(super) fn refusing_ports(self, own_ports: &[u16]) -> Self {
        Self { own_ports: own_ports.into(), ..self }
    }

    /// Uses the same list and resolver, for one server.
    pub(super) fn for_host(&self, named: ConfiguredHost) -> Self {
        Self { configured_host: Some(Arc::new(named)), only: None, ..self.clone() }
    }

    /// Addresses of a host that may be connected to; never empty.
    pub(super) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let host = parse_host(host).ok_or(DialError::NotAHost)?;
        if self.configured_host.as_ref().is_some_and(|named| !named.matches(&host, port)) {
            return Err(DialError::Refused);
        }
        let is_listed =
            self.only.as_ref().is_none_or(|only| only.lists(&host, port)) || self.allow.lists(&host, port);
        // A name that is not listed is not even resolved: it could carry data to a name server.
        let may_be_allowed = is_listed || (self.allow.has_networks() && may_be_private(&host));
        if !may_be_allowed {
            return Err(DialError::Unlisted);
        }
        let found = match &host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => tokio::time::timeout(RESOLVE_TIMEOUT, self.resolver.resolve(name))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                .map_err(|error| DialError::Unresolved(Some(error)))?,
        };
        if found.is_empty() {
            return Err(DialError::Unresolved(None));
        }
        let found = found.into_iter().map(|address| SocketAddr::new(address.to_canonical(), port));
        let mut found = found.peekable();
        if self.configured_host.is_none() && found.peek().is_some_and(|address| self.is_own(&host, *address))
        {
            return Err(DialError::Own);
        }
        let is_reachable =
            |address: &SocketAddr| is_listed || self.allow.allows_address(address.ip(), address.port());
        let checked = found.filter(|address| self.allows(&host, *address)).filter(is_reachable);
        match (interleave_families(checked), is_listed) {
            (none, true) if none.is_empty() => Err(DialError::Refused),
            (none, false) if none.is_empty() => Err(DialError::Unlisted),
            (checked, _) => Ok(checked),
        }
    }

    /// Whether the operator listed this port for the host.
    pub(super) fn names_port(&self, host: &str, port: u16) -> bool {
        match parse_host(host) {
            Some(host) if self.configured_host.as_ref().is_some_and(|named| named.matches(&host, port)) => {
                true
            }
            Some(host) => self.allow.names_port(&borrow_host(&host), port),
            None => false,
        }
    }

    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let mut addresses = self.addresses(host, port).await?.into_iter().peekable();
        let mut fail = io::Error::from(io::ErrorKind::AddrNotAvailable);
        while let Some(address) = addresses.next() {
            let patience = if addresses.peek().is_some() { CONNECT_TIMEOUT } else { LAST_CONNECT_TIMEOUT };
            match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return configure_socket(stream).map_err(DialError::Unreachable),
                Ok(Err(error)) => fail = error,
                Err(_) => fail = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(DialError::Unreachable(fail))
    }

    /// Whether this is the hub itself, unless the operator listed its port.
    fn is_own(&self, host: &Host, address: SocketAddr) -> bool {
        let (ip, port) = (address.ip(), address.port());
        (ip.is_loopback() || ip.is_unspecified())
            && self.own_ports.contains(&port)
            && !self.allow.names_port(&borrow_host(host), port)
    }

    fn allows(&self, host: &Host, address: SocketAddr) -> bool {
        (self.configured_host.is_some() || !self.is_own(host, address)) && self.allows_address(host, address)
    }

    fn allows_address(&self, host: &Host, address: SocketAddr) -> bool {
        is_public(address.ip())
            || self.allow.allows_address(address.ip(), address.port())
            || matches!(host, Host::Domain(name) if self.allow.allows_host(name, address.port()))
            || self.configured_host.as_ref().is_some_and(|named| named.may_resolve_to(address.ip()))
    }
}

/// Whether a network of the allow list may contain it: an address, or a name that only a private network has.
fn may_be_private(host: &Host) -> bool {
    match host {
        Host::Domain(name) => is_private_name(name.trim_end_matches('.')),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

fn borrow_host(host: &Host) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

/// Uses the URL parser for hosts, so that there is only one interpretation of `127.1`. An IPv6 address may lack its
/// brackets.
fn parse_host(text: &str) -> Option<Host> {
    match text.parse() {
        Ok(address) => Some(Host::Ipv6(address)),
        Err(_) => Host::parse(text).ok(),
    }
}

/// Deduplicates addresses and alternates families, starting with the preferred one, so that a broken family
/// costs little.
fn interleave_families(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = addresses.peekable();
    let preferred = addresses.peek().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.partition(|address| address.is_ipv6() == preferred);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::new();
    while turns.len() < MAX_ADDRESSES {
        let before = turns.len();
        for address in first.next().into_iter().chain(second.next()) {
            if !turns.contains(&address) {
                turns.push(address);
            }
        }
        if turns.len() == before && first.len() + second.len() == 0 {
            break;
        }
    }
    turns.truncate(MAX_ADDRESSES);
    turns
}

fn configure_socket(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
    Ok(stream)
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let dialler = self.clone();
        Box::pin(async move {
            let port = to.port_u16().unwrap_or(if to.scheme_str() == Some("https") { 443 } else { 80 });
            let host = to.host().ok_or(DialError::NotAHost)?;
            dialler.connect(host, port).await.map(TokioIo::new)
        })
    }
}

impl fmt::Debug for Dialler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialler").finish_non_exhaustive()
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAHost => "not a host",
            Self::Unresolved(_) => "the name does not resolve",
            Self::Unlisted => "net.only does not name it",
            Self::Refused => "its address is not public, and net.allow does not name it",
            Self::Own => "it is this hub itself",
            Self::Unreachable(_) => "cannot connect",
        })
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unresolved(Some(error)) | Self::Unreachable(error) => Some(error),
            Self::Unresolved(None) | Self::NotAHost | Self::Refused | Self::Unlisted | Self::Own => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_hub_itself_is_not_asked() {
        let dialler = |allow: &[&str]| {
            let allow =
                AllowList::parse("net.allow", &allow.iter().map(ToString::to_string).collect::<Vec<_>>())
                    .unwrap();
            Dialler::public(Arc::new(allow), Arc::new(super::super::SystemResolver::default()))
                .refusing_ports(&[7000, 3100])
        };
        for (allow, host, port, is_own) in [
            (&["127.0.0.0/8", "::1"][..], "127.0.0.1", 7000, true),
            (&["127.0.0.0/8", "::1"], "127.1", 3100, true),
            (&["127.0.0.0/8", "::1"], "[::1]", 7000, true),
            (&["127.0.0.0/8", "::1", "::ffff:127.0.0.1"], "[::ffff:127.0.0.1]", 7000, true),
            (&["0.0.0.0"], "0.0.0.0", 7000, true),
            (&["localhost"], "localhost", 7000, true),
            (&["127.0.0.0/8"], "127.0.0.1", 7001, false),
            (&["127.0.0.1:7000"], "127.0.0.1", 7000, false),
            (&["10.0.0.0/8"], "10.1.2.3", 7000, false),
        ] {
            let found = dialler(allow).addresses(host, port).await;
            assert_eq!(matches!(found, Err(DialError::Own)), is_own, "{host}:{port} {found:?}");
            assert_eq!(found.is_ok(), !is_own, "{host}:{port} {found:?}");
        }
    }

    #[tokio::test]
    async fn a_list_of_hosts_leaves_no_others() {
        let list = |setting: &str, entries: &[&str]| {
            AllowList::parse(setting, &entries.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
        };
        let only = ["1.1.1.1", "8.8.8.8:53", "127.0.0.1"];
        for (allow, host, port, expected) in [
            (&[][..], "1.1.1.1", 443, "ok"),
            (&[], "8.8.8.8", 53, "ok"),
            (&[], "8.8.8.8", 443, "unlisted"),
            (&[], "9.9.9.9", 443, "unlisted"),
            (&[], "data.in.a.name.example", 443, "unlisted"),
            (&[], "127.0.0.1", 80, "refused"),
            (&["10.0.0.0/8"], "10.1.2.3", 80, "ok"),
            (&["10.0.0.0/8"], "9.9.9.9", 80, "unlisted"),
            (&["10.0.0.0/8"], "data.in.a.name.example", 443, "unlisted"),
            (&["9.9.9.9"], "9.9.9.9", 80, "ok"),
        ] {
            let dialler = Dialler::public(
                Arc::new(list("net.allow", allow)),
                Arc::new(super::super::SystemResolver::default()),
            )
            .restricted_to(Some(Arc::new(list("net.only", &only))));
            let outcome = match dialler.addresses(host, port).await {
                Ok(_) => "ok",
                Err(DialError::Unlisted) => "unlisted",
                Err(DialError::Refused) => "refused",
                Err(other) => panic!("{host}:{port} {other:?}"),
            };
            assert_eq!(outcome, expected, "{host}:{port} with {allow:?}");
        }
    }

    #[test]
    fn families_take_turns_and_nothing_is_tried_twice() {
        for (found, tried) in [
            (&["1.1.1.1"][..], &["1.1.1.1"][..]),
            (
                &["2::1", "2::2", "2::3", "1.1.1.1", "1.1.1.2"],
                &["2::1", "1.1.1.1", "2::2", "1.1.1.2", "2::3"],
            ),
            (&["1.1.1.1", "2::1", "2::2"], &["1.1.1.1", "2::1", "2::2"]),
            (&["1.1.1.1", "1.1.1.1", "1.1.1.1", "1.1.1.2"], &["1.1.1.1", "1.1.1.2"]),
            (
                &["2::1", "2::2", "2::3", "2::4", "2::5", "2::6", "2::7"],
                &["2::1", "2::2", "2::3", "2::4", "2::5", "2::6"],
            ),
            (&[], &[]),
        ] {
            let read = |list: &[&str]| {
                list.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 80)).collect::<Vec<_>>()
            };
            assert_eq!(interleave_families(read(found).into_iter()), read(tried), "{found:?}");
        }
    }
}
