//! SEC-HTTP-01, 02, 03, 05 and body limits: what the edge admits and what it refuses.

use super::web_fixture::{ChunkedBody, TOKEN, WebFixture, get, post, request, send, tokens};
use crate::{EdgeSettings, ROUTES, edge};
use axum::Router;
use axum::body::Body;
use axum::routing::get as on_get;
use http::{Request, Version};
use octo_model::Principal;
use serde_json::json;

/// All paths of the table, with their parameters filled in.
fn route_paths() -> Vec<(&'static str, String)> {
    ROUTES
        .iter()
        .map(|route| {
            let path =
                route.path.replace("{name}", "echo").replace("{profile}", "small").replace("{*rest}", "x");
            (route.method, path)
        })
        .chain([("GET", "/nowhere".to_owned()), ("PUT", "/tools".to_owned())])
        .collect()
}

#[tokio::test]
async fn without_tokens_only_the_own_user_gets_in() {
    let bed = WebFixture::new();
    for (method, path) in route_paths() {
        for router in [bed.local(), bed.admin(false)] {
            let ask = || request(method, &path).body(Body::empty()).unwrap();
            let mut other = ask();
            other.extensions_mut().insert(crate::PeerOwner::Other);
            let answer = send(&router, other).await;
            assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text);
            assert_eq!(answer.json()["error"]["hint"], "Ask the operator for a token.", "{}", answer.text);
            // A connection of unknown owner is not admitted either.
            let unknown = tower::ServiceExt::oneshot(router.clone(), ask()).await.unwrap();
            assert_eq!(unknown.status(), 403, "{method} {path}");
        }
        let mut other = request(method, &path).header("authorization", format!("Bearer {TOKEN}"));
        other = other.extension(crate::PeerOwner::Other);
        let answer = send(&bed.secured(), other.body(Body::empty()).unwrap()).await;
        assert!(
            !answer.text.contains("Ask the operator for a token"),
            "with a token it does not matter: {method} {path}"
        );
    }
}

#[tokio::test]
async fn only_allowed_hosts_get_in() {
    let bed = WebFixture::new();
    let good: &[&[&str]] = &[
        &["localhost"],
        &["localhost:7000"],
        &["LocalHost:7000"],
        &["127.0.0.1"],
        &["127.0.0.1:65535"],
        &["[::1]"],
        &["[::1]:7000"],
    ];
    let bad: &[&[&str]] = &[
        &["evil.com"],
        &["127.0.0.1.evil.com"],
        &["localhost.evil.com"],
        &["localhost.evil.com:7000"],
        &["evil.com:7000"],
        &["xlocalhost"],
        &[""],
        &[],
        &["localhost", "localhost"],
        &["localhost", "evil.com"],
        &["localhost."],
        &["127.0.0.1."],
        &["[::ffff:127.0.0.1]"],
        &["[::ffff:127.0.0.1]:7000"],
        &["::1"],
        &["0.0.0.0"],
        &["127.1"],
        &["2130706433"],
        &["127.0.0.1:"],
        &["127.0.0.1:0"],
        &["127.0.0.1:99999"],
        &["127.0.0.1:70 00"],
        &["127.0.0.1@evil.com"],
        &["evil.com@127.0.0.1"],
        &["127.0.0.1, evil.com"],
    ];
    for router in [bed.local(), bed.secured()] {
        for (method, path) in route_paths() {
            for (hosts, passes) in
                good.iter().map(|host| (host, true)).chain(bad.iter().map(|host| (host, false)))
            {
                let mut request = Request::builder().method(method).uri(&path);
                for host in *hosts {
                    request = request.header("host", *host);
                }
                let answer = send(&router, request.body(Body::empty()).unwrap()).await;
                assert_eq!(answer.status != 421, passes, "{method} {path} {hosts:?} {}", answer.status);
                if !passes {
                    assert_eq!(answer.json()["error"]["kind"], "denied");
                }
            }
        }
    }
    assert!(bed.audit_log.0.lock().unwrap().iter().all(|opening| opening.name == "echo"));
}

#[tokio::test]
async fn an_absolute_target_must_agree_with_the_host() {
    let router = WebFixture::new().local();
    for (target, host, version, passes) in [
        ("http://127.0.0.1:7000/health", Some("127.0.0.1:7000"), Version::HTTP_11, true),
        ("http://127.0.0.1:7000/health", Some("127.0.0.1"), Version::HTTP_11, false),
        ("http://evil.com/health", Some("127.0.0.1:7000"), Version::HTTP_11, false),
        ("http://127.0.0.1:7000/health", Some("evil.com"), Version::HTTP_11, false),
        ("http://127.0.0.1:7000/health", None, Version::HTTP_11, false),
        ("http://127.0.0.1:7000/health", None, Version::HTTP_2, true),
        ("http://127.0.0.1:7000/health", Some("127.0.0.1:7000"), Version::HTTP_2, true),
        ("http://evil.com/health", None, Version::HTTP_2, false),
        ("http://evil.com/health", Some("localhost"), Version::HTTP_2, false),
        ("http://user@localhost/health", None, Version::HTTP_2, false),
        ("http://localhost./health", None, Version::HTTP_2, false),
        ("/health", None, Version::HTTP_10, false),
    ] {
        let mut request = Request::builder().uri(target).version(version);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let answer = send(&router, request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status == 200, passes, "{target} {host:?} {version:?} {}", answer.status);
        assert!(passes || answer.status == 421);
    }
}

