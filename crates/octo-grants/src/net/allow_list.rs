//! Allow list for non-public destinations: hosts, addresses and networks, each with an optional port.

use ipnet::IpNet;
use octo_model::ToolError;
use std::net::IpAddr;
use std::sync::Arc;
use url::Host;

/// The only hosts that a program may reach.
#[derive(Clone, Debug)]
pub struct HostList(Arc<AllowList>);

impl HostList {
    /// Hosts (`api.example`, `*.example`), addresses and networks, each with an optional `:port`.
    pub fn parse(setting: &str, entries: &[String]) -> Result<Self, ToolError> {
        AllowList::parse(setting, entries).map(Arc::new).map(Self)
    }

    /// Without a port, an entry means those of HTTP and HTTPS.
    pub(crate) fn contains(&self, host: &str, port: u16) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let parsed = match address {
            Ok(IpAddr::V4(address)) => Host::Ipv4(address),
            Ok(IpAddr::V6(address)) => Host::Ipv6(address),
            Err(_) => match Host::parse(host) {
                Ok(host) => host,
                Err(_) => return false,
            },
        };
        let host = match &parsed {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        };
        self.0.names_port(&host, port) || ([80, 443].contains(&port) && self.0.allows_any_port(&host))
    }
}

/// The parsed list.
#[derive(Debug, Default)]
pub(super) struct AllowList(Vec<AllowEntry>);

#[derive(Debug)]
struct AllowEntry {
    rule: AllowRule,
    /// Any port if `None`.
    port: Option<u16>,
}

#[derive(Debug)]
enum AllowRule {
    Host(String),
    /// With its leading dot; excludes the name itself.
    Subdomains(String),
    Network(IpNet),
}

impl AllowList {
    /// `setting` is named in errors.
    pub(super) fn parse(setting: &str, entries: &[String]) -> Result<Self, ToolError> {
        let entries = entries.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        entries
            .map(|text| AllowEntry::parse(text).ok_or_else(|| invalid_entry(setting, text)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether any address that this name resolves to may be reached.
    pub(super) fn allows_host(&self, name: &str, port: u16) -> bool {
        self.0.iter().any(|entry| entry.matches_port(port) && entry.rule.matches_name(name))
    }

    /// Whether the host is listed as it is written, a name or a literal address.
    pub(super) fn lists(&self, host: &Host, port: u16) -> bool {
        match host {
            Host::Domain(name) => self.allows_host(name, port),
            Host::Ipv4(address) => self.allows_address(IpAddr::V4(*address), port),
            Host::Ipv6(address) => self.allows_address(IpAddr::V6(*address), port),
        }
    }

    pub(super) fn has_networks(&self) -> bool {
        self.0.iter().any(|entry| matches!(entry.rule, AllowRule::Network(_)))
    }

    pub(super) fn allows_address(&self, address: IpAddr, port: u16) -> bool {
        self.0.iter().any(|entry| entry.matches_port(port) && entry.rule.contains_address(address))
    }

    /// Whether the host is listed without a port.
    fn allows_any_port(&self, host: &Host<&str>) -> bool {
        self.0.iter().filter(|entry| entry.port.is_none()).any(|entry| entry.rule.matches(host))
    }

    /// Whether this port was listed for the host, which permits ports of other protocols.
    pub(super) fn names_port(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.iter().filter(|entry| entry.port == Some(port)).any(|entry| entry.rule.matches(host))
    }
}

impl AllowEntry {
    fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (inner, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?.parse().ok()?) };
            return Some(Self { rule: AllowRule::network(inner).filter(|_| inner.contains(':'))?, port });
        }
        if let Some(what) = AllowRule::network(text) {
            return Some(Self { rule: what, port: None });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { rule: AllowRule::network(name).or_else(|| AllowRule::parse_host(name))?, port })
    }

    fn matches_port(&self, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
    }
}

impl AllowRule {
    fn network(text: &str) -> Option<Self> {
        let network: IpNet = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
        // IPv4-mapped IPv6 counts as IPv4, here as in every check.
        let mapped = match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
            (IpAddr::V4(address), Some(prefix)) => Some(IpNet::new(address.into(), prefix).ok()?),
            _ => None,
        };
        Some(Self::Network(mapped.unwrap_or(network)))
    }

    fn parse_host(text: &str) -> Option<Self> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        match Host::parse(name).ok()? {
            Host::Domain(name) if name.contains(['*', '/']) => None,
            Host::Domain(name) if below => {
                Some(Self::Subdomains(format!(".{}", without_trailing_dot(&name))))
            }
            Host::Domain(name) => Some(Self::Host(without_trailing_dot(&name).to_owned())),
            // Another spelling of an address, such as `127.1`.
            Host::Ipv4(address) if !below => Some(Self::Network(IpAddr::V4(address).into())),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }

    fn matches(&self, host: &Host<&str>) -> bool {
        match host {
            Host::Domain(name) => self.matches_name(name),
            Host::Ipv4(address) => self.contains_address(IpAddr::V4(*address)),
            Host::Ipv6(address) => self.contains_address(IpAddr::V6(*address)),
        }
    }

    fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Host(only) => without_trailing_dot(name) == only,
            Self::Subdomains(suffix) => {
                without_trailing_dot(name).strip_suffix(suffix.as_str()).is_some_and(|left| !left.is_empty())
            }
            Self::Network(_) => false,
        }
    }

    fn contains_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Network(network) if network.contains(&address.to_canonical()))
    }
}

