//! Only octo-grants opens connections: other files may not even name the types that do. Exceptions are listed here with
//! the names they use and the reason, and the list is printed.

use super::Report;
use super::rust_sources::Source;
use crate::rust_scan;

/// The crate that checks addresses.
const NETWORK_CRATE: &str = "crates/octo-grants/";

/// Types that connect or resolve. Type names, so that their methods are found under any path.
const SOCKET_TYPES: &[&str] = &[
    "HttpConnector",
    "TcpSocket",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
    "UnixDatagram",
    "UnixSocket",
    "UnixStream",
    "hyper_rustls",
    "lookup_host",
    "reqwest",
    "socket2",
    "to_socket_addrs",
    "tokio_rustls",
    "tungstenite",
    "ureq",
];

/// Of `hyper` and `hyper_util` only the client half connects; of `rustix` and `libc` only the sockets do.
const SOCKET_MODULES: &[(&str, &str)] = &[
    ("hyper", "client"),
    ("hyper_util", "client"),
    ("rustix", "net"),
    ("libc", "connect"),
    ("libc", "socket"),
];

/// A file, or a directory with a trailing `/`, that may use these names, and why that opens no connection.
pub struct SocketException {
    path: &'static str,
    words: &'static [&'static str],
    why: &'static str,
}

pub const SOCKET_EXCEPTIONS: &[SocketException] = &[
    SocketException {
        path: "crates/octo-upstream/src/transport/http/http_client.rs",
        words: &["hyper_util::client"],
        why: "uses HTTP over the connector that Net provides",
    },
    SocketException {
        path: "crates/octo-web/src/listener",
        words: &["TcpStream", "socket2"],
        why: "accepted connections and their options",
    },
    SocketException {
        path: "crates/octoprox/src/attach",
        words: &["UnixStream", "rustix::net"],
        why: "connections between octoprox's own processes, over a socket that only their user can open",
    },
    SocketException {
        path: "crates/octoprox/src/process/service_manager.rs",
        words: &["rustix::net"],
        why: "checks that a socket of the service manager listens; it is already open",
    },
    SocketException {
        path: "crates/octoprox/src/terminal/async_stdio.rs",
        words: &["UnixStream"],
        why: "standard input if it is a socket; it is already open",
    },
];

pub fn check(sources: &[Source], elsewhere: &[SocketException]) -> Report {
    let mut report = Report::default();
    let mut used = vec![false; elsewhere.len()];
    // Tests are servers and clients themselves.
    for source in sources.iter().filter(|source| !source.path.starts_with(NETWORK_CRATE) && !source.is_test())
    {
        for (at, word) in socket_names(&source.code) {
            let excused = elsewhere.iter().position(|one| one.covers(&source.path, &word));
            match excused.and_then(|index| used.get_mut(index)) {
                Some(used) => *used = true,
                None => report.problems.push(format!(
                    "{}:{} uses {word}, which bypasses Net; use octo-grants, or add an exception in xtask/src/tidy/socket_use.rs",
                    source.path,
                    source.line_of(at)
                )),
            }
        }
    }
    report.notes.push(format!("files that may use sockets besides {NETWORK_CRATE}: {}", elsewhere.len()));
    for (one, used) in elsewhere.iter().zip(used) {
        report.notes.push(format!("  {}  {}: {}", one.path, one.words.join(", "), one.why));
        if !used {
            report.problems.push(format!(
                "{} no longer needs an exception for {}",
                one.path,
                one.words.join(", ")
            ));
        }
    }
    report
}

