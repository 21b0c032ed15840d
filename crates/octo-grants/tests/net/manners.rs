//! Politeness towards servers: few concurrent requests, reused connections, `Retry-After` respected and passed on.

use crate::ground::{ask, error_kind, net, serve, spec, wait_until};
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetSpec};
use octo_model::Kind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::test]
async fn only_so_many_requests_reach_a_server_at_once() {
    let (now, most, open) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (inside, peak, gate) = (now.clone(), most.clone(), open.clone());
    let slow = move || async move {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        wait_until("the gate opens", || gate.load(Ordering::SeqCst)).await;
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    let server = serve(Router::new().route("/", get(slow))).await;
    let net = Net::new(NetSpec { per_host: 3, ..spec(&["127.0.0.1"]) }).unwrap();
    let asked: Vec<_> = (0..12)
        .map(|_| {
            let net = net.clone();
            tokio::spawn(async move {
                net.send(ask(&format!("http://{server}/"))).await.map(|answer| answer.status)
            })
        })
        .collect();
    wait_until("three are inside", || now.load(Ordering::SeqCst) == 3).await;
    open.store(true, Ordering::SeqCst);
    for answer in asked {
        assert_eq!(answer.await.unwrap().unwrap(), 200);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_request_that_was_given_up_gives_its_turn_back() {
    let hanging = get(std::future::pending::<()>);
    let server = serve(Router::new().route("/hang", hanging).route("/", get(|| async { "x" }))).await;
    let net = Net::new(NetSpec { per_host: 1, ..spec(&["127.0.0.1"]) }).unwrap();
    for _ in 0..3 {
        let hang =
            NetRequest { timeout: Duration::from_millis(100), ..ask(&format!("http://{server}/hang")) };
        assert_eq!(error_kind(net.send(hang).await), Some(Kind::Timeout));
    }
    assert_eq!(net.send(ask(&format!("http://{server}/"))).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_server_that_asks_for_silence_gets_it() {
    let busy = |Path((status, seconds)): Path<(u16, String)>| async move {
        (StatusCode::from_u16(status).unwrap(), [(header::RETRY_AFTER, seconds)])
    };
    let router =
        || Router::new().route("/busy/{status}/{seconds}", get(busy)).route("/", get(|| async { "x" }));
    for status in [429, 503] {
        let (server, other) = (serve(router()).await, serve(router()).await);
        let net = net(&["127.0.0.1"]);
        let told = net.send(ask(&format!("http://{server}/busy/{status}/1"))).await.unwrap();
        assert_eq!(told.status, status, "it is an answer like any other");
        let start = Instant::now();
        assert_eq!(net.send(ask(&format!("http://{server}/"))).await.unwrap().status, 200);
        assert!(start.elapsed() > Duration::from_millis(900), "{:?}", start.elapsed());

        net.send(ask(&format!("http://{server}/busy/{status}/60"))).await.unwrap();
        let error = net.send(ask(&format!("http://{server}/"))).await.err().unwrap();
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.retry_after.is_some_and(|wait| wait > Duration::from_secs(50)), "{error:?}");
        assert_eq!(net.send(ask(&format!("http://{other}/"))).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let counter = accepted.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx").await.unwrap();
                }
            });
        }
    });
    let net = net(&["127.0.0.1"]);
    for _ in 0..10 {
        assert_eq!(&net.send(ask(&url)).await.unwrap().body[..], b"x");
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

async fn echo(headers: HeaderMap) -> impl IntoResponse {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
    (StatusCode::IM_A_TEAPOT, lines.collect::<String>())
}

#[tokio::test]
async fn headers_are_the_callers_where_they_may_be() {
    let server = serve(Router::new().route("/", any(echo))).await;
    let net = net(&["127.0.0.1"]);
    let mut asked = ask(&format!("http://{server}/"));
    asked.headers.insert("x-mine", "yes".parse().unwrap());
    asked.headers.insert("accept-encoding", "compress".parse().unwrap());
    let answer = net.send(asked.clone()).await.unwrap();
    let said = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(answer.status, StatusCode::IM_A_TEAPOT, "a refusal keeps its body");
    for line in [
        "x-mine: yes",
        "accept-encoding: gzip, deflate, br, zstd",
        "user-agent: octoprox/",
        &format!("host: {server}"),
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    for name in ["host", "content-length", "transfer-encoding", "connection", "proxy-authorization"] {
        let mut asked = asked.clone();
        asked.headers.insert(name, "x".parse().unwrap());
        assert_eq!(error_kind(net.send(asked).await), Some(Kind::Invalid), "{name}");
    }
    for method in ["CONNECT", "TRACE"] {
        let asked = NetRequest { method: method.parse().unwrap(), ..asked.clone() };
        assert_eq!(error_kind(net.send(asked).await), Some(Kind::Invalid), "{method}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_said_to_have_none() {
    let server = serve(Router::new()).await;
    let error = net(&["127.0.0.1"]).send(ask(&format!("https://{server}/"))).await.err().unwrap();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("TLS connection"), "{error}");
}