/// Removes the dot that makes a name absolute.
fn without_trailing_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn invalid_entry(setting: &str, text: &str) -> ToolError {
    ToolError::invalid(format!("`{text}` in {setting} is not a host, an address or a network."))
        .hint("Use `api.local`, `*.corp.example`, `10.1.2.3`, `10.0.0.0/8` or `[fd00::/8]`, with `:8080` for one port.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> AllowList {
        AllowList::parse("net.allow", &entries.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_is_allowed_by_its_name_and_by_nothing_else() {
        for (entry, name, port, allowed) in [
            ("api.local", "api.local", 80, true),
            ("API.Local.", "api.local", 80, true),
            ("api.local", "api.local.", 80, true),
            ("api.local", "x.api.local", 80, false),
            ("api.local", "xapi.local", 80, false),
            ("api.local:8080", "api.local", 8080, true),
            ("api.local:8080", "api.local", 80, false),
            ("*.corp.example", "a.corp.example", 80, true),
            ("*.corp.example", "a.b.corp.example", 80, true),
            ("*.corp.example", "corp.example", 80, false),
            ("*.corp.example", "xcorp.example", 80, false),
            ("*.corp.example", ".corp.example", 80, false),
            ("*.corp.example:443", "a.corp.example", 443, true),
            ("*.corp.example:443", "a.corp.example", 80, false),
            ("bücher.example", "xn--bcher-kva.example", 80, true),
            ("10.0.0.0/8", "10.0.0.1", 80, false),
        ] {
            assert_eq!(list(&[entry]).allows_host(name, port), allowed, "{entry} {name}:{port}");
        }
    }

    #[test]
    fn a_network_allows_its_addresses_only() {
        for (entry, given, port, allowed) in [
            ("127.0.0.1", "127.0.0.1", 80, true),
            ("127.0.0.1", "::ffff:127.0.0.1", 80, true),
            ("::ffff:127.0.0.1", "127.0.0.1", 80, true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1", 80, true),
            ("::ffff:10.0.0.0/104", "10.9.9.9", 80, true),
            ("::ffff:10.0.0.0/104", "11.0.0.1", 80, false),
            ("127.1", "127.0.0.1", 80, true),
            ("127.0.0.1", "127.0.0.2", 80, false),
            ("127.0.0.1", "64:ff9b::7f00:1", 80, false),
            ("127.0.0.1", "2002:7f00:1::", 80, false),
            ("127.0.0.1:8080", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "127.0.0.1", 8081, false),
            ("10.1.0.0/16", "10.1.255.255", 80, true),
            ("10.1.0.0/16", "10.2.0.0", 80, false),
            ("10.1.2.3/16", "10.1.0.1", 80, true),
            ("10.0.0.0/8:443", "10.1.1.1", 443, true),
            ("10.0.0.0/8:443", "10.1.1.1", 80, false),
            ("::1", "::1", 80, true),
            ("[::1]:80", "::1", 80, true),
            ("[::1]:80", "::1", 81, false),
            ("[::1]", "::1", 81, true),
            ("fd00::/8", "fd12::1", 81, true),
            ("[fd00::/8]:443", "fd12::1", 443, true),
            ("[fd00::/8]:443", "fd12::1", 81, false),
            ("fd00::/8", "fc12::1", 81, false),
            ("localhost", "127.0.0.1", 80, false),
        ] {
            assert_eq!(
                list(&[entry]).allows_address(address(given), port),
                allowed,
                "{entry} {given}:{port}"
            );
        }
    }

    #[test]
    fn a_program_reaches_only_the_listed_hosts() {
        let hosts = ["api.example", "*.cdn.example", "127.0.0.1:8080", "[::1]"].map(str::to_owned);
        let hosts = HostList::parse("sandbox.hosts", &hosts).unwrap();
        for (host, port, listed) in [
            ("api.example", 443, true),
            ("API.example.", 443, true),
            ("api.example.org", 443, false),
            ("a.cdn.example", 80, true),
            ("cdn.example", 80, false),
            ("127.0.0.1", 8080, true),
            ("127.1", 8080, true),
            ("127.0.0.1", 8081, false),
            ("localhost", 8080, false),
            ("::1", 80, true),
            ("[::1]", 443, true),
            ("[::1]", 1, false),
            ("api.example", 5432, false),
            ("", 1, false),
        ] {
            assert_eq!(hosts.contains(host, port), listed, "{host}:{port}");
        }
        assert!(!HostList::parse("sandbox.hosts", &[]).unwrap().contains("api.example", 443));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_ignored() {
        for text in [
            "*",
            "*.*.x",
            "a.*.b",
            "*.1.2.3.4",
            "10.0.0.0/33",
            "[10.0.0.0/8]",
            "[127.0.0.1]",
            "[::1",
            "[::1]x",
            "a:b",
            "a:99999",
            "http://x",
            "x/y",
            "a b",
            "user@x",
            "*.",
            ":80",
        ] {
            let error = AllowList::parse("net.allow", &[text.to_owned()]).expect_err(text);
            assert!(error.message.contains("net.allow"), "{text}: {error}");
        }
        assert!(!list(&["", "  "]).allows_host("x", 80), "empty entries mean nothing");
    }
}