impl SocketException {
    fn covers(&self, path: &str, word: &str) -> bool {
        let rest = path.strip_prefix(self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
            && self.words.contains(&word)
    }
}

fn socket_names(code: &str) -> Vec<(usize, String)> {
    let words = SOCKET_TYPES
        .iter()
        .flat_map(|word| rust_scan::find_words(code, word).into_iter().map(|at| (at, (*word).to_owned())));
    let modules = SOCKET_MODULES.iter().flat_map(|(krate, module)| {
        let found = rust_scan::find_words(code, krate)
            .into_iter()
            .filter(|at| path_uses_module(code, at + krate.len(), module));
        found.map(move |at| (at, format!("{krate}::{module}")))
    });
    words.chain(modules).collect()
}

/// Whether the path that continues here, up to the end of its statement, contains this module or imports it in braces.
fn path_uses_module(code: &str, after: usize, module: &str) -> bool {
    let rest = code.get(after..).unwrap_or_default();
    if !rest.starts_with("::") {
        return false;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && !"_:{}, \n".contains(c)).unwrap_or(rest.len());
    let path = rest.get(..end).unwrap_or_default();
    // Without braces the path ends at the first space.
    let path = if path.contains('{') { path } else { path.split_whitespace().next().unwrap_or_default() };
    !rust_scan::find_words(path, module).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_EXCEPTIONS: &[SocketException] =
        &[SocketException { path: "crates/octo-web/src/listener", words: &["TcpStream"], why: "accepted" }];

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)], &[]).problems
    }

    #[test]
    fn what_connects_is_named_by_octo_grants_only() {
        for text in [
            "use tokio::net::TcpStream;",
            "let s = std::net::TcpStream::connect(a);",
            "use tokio::net::{TcpListener, TcpStream as Stream};",
            "tokio::net::lookup_host(name).await",
            "use std::net::ToSocketAddrs;",
            "(host, 80).to_socket_addrs()",
            "UdpSocket::bind(a)",
            "std::os::unix::net::UnixStream::connect(p)",
            "HttpConnector::new()",
            "use hyper_util::client::legacy::Client;",
            "use hyper_util::{client::legacy, rt::TokioExecutor};",
            "use hyper_util::{\n    rt::TokioExecutor,\n    client::{proxy, pool},\n};",
            "hyper::client::conn::http1::handshake(io)",
            "reqwest::get(url)",
            "rustix::net::connect(fd, &a)",
            "libc::socket(a, b, c)",
        ] {
            assert!(!problems("crates/tools-web/src/a.rs", text).is_empty(), "{text}");
            for home in [
                "crates/octo-grants/src/net/dial.rs",
                "crates/tools-web/src/tests/a.rs",
                "crates/tools-web/src/tests.rs",
                "crates/octo-web/examples/baseline.rs",
                "tests/src/http_client.rs",
                "xtask/src/bench.rs",
            ] {
                assert_eq!(problems(home, text), [""; 0], "{home}: {text}");
            }
        }
    }

    #[test]
    fn what_connects_to_nothing_may_be_named() {
        for text in [
            "use tokio::net::TcpListener;",
            "use std::net::{IpAddr, SocketAddr};",
            "use hyper_util::rt::TokioExecutor;\nlet client = 1;",
            "use hyper_util::server::conn::auto;",
            "fn hyper() { client() }",
            "// TcpStream\nlet text = \"reqwest\";",
            "let curled = TcpStreams;",
            "use rustix::io::Errno;",
        ] {
            assert_eq!(problems("crates/tools-web/src/a.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_excuse_covers_its_words_in_its_place_and_is_printed() {
        for (path, text, count) in [
            ("crates/octo-web/src/listener.rs", "TcpStream", 0),
            ("crates/octo-web/src/listener/connection.rs", "TcpStream", 0),
            ("crates/octo-web/src/listeners.rs", "TcpStream", 2),
            ("crates/octo-web/src/listener.rs", "TcpStream UdpSocket", 1),
            ("crates/octo-web/src/listener.rs", "", 1),
        ] {
            let report = check(&[Source::new(path, text)], TEST_EXCEPTIONS);
            assert_eq!(report.problems.len(), count, "{path}: {:?}", report.problems);
            assert_eq!(report.notes[1], "  crates/octo-web/src/listener  TcpStream: accepted");
        }
    }
}
