//! SEC-HTTP-06: malformed, ambiguous or very slow requests.

use super::test_server::{TestServer, read_until_silent, start_server, until_closed};
use super::web_fixture::WebFixture;
use crate::ListenerLimits;
use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT_LIMITS: ListenerLimits = ListenerLimits {
    max_connections: 100,
    max_connections_per_caller: 100,
    head_timeout: Duration::from_millis(400),
    stall_timeout: Duration::from_secs(5),
    max_undelivered_bytes: 32 << 20,
    drain_timeout: Duration::from_millis(500),
};

async fn port() -> TestServer {
    start_server(WebFixture::new().local(), ListenerLimits::default()).await
}

/// Status of each reply.
fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).map(|part| part.get(..3).unwrap()).collect()
}

#[tokio::test]
async fn garbage_is_answered_or_closed_and_hurts_nobody() {
    let port = port().await;
    let post = format!("{}Content-Type: application/json\r\n", port.head("POST", "/tools/echo"));
    let hidden = port.head("GET", "/tools");
    let many: String = (0..10_000).map(|n| format!("X-{n}: 1\r\n")).collect();
    for (name, bytes, wanted) in [
        (
            "both lengths",
            format!("{post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}\r\n"),
            &["400"][..],
        ),
        (
            "lengths the other way",
            format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{hidden}\r\n"),
            &["400"],
        ),
        ("two lengths", format!("{post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}x"), &["400"]),
        ("a list of lengths", format!("{post}Content-Length: 2, 3\r\n\r\n{{}}x"), &["400"]),
        ("a signed length", format!("{post}Content-Length: +2\r\n\r\n{{}}"), &["400"]),
        ("a huge length", format!("{post}Content-Length: 99999999999999999999\r\n\r\n"), &["400"]),
        ("space before the colon", format!("{post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), &["400"]),
        ("unknown coding", format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), &["400"]),
        ("coding not last", format!("{post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"), &["400"]),
        ("folded header", format!("{post}X-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n"), &["400"]),
        ("long header", format!("{post}X-A: {}\r\n\r\n", "a".repeat(64 * 1024)), &["431"]),
        ("many headers", format!("{post}{many}\r\n"), &["431"]),
        ("long target", format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(70_000)), &["431"]),
        ("a nul", format!("{post}X-A: \0\r\n\r\n"), &["400"]),
        ("bad chunk", format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"), &["400"]),
        ("huge chunk", format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"), &["400"]),
        ("no version", "GET /health\r\n\r\n".to_owned(), &["400"]),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".to_owned(), &["400"]),
        ("nothing but lines", "\r\n".repeat(1000), &[]),
        ("half a preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n".to_owned(), &[]),
        ("a wrong preface", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_owned(), &["400"]),
        ("connect", format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", port.address), &["404"]),
        (
            "connect elsewhere",
            "CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n".to_owned(),
            &["421"],
        ),
        ("no host", "GET /health HTTP/1.1\r\n\r\n".to_owned(), &["421"]),
        ("old version", "GET /health HTTP/1.0\r\n\r\n".to_owned(), &["421"]),
        ("two hosts", format!("{}Host: evil.com\r\n\r\n", port.head("GET", "/health")), &["421"]),
        (
            "absolute elsewhere",
            format!("GET http://evil.com/health HTTP/1.1\r\nHost: {}\r\n\r\n", port.address),
            &["421"],
        ),
        ("a pipeline", format!("{0}\r\n{0}\r\n", port.head("GET", "/health")), &["200", "200"]),
    ] {
        let text = port.exchange(bytes.as_bytes()).await;
        let got: Vec<String> =
            statuses(&text.replace("HTTP/1.0 ", "HTTP/1.1 ")).into_iter().map(str::to_owned).collect();
        assert_eq!(got, wanted, "{name}: {text}");
        assert!(port.is_alive().await, "{name}");
    }
}

#[tokio::test]
async fn noise_hurts_nobody() {
    let port = port().await;
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..200 {
        let noise: Vec<u8> = (0..200)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed.to_le_bytes()[0]
            })
            .collect();
        let mut stream = port.connect().await;
        let _ = stream.write_all(&noise).await;
    }
    assert!(port.is_alive().await);
}

#[tokio::test]
async fn slow_heads_are_closed() {
    let port = start_server(WebFixture::new().local(), SHORT_LIMITS).await;
    for beginning in
        ["", "P", "PRI * HTTP/2.0\r\n", "GET /health HTTP/1.1\r\n", "GET /health HTTP/1.1\r\nHost: loc"]
    {
        let mut stream = port.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let waited = until_closed(&mut stream).await;
        assert!((300..2_000).contains(&waited.as_millis()), "{beginning:?} {waited:?}");
    }
    assert!(port.is_alive().await);
}

/// A connection that stays open after an admitted request.
async fn authorized_connection(port: &TestServer) -> TcpStream {
    let mut stream = port.connect().await;
    stream.write_all(format!("{}\r\n", port.head("GET", "/tools")).as_bytes()).await.unwrap();
    assert!(read_until_silent(&mut stream, Duration::from_millis(500)).await.starts_with("HTTP/1.1 200"));
    stream
}

#[tokio::test]
async fn too_many_connections_are_told_to_come_back() {
    let port = start_server(
        WebFixture::new().local(),
        ListenerLimits { max_connections: 2, ..ListenerLimits::default() },
    )
    .await;
    let (one, _two) = (authorized_connection(&port).await, authorized_connection(&port).await);
    let mut third = port.connect().await;
    assert!(read_until_silent(&mut third, Duration::from_secs(2)).await.starts_with("HTTP/1.1 503"));
    drop(one);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(port.is_alive().await);
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_makes_room() {
    let port = start_server(
        WebFixture::new().local(),
        ListenerLimits { max_connections: 2, ..ListenerLimits::default() },
    )
    .await;
    let (mut silent, _used) = (port.connect().await, authorized_connection(&port).await);
    let _third = authorized_connection(&port).await;
    assert!(until_closed(&mut silent).await < Duration::from_secs(2));
    let mut fourth = port.connect().await;
    assert!(read_until_silent(&mut fourth, Duration::from_secs(2)).await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn one_caller_has_a_share_of_the_connections() {
    let limits =
        ListenerLimits { max_connections: 4, max_connections_per_caller: 1, ..ListenerLimits::default() };
    let port = start_server(WebFixture::new().local(), limits).await;
    let first = authorized_connection(&port).await;
    let asked = format!("{}\r\n", port.head("GET", "/tools"));
    assert!(port.exchange(asked.as_bytes()).await.starts_with("HTTP/1.1 429"));
    drop(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    authorized_connection(&port).await;
}

/// A client without a token has no more time than it takes to send one.
#[tokio::test]
async fn a_connection_without_an_authorised_request_ends_soon() {
    let port = start_server(WebFixture::new().secured(), SHORT_LIMITS).await;
    let mut dripping = port.connect().await;
    let begun = std::time::Instant::now();
    let asked = format!("{}\r\n", port.head("GET", "/health"));
    while dripping.write_all(asked.as_bytes()).await.is_ok() {
        let answer = read_until_silent(&mut dripping, Duration::from_millis(100)).await;
        if answer.is_empty() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "it is still served");
    }
    let mut second = port.connect().await;
    second.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    assert!(until_closed(&mut second).await < Duration::from_secs(5));
}

#[tokio::test]
async fn a_sender_of_too_much_gets_to_see_why() {
    let port = port().await;
    let head = format!("{}Content-Type: application/json\r\n", port.head("POST", "/tools/echo"));
    let size = 8_000_000;
    let mut bytes = format!("{head}Content-Length: {size}\r\n\r\n").into_bytes();
    bytes.extend(std::iter::repeat_n(b' ', size));
    let mut stream = port.connect().await;
    stream.write_all(&bytes).await.unwrap();
    assert!(read_until_silent(&mut stream, Duration::from_millis(500)).await.starts_with("HTTP/1.1 413"));
    let mut chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n7A1200\r\n").into_bytes();
    chunked.extend(std::iter::repeat_n(b' ', size));
    chunked.extend(b"\r\n0\r\n\r\n");
    let mut stream = port.connect().await;
    stream.write_all(&chunked).await.unwrap();
    assert!(read_until_silent(&mut stream, Duration::from_millis(500)).await.starts_with("HTTP/1.1 413"));
    let expecting = format!("{head}Content-Length: {size}\r\nExpect: 100-continue\r\n\r\n");
    assert!(port.exchange(expecting.as_bytes()).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn http2_is_spoken_to_those_who_know_it() {
    let port = port().await;
    let io = TokioIo::new(port.connect().await);
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    for (authority, status) in [(port.address.to_string(), 200), ("evil.com".to_owned(), 421)] {
        let request = http::Request::builder().uri(format!("http://{authority}/health"));
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let reply = client.send_request(request).await.unwrap();
        assert_eq!((reply.status().as_u16(), reply.version()), (status, http::Version::HTTP_2));
    }
}

/// An endless body that signals when it is dropped.
struct EndlessBody(Arc<AtomicBool>);

impl Drop for EndlessBody {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl http_body::Body for EndlessBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 1 << 14])))))
    }
}

