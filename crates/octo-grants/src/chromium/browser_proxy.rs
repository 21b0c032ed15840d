//! Egress proxy of the browser: an HTTP proxy that dials through `Net`, so that every target is checked when
//! connecting.
//!
//! On the host's network it requires a secret that is generated at each start; in a network namespace only the
//! browser can reach it.

use super::ProxyCredentials;
use crate::Net;
use crate::net::HostList;
use bytes::Bytes;
use http::header::{
    CONNECTION, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use octo_model::{Kind, ToolError};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// A host that no resolver knows; the proxy itself responds for it.
const OWN_HOST: &str = "octoprox.invalid";
const OWN_PAGE: &str = "http://octoprox.invalid/";
const USER: &str = "octoprox";

/// Concurrent connections: more than a browser with all its tabs opens.
const MAX_CONNECTIONS: usize = 1_024;
/// Number of refusals that are remembered.
const MAX_REFUSALS: usize = 64;
/// Timeout for a server to start its response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

type Body = BoxBody<Bytes, hyper::Error>;

pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
    accepting: JoinHandle<()>,
}

struct ProxyState {
    net: Net,
    /// The only hosts that may be reached, if set.
    hosts: Option<HostList>,
    password: Option<String>,
    /// Required value of `Proxy-Authorization`.
    expected_authorization: Option<HeaderValue>,
    refusals: Mutex<VecDeque<Refusal>>,
    connection_permits: Arc<Semaphore>,
}

struct Refusal {
    at: Instant,
    host: String,
    port: u16,
    error: ToolError,
}

impl Proxy {
    /// Listens on loopback, with a password.
    pub async fn authenticated(net: Net) -> io::Result<Self> {
        let password = crate::random::hex::<16>()?;
        let wanted = format!("Basic {}", base64(format!("{USER}:{password}").as_bytes()));
        let wanted = HeaderValue::try_from(wanted).map_err(io::Error::other)?;
        Self::serve(TcpListener::bind("127.0.0.1:0").await?, net, None, Some((password, wanted)))
    }

    /// Listens on a socket that only the browser can reach.
    pub fn unauthenticated(listener: std::net::TcpListener, net: Net) -> io::Result<Self> {
        Self::serve(TcpListener::from_std(listener)?, net, None, None)
    }

    /// Listens on a socket that only one program can reach, and connects only to these hosts.
    pub fn for_hosts(listener: std::net::TcpListener, net: Net, hosts: HostList) -> io::Result<Self> {
        Self::serve(TcpListener::from_std(listener)?, net, Some(hosts), None)
    }

    fn serve(
        listener: TcpListener,
        net: Net,
        hosts: Option<HostList>,
        secret: Option<(String, HeaderValue)>,
    ) -> io::Result<Self> {
        let (password, wanted) = secret.unzip();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let refusals = Mutex::new(VecDeque::new());
        let shared = Arc::new(ProxyState {
            net,
            hosts,
            password,
            expected_authorization: wanted,
            refusals,
            connection_permits: room,
        });
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn credentials(&self) -> Option<ProxyCredentials> {
        let password = self.shared.password.clone()?;
        Some(ProxyCredentials { user: USER.to_owned(), password, page: OWN_PAGE })
    }

    pub fn refusal(&self, host: &str, port: u16, since: Instant) -> Option<ToolError> {
        let host = normalize_host(host);
        let refusals = self.shared.refusals.lock().ok()?;
        let fits = |refusal: &&Refusal| refusal.at >= since && refusal.host == host && refusal.port == port;
        refusals.iter().rev().find(fits).map(|refusal| refusal.error.clone())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.connection_permits.close();
    }
}

async fn accept(listener: TcpListener, shared: Arc<ProxyState>) {
    loop {
        let Ok(permit) = Arc::clone(&shared.connection_permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // For example too many open files; the browser retries.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (shared, permit) = (Arc::clone(&shared), Arc::new(permit));
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let (shared, permit) = (Arc::clone(&shared), Arc::clone(&permit));
                async move { Ok::<_, Infallible>(shared.answer(request, permit).await) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server.timer(TokioTimer::new()).preserve_header_case(true);
            let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            drop(permit);
        });
    }
}

impl ProxyState {
    /// A tunnel keeps the permit of its connection.
    async fn answer(&self, request: Request<Incoming>, permit: Arc<OwnedSemaphorePermit>) -> Response<Body> {
        if let Some(wanted) = &self.expected_authorization
            && request.headers().get(PROXY_AUTHORIZATION) != Some(wanted)
        {
            let mut response = text_response(
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "This proxy belongs to one browser.",
            );
            let challenge = HeaderValue::from_static("Basic realm=\"octoprox\"");
            response.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
            return response;
        }
        let connect = request.method() == Method::CONNECT;
        let Some((host, port)) = target(request.uri(), connect) else {
            return text_response(StatusCode::BAD_REQUEST, "Only http and https addresses are fetched here.");
        };
        if host == OWN_HOST {
            return text_response(StatusCode::OK, "");
        }
        if self.hosts.as_ref().is_some_and(|hosts| !hosts.contains(&host, port)) {
            let error = ToolError::denied(format!("This program may not reach {host}:{port}."))
                .hint("Ask the operator to add the host to `sandbox.network` of the server.");
            tracing::warn!(target: "servers", host, port, "host of a sandboxed server refused");
            return self.refuse_and_record(host, port, error);
        }
        if self.hosts.is_some() {
            tracing::info!(target: "servers", host, port, "connection of a sandboxed server");
        }
        match self.net.connect(&host, port).await {
            Ok(stream) if connect => tunnel(request, stream, permit),
            Ok(stream) => match forward(request, stream).await {
                Ok(response) => response,
                Err(why) => {
                    let error = ToolError::unavailable(format!("{host} sent no valid HTTP response."));
                    self.refuse_and_record(host, port, error.detail(why))
                }
            },
            Err(error) => self.refuse_and_record(host, port, error),
        }
    }

