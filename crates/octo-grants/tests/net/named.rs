//! Configured servers: reached where they are meant to be, and nowhere else.

use crate::ground::{CanaryServer, ScriptedResolver, ask, error_kind, net, serve, serve_at, spec};
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use octo_grants::{Connector, Net};
use octo_model::Kind;
use std::sync::atomic::Ordering;

fn page() -> Router {
    Router::new().route("/", get(|| async { ([(header::CONNECTION, "close")], "page") }))
}

/// As upstreams do: a separate client on the connector.
fn client(net: &Net) -> legacy::Client<Connector, Empty<Bytes>> {
    legacy::Client::builder(TokioExecutor::new()).build(net.connector().unwrap())
}

async fn answers(net: &Net, url: &str) -> bool {
    client(net).get(url.parse().unwrap()).await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_because_it_was_named() {
    let server = serve(page()).await;
    for host in ["127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(error_kind(net(&[]).send(ask(&url)).await), Some(Kind::Denied), "{url} for everybody");
        let way = net(&[]).for_configured_host(&url).unwrap();
        assert_eq!(way.send(ask(&url)).await.unwrap().status, 200, "{url}");
        assert!(answers(&way, &url).await, "{url}");
    }
}

#[tokio::test]
async fn a_public_name_that_comes_to_lead_inside_is_refused_when_connecting() {
    let canary = CanaryServer::new().await;
    let inside: &[&[&str]] =
        &[&["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "::ffff:127.0.0.1"]];
    let names = ScriptedResolver::new(&[
        ("mcp.example.com", inside),
        ("localhost", inside),
        ("mcp.internal", inside),
    ]);
    let url = |host: &str| format!("http://{host}:{}/", canary.port);
    let net = Net::with_resolver(spec(&[]), names.clone()).unwrap();

    let way = net.for_configured_host(&url("mcp.example.com")).unwrap();
    assert_eq!(error_kind(way.send(ask(&url("mcp.example.com"))).await), Some(Kind::Denied));
    assert!(!answers(&way, &url("mcp.example.com")).await);
    assert!(names.asked.load(Ordering::SeqCst) >= 2, "each connection asks anew");
    assert_eq!(canary.count().await, 0);

    for (host, allowed) in
        [("localhost", &["127.0.0.1", "::1"][..]), ("mcp.internal", &["127.0.0.1", "::1", "10.0.0.1"])]
    {
        let way = net.for_configured_host(&url(host)).unwrap();
        let mut found: Vec<String> = way
            .addresses(host, canary.port)
            .await
            .unwrap()
            .iter()
            .map(|found| found.ip().to_string())
            .collect();
        found.sort();
        let mut wanted = allowed.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{host}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_answer_is_checked_with_each_connection() {
    let server = serve_at("127.0.0.2:0".parse().unwrap(), page()).await;
    let names =
        ScriptedResolver::new(&[("mcp.example.com", &[&["127.0.0.2"], &["127.0.0.1"], &["127.0.0.2"]])]);
    let net = Net::with_resolver(spec(&["127.0.0.2"]), names).unwrap();
    let url = format!("http://mcp.example.com:{}/", server.port());
    let way = net.for_configured_host(&url).unwrap();
    let client = client(&way);
    for reached in [true, false, true] {
        assert_eq!(client.get(url.parse().unwrap()).await.is_ok(), reached);
    }
}

#[tokio::test]
async fn the_list_allows_a_public_name_to_be_private() {
    let server = serve(page()).await;
    let names = || ScriptedResolver::new(&[("mcp.example.com", &[&["127.0.0.1"]])]);
    let url = format!("http://mcp.example.com:{}/", server.port());
    for (allow, reached) in [("mcp.example.com", true), ("127.0.0.0/8", true), ("other.example.com", false)] {
        let net = Net::with_resolver(spec(&[allow]), names()).unwrap();
        assert_eq!(answers(&net.for_configured_host(&url).unwrap(), &url).await, reached, "{allow}");
    }
}

#[tokio::test]
async fn the_way_to_one_server_leads_to_no_other() {
    let canary = CanaryServer::new().await;
    let server = serve(page()).await;
    let way = net(&[]).for_configured_host(&format!("http://127.0.0.1:{}/", server.port())).unwrap();
    for other in [
        format!("http://127.0.0.1:{}/", canary.port),
        format!("http://localhost:{}/", canary.port),
        format!("http://localhost:{}/", server.port()),
    ] {
        assert_eq!(error_kind(way.send(ask(&other)).await), Some(Kind::Denied), "{other}");
        assert!(!answers(&way, &other).await, "{other}");
    }
    assert_eq!(canary.count().await, 0);
}

#[tokio::test]
async fn a_redirect_of_a_named_server_stays_with_it() {
    let canary = CanaryServer::new().await;
    let target = format!("http://127.0.0.1:{}/", canary.port);
    let away = move || async move { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, target)]) };
    let echo = |headers: HeaderMap| async move { headers.contains_key(header::AUTHORIZATION).to_string() };
    let home = || async { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/echo")]) };
    let router = Router::new().route("/away", get(away)).route("/home", get(home)).route("/echo", get(echo));
    let server = serve(router).await;
    let way = net(&["127.0.0.1"]).for_configured_host(&format!("http://{server}/")).unwrap();
    let asked = |path: &str| {
        let mut asked = ask(&format!("http://{server}{path}"));
        asked.headers.insert(header::AUTHORIZATION, "secret".parse().unwrap());
        asked
    };
    assert_eq!(error_kind(way.send(asked("/away")).await), Some(Kind::Denied));
    assert_eq!(&way.send(asked("/home")).await.unwrap().body[..], b"true");
    assert_eq!(canary.count().await, 0, "not even when the list would allow it");
}

#[test]
fn only_web_addresses_are_named() {
    for url in ["", "127.0.0.1:80", "ftp://x.example/", "unix:/run/x", "http://", "data:,x"] {
        assert_eq!(error_kind(net(&[]).for_configured_host(url)), Some(Kind::Invalid), "{url}");
    }
}