/// More than the system buffers for a connection.
const LARGE_REPLY_BYTES: usize = 16 << 20;

#[tokio::test]
async fn replies_that_nobody_reads_are_bounded_over_all_connections() {
    let large = Bytes::from(vec![b'x'; LARGE_REPLY_BYTES]);
    let router = axum::Router::new().fallback(move || std::future::ready(Body::from(large.clone())));
    let undelivered = 2 * LARGE_REPLY_BYTES;
    let port = start_server(
        router,
        ListenerLimits { max_undelivered_bytes: undelivered, ..ListenerLimits::default() },
    )
    .await;
    let request = format!("{}\r\n", port.head("GET", "/"));
    let mut silent = Vec::new();
    for _ in 0..8 {
        let mut stream = port.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while silent.len() > 3 {
        assert!(Instant::now() < deadline, "{} still wait", silent.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut open = Vec::new();
        for mut stream in silent {
            // The end of a connection is noticed at the second write.
            if stream.write_all(b"G").await.is_ok() {
                open.push(stream);
            }
        }
        silent = open;
    }
    assert!(!silent.is_empty(), "there was room for some");
    // Meanwhile others read as usual.
    let mut reader = port.connect().await;
    reader.write_all(request.replace("keep-alive", "close").as_bytes()).await.unwrap();
    let mut read = 0;
    let mut buffer = vec![0; 1 << 16];
    while read < LARGE_REPLY_BYTES {
        let bytes = reader.read(&mut buffer).await.unwrap();
        assert!(bytes > 0, "ended after {read} bytes");
        read += bytes;
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    // Both end before an unauthorized connection would.
    for (stall, is_ended) in [(Duration::from_millis(500), true), (Duration::from_secs(600), false)] {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&dropped);
        let router = axum::Router::new()
            .fallback(move || std::future::ready(Body::new(EndlessBody(Arc::clone(&flag)))));
        let port =
            start_server(router, ListenerLimits { stall_timeout: stall, ..ListenerLimits::default() }).await;
        let mut stream = port.connect().await;
        stream.write_all(format!("{}\r\n", port.head("GET", "/")).as_bytes()).await.unwrap();
        let is_dropped = || dropped.load(Ordering::Acquire);
        let deadline = Instant::now() + Duration::from_secs(6);
        while !is_dropped() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(is_dropped(), is_ended, "{stall:?}");
    }
}
