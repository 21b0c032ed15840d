//! Cost of connections and calls. The numbers are printed; bounds are loose, because the machine is shared.
#![allow(clippy::disallowed_methods, reason = "reads its own size from /proc")]

use super::test_server::{TestServer, start_server};
use super::test_stores::NullAuditLog;
use super::web_fixture::{WebFixture, request};
use crate::{EdgeSettings, ListenerLimits, edge};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use octo_hub::{PolicySettings, Request};
use octo_model::{Caller, Frontend, Json, Operation};
use octo_toolkit::{NoPeer, Peer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

const STREAMS: usize = 2_000;

/// Resident bytes of this process.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

/// One event, then silence.
struct OneEventBody(Option<bytes::Bytes>);

impl http_body::Body for OneEventBody {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(event) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(event)))),
            None => std::task::Poll::Pending,
        }
    }
}

async fn begin_stream(port: &TestServer) -> TcpStream {
    let mut stream = port.connect().await;
    let head = format!(
        "{}Accept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
        port.head("GET", "/mcp"),
        "s".repeat(200)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.windows(5).any(|part| part == b"hello") {
        let mut buffer = [0; 1_024];
        let many = stream.read(&mut buffer).await.unwrap();
        assert!(many > 0);
        seen.extend_from_slice(&buffer[..many]);
    }
    stream
}

#[tokio::test]
async fn an_idle_stream_costs_little() {
    let quiet = || async { Body::new(OneEventBody(Some(bytes::Bytes::from_static(b"data: hello\n\n")))) };
    let router = edge(Router::new().route("/mcp", get(quiet)), EdgeSettings::default());
    let port = start_server(router, ListenerLimits::default()).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(begin_stream(&port).await);
    }
    let before = resident_bytes();
    for _ in 0..STREAMS {
        streams.push(begin_stream(&port).await);
    }
    let each = (resident_bytes() - before) / STREAMS;
    println!("an idle stream costs {each} bytes, its client's side included");
    assert!(each < 32 * 1_024, "{each}");
}

/// Requests per second over keep-alive connections.
async fn requests_per_second(port: &TestServer, request: &str) -> f64 {
    const CLIENTS: usize = 8;
    const REQUESTS_PER_CLIENT: usize = 4_000;
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| (port.address, request.to_owned()))
        .map(|(address, request)| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = [0; 4_096];
                for _ in 0..REQUESTS_PER_CLIENT {
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let many = stream.read(&mut buffer).await.unwrap();
                    assert!(
                        buffer[..many].starts_with(b"HTTP/1.1 200"),
                        "{}",
                        String::from_utf8_lossy(&buffer[..many])
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    (CLIENTS * REQUESTS_PER_CLIENT) as f64 / begun.elapsed().as_secs_f64()
}

/// Nanoseconds per request without a socket: the best of several rounds, against noise.
async fn router_nanos(router: &Router, path: &str) -> u128 {
    let mut best = u128::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        for _ in 0..1_000 {
            let ask = request("POST", path).header("content-type", "application/json");
            let ask = ask.extension(crate::PeerOwner::OwnUser);
            let reply = router.clone().oneshot(ask.body(Body::from(HELLO)).unwrap()).await.unwrap();
            assert_eq!(reply.status(), 200);
        }
        best = best.min(begun.elapsed().as_nanos() / 1_000);
    }
    best
}

/// The same for the hub alone, without the frontend.
async fn hub_nanos(bed: &WebFixture) -> u128 {
    let (caller, peer) = (Arc::new(Caller::local()), Arc::new(NoPeer));
    let mut best = u128::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        for _ in 0..1_000 {
            let called = bed.hub.call(Request {
                peer: Arc::clone(&peer) as Arc<dyn Peer>,
                ..Request::new(
                    Operation::tool("echo", Json::parse(HELLO).unwrap()),
                    Arc::clone(&caller),
                    Frontend::Rest,
                )
            });
            assert!(called.await.outcome.is_ok());
        }
        best = best.min(begun.elapsed().as_nanos() / 1_000);
    }
    best
}

const HELLO: &str = r#"{"text":"hello"}"#;

/// `cargo nextest run -p octo-web --cargo-profile bench --run-ignored only --no-capture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; run it alone, optimised"]
async fn what_a_call_costs_beside_a_bare_handler() {
    let bed = WebFixture::with(PolicySettings::default(), Some(Arc::new(NullAuditLog)));
    let bare = |_: bytes::Bytes| async { axum::Json(serde_json::json!({"result": {"lines": ["hello"]}})) };
    let plain = Router::new().route("/mcp", axum::routing::post(bare));
    let guarded = edge(plain.clone(), EdgeSettings::default());
    let called = bed.local();
    println!("without sockets, ns: bare {}", router_nanos(&plain, "/mcp").await);
    println!("without sockets, ns: behind the edge {}", router_nanos(&guarded, "/mcp").await);
    println!("without sockets, ns: a native call {}", router_nanos(&called, "/tools/echo").await);
    println!("without sockets, ns: the hub alone {}", hub_nanos(&bed).await);
    let naked = start_server(plain, ListenerLimits::default()).await;
    let edged = start_server(guarded, ListenerLimits::default()).await;
    let called = start_server(called, ListenerLimits::default()).await;
    let ask = |port: &TestServer, path: &str| {
        let head = format!("{}Content-Type: application/json\r\n", port.head("POST", path));
        format!("{head}Content-Length: {}\r\n\r\n{HELLO}", HELLO.len())
    };
    for round in 0..4 {
        let one = requests_per_second(&naked, &ask(&naked, "/mcp")).await;
        let two = requests_per_second(&edged, &ask(&edged, "/mcp")).await;
        let three = requests_per_second(&called, &ask(&called, "/tools/echo")).await;
        println!(
            "{round}: bare {one:.0}/s, behind the edge {:.2}, a native call {:.2}",
            two / one,
            three / one
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
