//! Names whose answers change, and allow lists that allow exactly what they list.

use crate::ground::{CanaryServer, ScriptedResolver, ask, error_kind, serve_at, spec};
use axum::Router;
use axum::http::header;
use axum::routing::get;
use octo_grants::Net;
use octo_model::Kind;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// Serves at another loopback address than the canary's, on the same port from the client's view.
async fn page(address: &str, port: u16) -> Option<SocketAddr> {
    let closing = || async { ([(header::CONNECTION, "close")], "page") };
    let address: SocketAddr = format!("{address}:{port}").parse().unwrap();
    Some(serve_at(address, Router::new().route("/", get(closing))).await)
}

#[tokio::test]
async fn a_name_that_changes_its_answer_finds_nothing() {
    let server = page("127.0.0.2", 0).await.unwrap();
    let names = ScriptedResolver::new(&[(
        "flip.test",
        &[&["127.0.0.2"], &["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1"]],
    )]);
    let net = Net::with_resolver(spec(&["127.0.0.2"]), names.clone()).unwrap();
    let url = format!("http://flip.test:{}/", server.port());
    for round in 0..2 {
        let answer = net.send(ask(&url)).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"page"[..]), "round {round}");
        assert_eq!(error_kind(net.send(ask(&url)).await), Some(Kind::Denied), "round {round}");
    }
    assert_eq!(
        names.asked.load(Ordering::SeqCst),
        4,
        "one question for each connection: what is checked is what is used"
    );
}

#[tokio::test]
async fn of_mixed_answers_only_the_allowed_are_connected_to() {
    let canary = CanaryServer::new().await;
    let names = ScriptedResolver::new(&[(
        "mixed.test",
        &[&["127.0.0.1", "::1", "10.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"]],
    )]);
    let net = Net::with_resolver(spec(&["127.0.0.2"]), names).unwrap();
    let addresses = net.addresses("mixed.test", canary.port).await.unwrap();
    assert_eq!(addresses, [SocketAddr::new("127.0.0.2".parse().unwrap(), canary.port)]);
    let stream = net.connect("mixed.test", canary.port).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), addresses[0]);
    assert_eq!(canary.count().await, 1);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let server = page("127.0.0.3", 0).await.unwrap();
    let names = ScriptedResolver::new(&[("two.test", &[&["127.0.0.2", "127.0.0.3"]])]);
    let net = Net::with_resolver(spec(&["127.0.0.0/8"]), names).unwrap();
    assert_eq!(
        net.send(ask(&format!("http://two.test:{}/", server.port()))).await.unwrap().status.as_u16(),
        200
    );
}

#[tokio::test]
async fn an_allowed_host_is_allowed_at_its_port_and_under_its_name_only() {
    let server = page("127.0.0.1", 0).await.unwrap();
    let port = server.port();
    let here: &[&[&str]] = &[&["127.0.0.1"]];
    let names =
        ["api.local", "other.local", "a.corp.example", "corp.example", "port.local"].map(|name| (name, here));
    let allow = ["api.local".to_owned(), "*.corp.example".to_owned(), format!("port.local:{}", port ^ 1)];
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    let net = Net::with_resolver(spec(&allow), ScriptedResolver::new(&names)).unwrap();
    for (host, allowed) in [
        ("api.local", true),
        ("API.local", true),
        ("a.corp.example", true),
        ("corp.example", false),
        ("other.local", false),
        ("port.local", false),
        ("127.0.0.1", false),
        ("127.1", false),
        ("[::ffff:127.0.0.1]", false),
    ] {
        let answer = net.send(ask(&format!("http://{host}:{port}/"))).await;
        assert_eq!(error_kind(answer), (!allowed).then_some(Kind::Denied), "{host}");
    }
}

#[tokio::test]
async fn a_name_without_an_address_and_a_port_without_a_server_are_unavailable() {
    let names = ScriptedResolver::new(&[("empty.test", &[&[]]), ("down.test", &[&["127.0.0.1"]])]);
    let net = Net::with_resolver(spec(&["127.0.0.1"]), names).unwrap();
    for url in
        ["http://unknown.test/", "http://empty.test/", "http://down.test:1024/", "https://down.test:1024/"]
    {
        let error = net.send(ask(url)).await.err().unwrap();
        assert_eq!(error.kind, Kind::Unavailable, "{url}");
        assert!(!error.text().contains("127.0.0.1"), "the caller is not told where a name leads: {error}");
    }
}

#[tokio::test]
async fn a_port_of_another_protocol_is_not_connected_to() {
    let names = ScriptedResolver::new(&[("git.local", &[&["127.0.0.1"]])]);
    let net = Net::with_resolver(spec(&["127.0.0.1"]), names).unwrap();
    for host in ["git.local", "127.0.0.1"] {
        assert_eq!(error_kind(net.connect(host, 22).await), Some(Kind::Denied));
        assert_eq!(error_kind(net.send(ask(&format!("http://{host}:22/"))).await), Some(Kind::Denied));
        assert!(net.addresses(host, 5432).await.is_ok(), "drivers have ports of their own");
    }
}