    fn refuse_and_record(&self, host: String, port: u16, error: ToolError) -> Response<Body> {
        let status = if error.kind == Kind::Denied { StatusCode::FORBIDDEN } else { StatusCode::BAD_GATEWAY };
        let response = text_response(status, &error.text());
        if let Ok(mut refusals) = self.refusals.lock() {
            refusals.push_back(Refusal { at: Instant::now(), host: normalize_host(&host), port, error });
            if refusals.len() > MAX_REFUSALS {
                refusals.pop_front();
            }
        }
        response
    }
}

/// Normalizes a host from a URL, or an IPv6 address without brackets.
fn normalize_host(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn target(uri: &Uri, connect: bool) -> Option<(String, u16)> {
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let port = match (connect, uri.scheme_str()) {
        (true, None) => authority.port_u16()?,
        (false, Some("http")) => authority.port_u16().unwrap_or(80),
        _ => return None,
    };
    Some((normalize_host(authority.host()), port))
}

fn tunnel(
    request: Request<Incoming>,
    mut stream: TcpStream,
    permit: Arc<OwnedSemaphorePermit>,
) -> Response<Body> {
    tokio::spawn(async move {
        let _permit = permit;
        if let Ok(browser) = hyper::upgrade::on(request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(browser), &mut stream).await;
        }
    });
    text_response(StatusCode::OK, "")
}

/// Sends one request on a separate connection.
async fn forward(
    request: Request<Incoming>,
    stream: TcpStream,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    head.uri = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).parse()?;
    strip_hop_headers(&mut head.headers);
    head.headers.insert(HOST, HeaderValue::try_from(authority)?);
    let mut client = hyper::client::conn::http1::Builder::new();
    client.preserve_header_case(true);
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::from_parts(head, body);
    let (mut head, body) =
        tokio::time::timeout(RESPONSE_TIMEOUT, sender.send_request(request)).await??.into_parts();
    strip_hop_headers(&mut head.headers);
    Ok(Response::from_parts(head, body.boxed()))
}

/// Removes hop-by-hop headers.
fn strip_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRANSFER_ENCODING, PROXY_AUTHORIZATION, PROXY_AUTHENTICATE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "upgrade"] {
        headers.remove(name);
    }
}

fn text_response(status: StatusCode, message: &str) -> Response<Body> {
    let body = Full::new(Bytes::copy_from_slice(message.as_bytes())).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
    response
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_everywhere() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("octoprox:x?", "b2N0b3Byb3g6eD8=")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn targets_are_hosts_with_ports() {
        for (uri, connect, wanted) in [
            ("example.com:443", true, Some(("example.com", 443))),
            ("[::1]:443", true, Some(("::1", 443))),
            ("http://Example.com/a?b", false, Some(("example.com", 80))),
            ("http://127.0.0.1:8080/", false, Some(("127.0.0.1", 8080))),
            ("https://example.com/", false, None),
            ("ftp://example.com/", false, None),
            ("http://a:b@example.com/", false, None),
            ("/path", false, None),
        ] {
            let wanted = wanted.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!(target(&uri.parse().unwrap(), connect), wanted, "{uri}");
        }
    }
}
