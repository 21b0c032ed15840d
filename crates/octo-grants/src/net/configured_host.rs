//! A server configured in the settings. It may be private if its name implies that: a public name that resolves to an
//! address in the operator's own network is refused like any other.

use super::public_address::is_private;
use std::net::IpAddr;
use url::{Host, Url};

/// Suffixes of names that can only be in the operator's own network: reserved for that, or never to be delegated.
const PRIVATE_ENDINGS: [&str; 10] =
    ["corp", "home", "home.arpa", "internal", "intranet", "lan", "local", "localdomain", "private", "test"];

#[derive(Debug)]
pub(super) struct ConfiguredHost {
    host: Host,
    port: u16,
}

impl ConfiguredHost {
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        Some(Self { host: url.host()?.to_owned(), port: url.port_or_known_default()? })
    }

    /// Whether this is the configured server itself, and not one that it redirects to.
    pub(super) fn matches(&self, host: &Host, port: u16) -> bool {
        self.host == *host && self.port == port
    }

    /// Whether the name may resolve to this non-public address.
    pub(super) fn may_resolve_to(&self, address: IpAddr) -> bool {
        match &self.host {
            Host::Ipv4(own) => address == IpAddr::V4(*own),
            Host::Ipv6(own) => address == IpAddr::V6(*own).to_canonical(),
            Host::Domain(name) => match name.trim_end_matches('.') {
                name if name == "localhost" || name.ends_with(".localhost") => address.is_loopback(),
                name if is_private_name(name) => address.is_loopback() || is_private(address),
                _ => false,
            },
        }
    }
}

/// Single-label names resolve only in the operator's own network, such as those of containers.
pub(super) fn is_private_name(name: &str) -> bool {
    let ends = |ending: &str| name.strip_suffix(ending).is_some_and(|left| left.ends_with('.'));
    !name.contains('.') || PRIVATE_ENDINGS.into_iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(url: &str) -> ConfiguredHost {
        ConfiguredHost::from_url(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_name_may_be_private_as_far_as_it_says_so() {
        let all = ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd12::1"];
        let never = [
            "169.254.169.254",
            "fe80::1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "0.0.0.0",
            "::",
            "224.0.0.1",
        ];
        for (url, may) in [
            ("http://127.0.0.1:81/", &["127.0.0.1"][..]),
            ("http://127.1/", &["127.0.0.1"]),
            ("http://[::1]/", &["::1"]),
            ("http://[::ffff:10.0.0.1]/", &["10.0.0.1"]),
            ("http://10.0.0.1/", &["10.0.0.1"]),
            ("http://localhost:3000/mcp", &["127.0.0.1", "::1"]),
            ("http://LOCALHOST./", &["127.0.0.1", "::1"]),
            ("http://x.localhost/", &["127.0.0.1", "::1"]),
            ("http://mcp:8080/", &all),
            ("http://mcp./", &all),
            ("http://mcp.svc.cluster.local/", &all),
            ("http://mcp.internal/", &all),
            ("http://nas.home.arpa/", &all),
            ("http://mcp.example.com/", &[]),
            ("http://mcp.notlocal/", &[]),
            ("http://mcp.local.example/", &[]),
            ("http://127.0.0.1.nip.io/", &[]),
        ] {
            for address in all.iter().chain(&never) {
                let may_be = named(url).may_resolve_to(address.parse().unwrap());
                assert_eq!(may_be, may.contains(address), "{url} as {address}");
            }
        }
        assert!(
            named("http://169.254.169.254/").may_resolve_to("169.254.169.254".parse().unwrap()),
            "it was written"
        );
    }

    #[test]
    fn another_host_or_port_is_another_server() {
        let server = named("https://Mcp.Example/x");
        for (host, port, same) in [
            ("mcp.example", 443, true),
            ("mcp.example", 80, false),
            ("other.example", 443, false),
            ("1.1.1.1", 443, false),
        ] {
            assert_eq!(server.matches(&Host::parse(host).unwrap(), port), same, "{host}:{port}");
        }
    }
}