#[tokio::test]
async fn pages_of_strangers_get_nothing() {
    let bed = WebFixture::new();
    let listed = EdgeSettings {
        allowed_origins: vec!["https://console.example".to_owned()],
        ..EdgeSettings::default()
    };
    let router = edge(bed.rest(false), listed);
    for (origins, passes) in [
        (&[][..], true),
        (&["http://127.0.0.1:7000"], true),
        (&["http://localhost:7000"], true),
        (&["https://console.example"], true),
        (&["null"], false),
        (&["http://127.0.0.1:7001"], false),
        (&["http://127.0.0.1"], false),
        (&["http://console.example"], false),
        (&["https://sub.console.example"], false),
        (&["https://console.example.evil.com"], false),
        (&["http://evil.com"], false),
        (&["http://evil.com:7000"], false),
        (&["file://"], false),
        (&[""], false),
        (&["http://127.0.0.1:7000", "http://127.0.0.1:7000"], false),
        (&["http://127.0.0.1:7000", "http://evil.com"], false),
    ] {
        for (method, path) in route_paths() {
            let mut request = request(method, &path);
            for origin in origins {
                request = request.header("origin", *origin);
            }
            let answer = send(&router, request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status != 403, passes, "{method} {path} {origins:?} {}", answer.status);
            let allowed = if passes { origins.first().copied().unwrap_or_default() } else { "" };
            assert_eq!(answer.header("access-control-allow-origin"), allowed);
            assert_eq!(answer.header("access-control-allow-credentials"), "");
        }
    }
}

#[tokio::test]
async fn preflights_are_answered_for_allowed_origins_only() {
    let router = WebFixture::new().secured();
    let ask = |origin: &str| {
        request("OPTIONS", "/tools/echo")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type")
            .body(Body::empty())
            .unwrap()
    };
    let yes = send(&router, ask("http://localhost:7000")).await;
    assert_eq!(yes.status, 204);
    assert_eq!(yes.header("access-control-allow-origin"), "http://localhost:7000");
    assert_eq!(yes.header("access-control-allow-headers"), "authorization,content-type");
    assert!(yes.header("access-control-allow-methods").contains("POST"));
    assert_eq!(yes.header("vary"), "origin");
    let no = send(&router, ask("http://evil.com")).await;
    assert_eq!((no.status.as_u16(), no.header("access-control-allow-origin")), (403, ""));
    let bare = send(&router, request("OPTIONS", "/tools/echo").body(Body::empty()).unwrap()).await;
    assert_eq!(bare.status, 401);
    let own = request("GET", "/tools").header("origin", "http://localhost:7000").body(Body::empty()).unwrap();
    let refused = send(&router, own).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), "http://localhost:7000");
}

