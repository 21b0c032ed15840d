//! Redirects against real servers: every hop is checked, and credentials stay with their origin.

use crate::ground::{CanaryServer, ScriptedResolver, ask, error_kind, net, serve, spec};
use axum::Router;
use axum::extract::{Path, Query, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use octo_grants::Net;
use octo_grants::net::NetRequest;
use octo_model::Kind;
use std::collections::HashMap;

/// `/to/STATUS?at=URL` redirects there, `/hops/N?at=URL` after N more hops, `/echo` returns the request.
fn site() -> Router {
    let to = |Path(status): Path<u16>, Query(query): Query<HashMap<String, String>>| async move {
        (StatusCode::from_u16(status).unwrap(), [(header::LOCATION, query["at"].clone())])
    };
    let hops = |Path(left): Path<usize>, Query(query): Query<HashMap<String, String>>| async move {
        let at = &query["at"];
        let next = if left == 0 { at.clone() } else { format!("/hops/{}?at={at}", left - 1) };
        (StatusCode::FOUND, [(header::LOCATION, next)])
    };
    Router::new()
        .route("/to/{status}", any(to))
        .route("/hops/{left}", any(hops))
        .route("/nowhere", any(|| async { StatusCode::FOUND }))
        .route("/echo", any(echo))
}

async fn echo(request: Request) -> impl IntoResponse {
    let mut lines = vec![request.method().to_string()];
    let headers: &HeaderMap = request.headers();
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())));
    let body = axum::body::to_bytes(request.into_body(), 1000).await.unwrap();
    lines.push(format!("body: {}", String::from_utf8_lossy(&body)));
    lines.join("\n")
}

async fn text(net: &Net, ask: NetRequest) -> String {
    String::from_utf8(net.send(ask).await.unwrap().body.to_vec()).unwrap()
}

fn with_credentials(mut ask: NetRequest) -> NetRequest {
    for name in ["authorization", "cookie", "x-api-key", "private-token"] {
        ask.headers.insert(name, "secret".parse().unwrap());
    }
    ask.headers.insert("accept-language", "de".parse().unwrap());
    ask
}

#[tokio::test]
async fn no_redirect_leads_to_a_private_address() {
    let canary = CanaryServer::new().await;
    let home = serve(site()).await;
    let names = ScriptedResolver::new(&[
        ("home.test", &[&["127.0.0.1"]]),
        ("trap.test", &[&["127.0.0.1"], &["::1"]]),
    ]);
    let net = Net::with_resolver(spec(&["home.test"]), names).unwrap();
    let port = canary.port;
    let mut asked = 0;
    for host in
        ["127.0.0.1", "127.1", "[::1]", "[::ffff:7f00:1]", "0", "2130706433", "trap.test", "localhost"]
    {
        for status in [301, 302, 303, 307, 308] {
            let url = format!("http://home.test:{}/to/{status}?at=http://{host}:{port}/", home.port());
            let error = net.send(ask(&url)).await.err().unwrap();
            let missing = host == "localhost" && error.kind == Kind::Unavailable;
            assert!(error.kind == Kind::Denied || missing, "{url}: {error}");
            asked += 1;
        }
        for hops in 1..=8 {
            let url = format!("http://home.test:{}/hops/{hops}?at=http://{host}:{port}/", home.port());
            assert!(net.send(ask(&url)).await.is_err(), "{url}");
            asked += 1;
        }
    }
    assert_eq!((asked, canary.count().await), (8 * 13, 0));
}

#[tokio::test]
async fn no_redirect_leads_out_of_the_web() {
    let home = serve(site()).await;
    let net = net(&["127.0.0.1"]);
    for at in [
        "file:///etc/passwd",
        "gopher://127.0.0.1/x",
        "ftp://127.0.0.1/",
        "data:text/html,x",
        "javascript:alert(1)",
        "http://user:pw@127.0.0.1/",
        "http://127.0.0.1:22/",
        "about:blank",
    ] {
        let answer = net.send(ask(&format!("http://{home}/to/302?at={at}"))).await;
        assert_eq!(error_kind(answer), Some(Kind::Denied), "{at}");
    }
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_origin() {
    let (home, away) = (serve(site()).await, serve(site()).await);
    let net = net(&["127.0.0.1"]);
    for status in [301, 302, 303, 307, 308] {
        let same = with_credentials(ask(&format!("http://{home}/to/{status}?at=/echo")));
        assert_eq!(text(&net, same).await.matches("secret").count(), 4, "{status}");
        let other = with_credentials(ask(&format!("http://{home}/to/{status}?at=http://{away}/echo")));
        let other = text(&net, other).await;
        assert!(!other.contains("secret") && other.contains("accept-language: de"), "{status} {other}");
        // Not even when it returns to the origin.
        let back = format!("http://{home}/to/{status}?at=http://{away}/to/302?at=http://{home}/echo");
        assert!(!text(&net, with_credentials(ask(&back))).await.contains("secret"), "{status}");
    }
}

#[tokio::test]
async fn method_and_body_are_kept_or_dropped_as_in_browsers() {
    let home = serve(site()).await;
    let net = net(&["127.0.0.1"]);
    for (status, first, last) in [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
    ] {
        let ask = ask(&format!("http://{home}/to/{status}?at=/echo"));
        let ask = NetRequest { method: first.parse().unwrap(), body: Some("payload".into()), ..ask };
        let said = text(&net, ask).await;
        assert!(said.starts_with(last), "{status} {first}: {said}");
        assert_eq!(said.contains("payload"), last != "GET", "{status} {first}: {said}");
    }
}

#[tokio::test]
async fn redirects_are_followed_as_often_as_asked_and_no_further() {
    let home = serve(site()).await;
    let net = net(&["127.0.0.1"]);
    let url = format!("http://{home}/hops/4?at=/echo");
    for (redirects, kind) in [(5, None), (4, Some(Kind::Unavailable)), (1, Some(Kind::Unavailable))] {
        let answer = net.send(NetRequest { max_redirects: redirects, ..ask(&url) }).await;
        assert_eq!(answer.err().map(|error| error.kind), kind, "{redirects}");
    }
    let unfollowed = net.send(NetRequest { max_redirects: 0, ..ask(&url) }).await.unwrap();
    assert_eq!((unfollowed.status.as_u16(), unfollowed.url.as_str()), (302, url.as_str()));
    let followed = net.send(ask(&format!("{url}#part"))).await.unwrap();
    assert_eq!(followed.url.as_str(), format!("http://{home}/echo#part"));
    assert_eq!(net.send(ask(&format!("http://{home}/nowhere"))).await.unwrap().status.as_u16(), 302);
    let endless = NetRequest { max_redirects: 1000, ..ask(&format!("http://{home}/hops/500?at=/echo")) };
    assert_eq!(error_kind(net.send(endless).await), Some(Kind::Unavailable));
}
