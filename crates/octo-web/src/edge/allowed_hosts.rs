//! `Host` check against DNS rebinding.

use http::{HeaderMap, Request, Version, header};

/// Host name and optional port, as in `Host` and origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    pub name: &'a str,
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Accepts `name`, `name:port`, `[v6]` and `[v6]:port`, and nothing ambiguous.
    pub fn parse(text: &'a str) -> Option<Self> {
        let end = match text.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (name, rest) = text.split_at_checked(end)?;
        if name.is_empty() {
            return None;
        }
        match rest.strip_prefix(':') {
            Some(digits) => Some(Self { name, port: Some(parse_port(digits)?) }),
            None => rest.is_empty().then_some(Self { name, port: None }),
        }
    }
}

fn parse_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port != 0)
}

/// Host names of this hub.
pub struct AllowedHosts(Vec<(Box<str>, Option<u16>)>);

impl AllowedHosts {
    /// An invalid name allows no host.
    pub fn new(allowed: &[String]) -> Self {
        let read = |text: &String| {
            let found = Authority::parse(text);
            if found.is_none() {
                tracing::warn!(host = %text, "allowed host ignored: not a name with or without a port");
            }
            found.map(|host| (host.name.into(), host.port))
        };
        Self(allowed.iter().filter_map(read).collect())
    }

    /// A name without a port allows any port.
    pub fn allows(&self, host: Authority<'_>) -> bool {
        self.0.iter().any(|(name, port)| {
            name.eq_ignore_ascii_case(host.name) && (port.is_none() || *port == host.port)
        })
    }

    /// Returns the host of a request, if it has exactly one and that is allowed.
    pub fn check_request<'a, B>(&self, request: &'a Request<B>) -> Option<Authority<'a>> {
        Authority::parse(host_of(request)?).filter(|host| self.allows(*host))
    }
}

/// The host of a request. In HTTP/2 it is the authority; if there are both, they must be equal.
fn host_of<B>(request: &Request<B>) -> Option<&str> {
    let header = single_host_header(request.headers())?;
    match (request.uri().authority(), header) {
        (None, header) => header,
        (Some(target), Some(host)) => target.as_str().eq_ignore_ascii_case(host).then_some(host),
        (Some(target), None) => (request.version() == Version::HTTP_2).then_some(target.as_str()),
    }
}

/// The `Host` header; the outer `None` if there are several or it is not text.
fn single_host_header(headers: &HeaderMap) -> Option<Option<&str>> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (None, _) => Some(None),
        (Some(host), None) => host.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_ports() {
        for (text, wanted) in [
            ("localhost", Some(("localhost", None))),
            ("localhost:7000", Some(("localhost", Some(7000)))),
            ("[::1]:7000", Some(("[::1]", Some(7000)))),
            ("[::1]", Some(("[::1]", None))),
            ("", None),
            (":7000", None),
            ("localhost:", None),
            ("localhost:+80", None),
            ("localhost:0", None),
            ("localhost:70000", None),
            ("localhost:70x", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]x", None),
            ("a:1:2", None),
        ] {
            assert_eq!(Authority::parse(text).map(|host| (host.name, host.port)), wanted, "{text}");
        }
    }

    #[test]
    fn a_port_in_the_settings_pins_it() {
        let hosts =
            AllowedHosts::new(&["hub.example:8443".to_owned(), "Local".to_owned(), "http://x".to_owned()]);
        for (host, allowed) in [
            ("hub.example:8443", true),
            ("HUB.example:8443", true),
            ("hub.example", false),
            ("hub.example:1", false),
            ("local", true),
            ("local:1", true),
            ("x", false),
            ("http", false),
        ] {
            assert_eq!(hosts.allows(Authority::parse(host).unwrap()), allowed, "{host}");
        }
    }
}
