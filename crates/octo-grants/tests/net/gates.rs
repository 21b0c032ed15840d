//! Egress for programs that connect by themselves.

use crate::ground::{CanaryServer, ScriptedResolver, error_kind, net, serve, spec};
use axum::Router;
use axum::routing::get;
use octo_grants::Net;
use octo_model::Kind;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Response of a proxy to a request line that starts with this text.
async fn through(proxy: &str, request: &str) -> String {
    let (credentials, address) = proxy.strip_prefix("http://").unwrap().split_once('@').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut sent = String::new();
    for line in request.lines() {
        sent.push_str(&line.replace("KNOWN", &base64(credentials)));
        sent.push_str("\r\n");
    }
    stream.write_all(format!("{sent}\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]);
            out.push(if place > three.len() { '=' } else { letter });
        }
    }
    out
}

#[tokio::test]
async fn a_gate_lets_through_what_policy_allows_and_only_for_who_knows_its_password() {
    let canary = CanaryServer::new().await;
    let server = serve(Router::new().route("/", get(|| async { "page" }))).await;
    let allow = server.to_string();
    let gate = net(&[&allow]).egress_proxy().await.unwrap();
    let login = "Proxy-Authorization: Basic KNOWN";
    for (request, answer) in [
        (format!("GET http://{server}/ HTTP/1.1\nHost: x\n{login}\n"), "200"),
        (format!("CONNECT {server} HTTP/1.1\nHost: x\n{login}\n"), "200"),
        (format!("GET http://{server}/ HTTP/1.1\nHost: x\n"), "407"),
        (format!("CONNECT {server} HTTP/1.1\nHost: x\n"), "407"),
        (format!("CONNECT 127.0.0.1:{} HTTP/1.1\nHost: x\n{login}\n", canary.port), "403"),
        (format!("CONNECT localhost:{} HTTP/1.1\nHost: x\n{login}\n", canary.port), "403"),
        (format!("GET http://[::1]:{}/ HTTP/1.1\nHost: x\n{login}\n", canary.port), "403"),
        (format!("CONNECT {server} HTTP/1.1\nHost: x\nProxy-Authorization: Basic Zm9v\n"), "407"),
    ] {
        let said = through(&gate.url(), &request).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {answer}")), "{request}: {said}");
    }
    assert_eq!(canary.count().await, 0);
}

#[tokio::test]
async fn a_relay_leads_to_the_address_that_was_checked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-x").await.unwrap();
    });
    // Known to this resolver only, and public only for the first two lookups.
    let names = ScriptedResolver::new(&[("git.test", &[&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.9"]])]);
    let net = Net::with_resolver(spec(&["127.0.0.1"]), names.clone()).unwrap();
    let relay = net.relay("git.test", port).await.unwrap();
    let said = |stream: TcpStream| async move {
        let (mut stream, mut said) = (stream, String::new());
        let _ = stream.read_to_string(&mut said).await;
        said
    };
    let address = ("127.0.0.1", relay.port());
    assert_eq!(said(TcpStream::connect(address).await.unwrap()).await, "SSH-2.0-x");
    assert_eq!(said(TcpStream::connect(address).await.unwrap()).await, "", "the name has changed its answer");
    assert_eq!(names.asked.load(Ordering::SeqCst), 3);
    drop(relay);
    crate::ground::wait_until("the port is closed", || std::net::TcpStream::connect(address).is_err()).await;
}

#[tokio::test]
async fn a_relay_to_what_is_not_allowed_is_not_made() {
    let canary = CanaryServer::new().await;
    let names = ScriptedResolver::new(&[("git.test", &[&["127.0.0.1"]]), ("mail.test", &[&["1.1.1.1"]])]);
    let net = Net::with_resolver(spec(&[]), names).unwrap();
    for host in ["git.test", "127.0.0.1", "::1", "[::1]", "0", "169.254.169.254"] {
        assert_eq!(error_kind(net.relay(host, canary.port).await), Some(Kind::Denied), "{host}");
    }
    assert_eq!(error_kind(net.relay("mail.test", 25).await), Some(Kind::Denied), "another protocol's port");
    assert!(net.relay("mail.test", 22).await.is_ok());
    assert_eq!(canary.count().await, 0);
}