#[tokio::test]
async fn only_json_bodies_are_taken() {
    let router = WebFixture::new().local();
    for (kind, body, status) in [
        (Some("application/json"), r#"{"text":"a"}"#, 200),
        (Some("application/json; charset=utf-8"), r#"{"text":"a"}"#, 200),
        (Some("text/plain"), r#"{"text":"a"}"#, 415),
        (Some("application/x-www-form-urlencoded"), "text=a", 415),
        (Some("multipart/form-data; boundary=x"), "--x--", 415),
        (Some("text/plain"), "", 415),
        (None, r#"{"text":"a"}"#, 415),
        (None, "", 400),
    ] {
        let mut request = request("POST", "/tools/echo");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let answer = send(&router, request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, status, "{kind:?} {body} {}", answer.text);
        assert_eq!(answer.json()["success"], status == 200);
    }
}

#[tokio::test]
async fn tokens_open_what_they_should() {
    let bed = WebFixture::new();
    let router = bed.secured();
    for (token, status) in [
        (Some(format!("Bearer {TOKEN}")), 200),
        (Some(format!("bearer {TOKEN}")), 200),
        (Some(format!("Bearer {TOKEN}x")), 401),
        (Some("Bearer ".to_owned()), 401),
        (Some(format!("Basic {TOKEN}")), 401),
        (Some(format!("Bearer {}", "x".repeat(10_000))), 401),
        (None, 401),
    ] {
        let mut request = request("POST", "/tools/echo").header("content-type", "application/json");
        if let Some(token) = &token {
            request = request.header("authorization", token);
        }
        let answer = send(&router, request.body(Body::from(r#"{"text":"a"}"#)).unwrap()).await;
        assert_eq!(answer.status, status, "{token:?}");
        if status == 401 {
            assert!(answer.header("www-authenticate").starts_with("Bearer"));
            assert_eq!(answer.json()["error"]["kind"], "unauthorized");
            assert!(answer.json()["error"]["hint"].as_str().unwrap().contains("Authorization: Bearer"));
        }
    }
    let seen: Vec<_> =
        bed.audit_log.0.lock().unwrap().iter().map(|opening| opening.principal.clone()).collect();
    let ann = Principal::new("acme", "ann");
    assert_eq!(seen, [ann.clone(), ann]);
    for nowhere in ["/tools/echo?token=correct-horse", "/tools?access_token=correct-horse"] {
        assert_eq!(get(&router, nowhere).await.status, 401);
    }
    let cookie =
        request("GET", "/tools").header("cookie", "token=correct-horse").body(Body::empty()).unwrap();
    assert_eq!(send(&router, cookie).await.status, 401);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let bed = WebFixture::new();
    let settings = EdgeSettings { max_body_bytes: 1_000, ..EdgeSettings::default() };
    let router = edge(bed.rest(false), settings);
    let in_pieces = |text: String| Body::new(ChunkedBody { remaining: text.into_bytes(), stalls: false });
    let sized = |size: usize| json!({"text": "x".repeat(size)}).to_string();
    assert_eq!(post(&router, "/tools/echo", sized(900)).await.status, 200);
    let known = post(&router, "/tools/echo", sized(1_000)).await;
    let chunked = post(&router, "/tools/echo", in_pieces(sized(5_000))).await;
    for answer in [known, chunked] {
        assert_eq!(answer.status, 413);
        assert_eq!(answer.json()["error"]["kind"], "too_large");
        assert_eq!(answer.json()["success"], false);
    }
    assert_eq!(post(&router, "/tools/echo", in_pieces(sized(100))).await.status, 200);
}

#[tokio::test]
async fn two_lengths_are_one_too_many() {
    let request = request("POST", "/tools/echo")
        .header("content-type", "application/json")
        .header("content-length", "2")
        .header("transfer-encoding", "chunked");
    let answer = send(&WebFixture::new().local(), request.body(Body::from("{}")).unwrap()).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_route_outside_the_table_is_refused() {
    let extra = Router::new()
        .route("/backdoor", on_get(|| async { "in" }))
        .route("/.well-known/x", on_get(|| async { "x" }));
    for settings in [EdgeSettings::default(), EdgeSettings { tokens: tokens(), ..EdgeSettings::default() }] {
        let router = edge(extra.clone(), settings);
        assert_eq!(get(&router, "/backdoor").await.status, 404);
        assert_eq!(get(&router, "/.well-known/x").await.text, "x");
    }
}

#[tokio::test]
async fn a_login_begins_and_ends_in_one_browser_where_tokens_are_required() {
    let router = WebFixture::new().admin(true);
    let with = async |method: &str, path: &str, name: &str, value: &str| {
        send(&router, request(method, path).header(name, value).body(Body::empty()).unwrap()).await
    };
    let page = get(&router, "/auth/start/page").await;
    assert_eq!((page.status.as_u16(), page.header("set-cookie")), (200, ""));
    assert!(page.text.contains("Log in at notes") && page.text.contains("login.example"), "{}", page.text);
    assert!(page.text.contains("&lt;b&gt;ann") && !page.text.contains("<b>"), "{}", page.text);
    assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"));
    // With `no-referrer` the browser would send `Origin: null` with the form.
    assert_eq!(page.header("referrer-policy"), "same-origin");
    assert_eq!(get(&router, "/auth/start/other").await.status, 404);

    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
    ] {
        let refused = with("POST", "/auth/start/page", name, value).await;
        assert_eq!((refused.status.as_u16(), refused.header("set-cookie")), (403, ""), "{name}: {value}");
    }
    let left = with("POST", "/auth/start/page", "sec-fetch-site", "same-origin").await;
    assert_eq!((left.status.as_u16(), left.header("location")), (303, "https://login.example/authorize"));
    assert_eq!(with("POST", "/auth/start/other", "sec-fetch-site", "same-origin").await.status, 404);

    let back = "/auth/callback?code=c&state=s";
    for (cookie, title) in [("login=proof", "You are logged in"), ("login=guess", "Almost done")] {
        let page = with("GET", back, "cookie", cookie).await;
        assert!(page.text.contains(title), "{cookie}: {}", page.text);
        assert_eq!(page.header("referrer-policy"), "no-referrer");
    }
    assert!(get(&router, back).await.text.contains("Almost done"));
}
