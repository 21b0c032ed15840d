//! The fetch tools against a real server on loopback.
#![expect(clippy::disallowed_methods, reason = "tests listen on loopback")]

use crate::fake_server::bench;
use crate::fetch_toolbox;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get};
use octo_toolkit::{Kind, ToolFixture};
use serde_json::{Value, json};

const PAGE: &str = "<!doctype html><html lang=en><head><title>The Page</title><meta name=description content='About it'>\
    <link rel=canonical href='/own'></head><body><nav><a href='/menu'>Menu</a></nav><main><h1>Heading</h1>\
    <p>First words of a paragraph that is long enough to be the content of this page, so that nobody doubts it.</p>\
    <p>Second\u{200b} paragraph with a <a href='rel'>link</a>, and some more words to make it long enough to count.</p>\
    <table><tr><th>a<th>b<tr><td>1<td>2</table></main><footer>Imprint</footer></body></html>";
const SHELL: &str = "<!doctype html><title>App</title><noscript>You need to enable JavaScript to run this app.</noscript>\
    <div id=\"root\"></div><script src=/a.js></script><script src=/b.js></script>";

fn with_type(kind: &'static str, body: impl Into<Bytes>) -> Response {
    ([("content-type", kind)], body.into()).into_response()
}

async fn server() -> String {
    let router = Router::new()
        .route("/page", get(|| async { with_type("text/html", PAGE) }))
        .route("/moved", get(|| async { Redirect::temporary("/page") }))
        .route("/shell", get(|| async { with_type("text/html", SHELL) }))
        .route(
            "/missing",
            get(|| async {
                (StatusCode::NOT_FOUND, [("content-type", "text/html")], "<p>Nothing <b>here</b>")
                    .into_response()
            }),
        )
        .route(
            "/data",
            get(|| async { with_type("application/json", r#"{"n":12345678901234567890.10,"a":[1]}"#) }),
        )
        .route("/broken", get(|| async { with_type("application/json", "{\"a\": 1,\n \"b\": }") }))
        .route(
            "/login",
            get(|| async { with_type("application/json", "<!doctype html><title>Log in</title>") }),
        )
        .route(
            "/error",
            get(|| async {
                (StatusCode::BAD_REQUEST, [("content-type", "application/json")], r#"{"error":"no"}"#)
                    .into_response()
            }),
        )
        .route("/latin", get(|| async { with_type("text/plain; charset=iso-8859-1", &b"gr\xfcn"[..]) }))
        .route(
            "/feed",
            get(|| async {
                with_type("application/rss+xml", "<?xml version='1.0'?><rss><title>t</title></rss>")
            }),
        )
        .route("/untyped", get(|| async { Response::new(Body::from("<!doctype html><p>found out")) }))
        .route(
            "/png",
            get(|| async {
                with_type("text/html", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\0"[..])
            }),
        )
        .route("/pdf", get(|| async { with_type("application/pdf", "%PDF-1.4\n%EOF") }))
        .route("/long", get(|| async { with_type("text/plain", "0123456789".repeat(1_000)) }))
        .route("/lines", get(|| async { with_type("application/json", "{\"a\": 1}\n{\"a\": 2}") }))
        .route("/slow", get(|| async { std::future::pending::<()>().await }))
        .route(
            "/refresh",
            get(|| async { with_type("text/html", "<meta http-equiv=refresh content='0;url=/page'>") }),
        )
        .route("/echo", any(echo));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn echo(method: Method, RawQuery(query): RawQuery, headers: HeaderMap, body: Bytes) -> Response {
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let echoed = json!({"method": method.as_str(), "query": query, "type": header("content-type"), "x": header("x-mine"),
        "accept": header("accept"), "body": String::from_utf8_lossy(&body)});
    let headers = [("content-type", "application/json"), ("set-cookie", "a=1"), ("x-seen", "yes")];
    (headers, echoed.to_string()).into_response()
}

fn tools() -> ToolFixture {
    bench(fetch_toolbox())
}

async fn fetch(url: &str, more: Value) -> Value {
    let mut input = json!({"url": url});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tools().call("fetch_url", input).await.unwrap()
}

#[tokio::test]
async fn a_page_becomes_markdown_with_what_it_says_of_itself() {
    let base = server().await;
    let answer = fetch(&format!("{base}/moved"), json!({})).await;
    assert_eq!(answer["url"], format!("{base}/page"));
    assert_eq!((&answer["status_code"], &answer["content_type"]), (&json!(200), &json!("text/html")));
    assert_eq!((&answer["title"], &answer["description"]), (&json!("The Page"), &json!("About it")));
    assert_eq!((&answer["truncated"], &answer["byte_count"]), (&json!(false), &json!(PAGE.len())));
    let content = answer["content"].as_str().unwrap();
    assert!(content.contains("Second paragraph with a [link]"), "{content}");
    assert!(content.contains("| a | b |\n| --- | --- |\n| 1 | 2 |"), "{content}");
    assert!(!content.contains("Menu") && !content.contains("Imprint"), "{content}");
    assert_eq!(answer["links"], json!([{"text": "link", "href": format!("{base}/rel")}]));
    assert_eq!(answer["metadata"]["canonical"], format!("{base}/own"));
    assert_eq!(answer["metadata"]["language"], "en");
    assert_eq!(answer["notice"], "Invisible characters removed: 1.");
}

#[tokio::test]
async fn the_shape_of_the_content_can_be_chosen() {
    let base = server().await;
    let url = format!("{base}/page");
    let whole = fetch(
        &url,
        json!({"extract_main_content": false, "include_metadata": false, "include_links": false}),
    )
    .await;
    let content = whole["content"].as_str().unwrap();
    assert!(
        content.contains("Menu") && content.contains("# Heading") && content.contains("Imprint"),
        "{content}"
    );
    assert!(whole.get("title").is_none() && whole.get("metadata").is_none());
    assert_eq!(whole["links"], json!([]));
    let text = fetch(&url, json!({"output_format": "text"})).await;
    assert!(!text["content"].as_str().unwrap().contains(['#', '[', '|']), "{text}");
    let html = fetch(&url, json!({"output_format": "html"})).await;
    assert!(html["content"].as_str().unwrap().contains("<table>"), "{html}");
    let raw = fetch(&url, json!({"output_format": "raw"})).await;
    assert_eq!(raw["content"], PAGE.replace('\u{200b}', ""));
}

#[tokio::test]
async fn what_is_no_page_is_given_as_what_it_is() {
    let base = server().await;
    let rows = [
        ("/data", "{\n  \"n\": 12345678901234567890.10,\n  \"a\": [\n    1\n  ]\n}"),
        ("/broken", "{\"a\": 1,\n \"b\": }"),
        ("/latin", "grün"),
        ("/feed", "<?xml version='1.0'?><rss><title>t</title></rss>"),
        ("/png", "Binary content: image/png, 24 bytes, 512 x 256 pixels."),
    ];
    for (path, expected) in rows {
        let answer = fetch(&format!("{base}{path}"), json!({})).await;
        assert_eq!(answer["content"], expected, "{path}");
    }
    let raw = fetch(&format!("{base}/data"), json!({"output_format": "raw"})).await;
    assert_eq!(raw["content"], r#"{"n":12345678901234567890.10,"a":[1]}"#);
    let untyped = fetch(&format!("{base}/untyped"), json!({})).await;
    assert!(untyped["content"].as_str().unwrap().ends_with("found out"), "{untyped}");
    let pdf = fetch(&format!("{base}/pdf"), json!({})).await;
    assert!(pdf["notice"].as_str().unwrap().contains("PDF"), "{pdf}");
}

#[tokio::test]
async fn an_answer_says_what_is_special_about_it() {
    let base = server().await;
    let missing = fetch(&format!("{base}/missing"), json!({})).await;
    assert_eq!(missing["status_code"], 404);
    assert!(missing["content"].as_str().unwrap().contains("Nothing **here**"), "{missing}");
    assert!(missing["notice"].as_str().unwrap().contains("404 Not Found"), "{missing}");
    let shell = fetch(&format!("{base}/shell"), json!({})).await;
    assert!(shell["notice"].as_str().unwrap().contains("browser_navigate"), "{shell}");
    let cut = fetch(&format!("{base}/long"), json!({"max_bytes": 25})).await;
    assert_eq!((&cut["truncated"], &cut["content"]), (&json!(true), &json!("0123456789012345678901234")));
    let whole = fetch(&format!("{base}/long"), json!({"max_bytes": 10_000})).await;
    assert_eq!(whole["truncated"], false);
    let stays = fetch(&format!("{base}/moved"), json!({"follow_redirects": false})).await;
    assert_eq!(stays["status_code"], 307);
    assert!(stays["notice"].as_str().unwrap().contains("not followed"), "{stays}");
    let refresh = fetch(&format!("{base}/refresh"), json!({})).await;
    assert!(refresh["notice"].as_str().unwrap().contains(&format!("{base}/page")), "{refresh}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_what_to_do() {
    let base = server().await;
    let url = format!("{base}/page");
    let rows = [
        (json!({"url": url, "method": "DELETE"}), Kind::Invalid, "http_request"),
        (json!({"url": url, "method": "G T"}), Kind::Invalid, "method"),
        (json!({"url": url, "body": "x"}), Kind::Invalid, "POST"),
        (json!({"url": url, "max_bytes": 0}), Kind::Invalid, "max_bytes"),
        (json!({"url": url, "timeout_s": 0}), Kind::Invalid, "timeout_s"),
        (json!({"url": url, "headers": {"a b": "c"}}), Kind::Invalid, "header"),
        (json!({"url": url, "headers": {"a": "c\nd: e"}}), Kind::Invalid, "header"),
        (json!({"url": url, "output_format": "pdf"}), Kind::Invalid, "pdf"),
        (json!({"url": format!("{base}/slow"), "timeout_s": 1}), Kind::Timeout, ""),
        (json!({"url": "http://10.0.0.1/"}), Kind::Denied, ""),
        (json!({"url": "file:///etc/passwd"}), Kind::Denied, ""),
    ];
    for (input, kind, word) in rows {
        let error = tools().call("fetch_url", input.clone()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{input}: {error}");
        assert!(error.text().contains(word), "{input}: {error}");
    }
}

#[tokio::test]
async fn a_request_is_sent_as_it_was_asked_for() {
    let base = server().await;
    let send = |input: Value| async move { tools().call("http_request", input).await.unwrap() };
    let url = format!("{base}/echo?a=1");
    let answer =
        send(json!({"method": "put", "url": url, "headers": {"X-Mine": "me"}, "params": {"b": [2, "x y"]},
        "json": {"k": [1, "ü"]}}))
        .await;
    assert_eq!((&answer["status_code"], &answer["truncated"]), (&json!(200), &json!(false)));
    assert_eq!(
        (&answer["headers"]["set-cookie"], &answer["headers"]["x-seen"]),
        (&json!("a=1"), &json!("yes"))
    );
    assert!(answer["elapsed_ms"].is_u64());
    let told: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!((&told["method"], &told["query"]), (&json!("PUT"), &json!("a=1&b=2&b=x+y")));
    assert_eq!((&told["type"], &told["x"]), (&json!("application/json"), &json!("me")));
    assert_eq!(told["body"], r#"{"k":[1,"ü"]}"#);
    let data = send(json!({"method": "POST", "url": url, "data": "a=b", "headers": {"content-type": "application/x-www-form-urlencoded"}})).await;
    let told: Value = serde_json::from_str(data["body"].as_str().unwrap()).unwrap();
    assert_eq!((&told["type"], &told["body"]), (&json!("application/x-www-form-urlencoded"), &json!("a=b")));
    let png = send(json!({"method": "GET", "url": format!("{base}/png")})).await;
    assert_eq!(png["body"], "");
    assert!(png["notice"].as_str().unwrap().contains("binary"), "{png}");
    let missing = send(json!({"method": "GET", "url": format!("{base}/missing"), "max_bytes": 5})).await;
    assert_eq!(
        (&missing["status_code"], &missing["body"], &missing["truncated"]),
        (&json!(404), &json!("<p>No"), &json!(true))
    );
    let notice = missing["notice"].as_str().unwrap_or_default();
    assert!(
        notice.starts_with("The body is truncated after 5 of ") && notice.contains("max_bytes"),
        "{missing}"
    );
    let both =
        tools().call("http_request", json!({"method": "POST", "url": url, "json": 1, "data": "x"})).await;
    assert_eq!(both.unwrap_err().kind, Kind::Invalid);
}

#[tokio::test]
async fn json_comes_as_it_is_or_says_where_it_breaks() {
    let base = server().await;
    let get = |path: &str| {
        let url = format!("{base}{path}");
        async move { tools().call("fetch_json", json!({"url": url})).await }
    };
    let answer = get("/data").await.unwrap();
    assert_eq!((&answer["status_code"], &answer["url"]), (&json!(200), &json!(format!("{base}/data"))));
    assert_eq!(answer["json"]["a"], json!([1]));
    let error = get("/error").await.unwrap();
    assert_eq!((&error["status_code"], &error["json"]["error"]), (&json!(400), &json!("no")));
    let rows = [
        ("/broken", &["line 2 column 7", "{\"a\": 1"][..]),
        ("/login", &["<!doctype html>", "login page", "fetch_url"][..]),
        ("/lines", &["trailing characters at line 2", "http_request"][..]),
        ("/png", &["binary"][..]),
    ];
    for (path, words) in rows {
        let error = get(path).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        for word in words {
            assert!(error.text().contains(word), "{path}: {error}");
        }
        assert!(error.message.len() < 400, "{error}");
    }
}

#[tokio::test]
async fn jq_selects_from_json_before_the_reply_is_built() {
    let base = server().await;
    let send = |tool: &'static str, path: &str, more: Value| {
        let mut input = json!({"url": format!("{base}{path}"), "jq": "/a/0"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        async move { tools().call(tool, input).await }
    };
    let fetched = send("fetch_json", "/data", json!({})).await.unwrap();
    assert_eq!((&fetched["json"], fetched.get("notice")), (&json!(1), None));
    let get = json!({"method": "GET", "max_bytes": 5});
    let requested = send("http_request", "/data", get.clone()).await.unwrap();
    assert_eq!((&requested["json"], &requested["body"]), (&json!(1), &json!("")));
    assert_eq!((&requested["status_code"], &requested["truncated"]), (&json!(200), &json!(false)));
    // Error responses have a different structure.
    let error = send("fetch_json", "/error", json!({})).await.unwrap();
    assert_eq!((&error["json"]["error"], &error["status_code"]), (&json!("no"), &json!(400)));
    assert!(error["notice"].as_str().unwrap().contains("400"), "{error}");
    let missing = send("http_request", "/missing", get.clone()).await.unwrap();
    assert_eq!((&missing["body"], &missing["truncated"]), (&json!("<p>No"), &json!(true)));
    let notice = missing["notice"].as_str().unwrap();
    assert!(notice.contains("404") && notice.contains("truncated after 5"), "{missing}");
    for (tool, path, more, words) in [
        ("fetch_json", "/login", json!({}), "is not JSON"),
        ("http_request", "/page", get.clone(), "is not JSON"),
        ("http_request", "/lines", get.clone(), "without jq"),
        ("http_request", "/png", get.clone(), "binary"),
        ("http_request", "/data", json!({"method": "GET", "jq": "/nosuch"}), "jq: "),
    ] {
        let error = send(tool, path, more).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{tool} {path}: {error}");
        assert!(error.text().contains(words), "{tool} {path}: {error}");
    }
    // A request is not sent again because of an expression.
    let post = json!({"method": "POST", "data": "x"});
    let sent = send("http_request", "/echo", post).await.unwrap();
    assert!(sent["notice"].as_str().unwrap().starts_with("The request was sent"), "{sent}");
    assert!(sent["body"].as_str().unwrap().contains("POST") && sent.get("json").is_none(), "{sent}");
}

#[test]
fn schemas_name_types_and_defaults() {
    let tools = tools();
    let schema = |name: &str| {
        let tool = tools.tools().iter().find(|tool| tool.name == name).unwrap();
        let definition: Value = tool.definition.to_json().to().unwrap();
        definition["inputSchema"].clone()
    };
    let fetch = schema("fetch_url");
    let format = &fetch["properties"]["output_format"];
    assert_eq!((&format["type"], &format["default"]), (&json!("string"), &json!("markdown")), "{format}");
    assert_eq!(format["enum"], json!(["markdown", "text", "html", "raw"]));
    assert_eq!(fetch["properties"]["headers"]["type"], "object");
    assert_eq!(fetch["required"], json!(["url"]));
    let request = schema("http_request");
    let body = request["properties"]["json"].as_object().unwrap();
    assert_eq!(body.keys().collect::<Vec<_>>(), ["description"], "{body:?}");
    assert_eq!(request["properties"]["params"]["type"], "object");
    assert_eq!(schema("fetch_json")["properties"]["timeout_s"]["default"], 10);
}

#[tokio::test]
async fn robots_txt_is_respected_where_the_operator_wants_it() {
    let fake = crate::fake_server::FakeServer::serve(|seen| match seen.path.as_str() {
        "/robots.txt" => crate::fake_server::html(200, "User-agent: *\nDisallow: /private\n"),
        "/moved" => (302, ("location", "/private/x".to_owned()), String::new()),
        _ => crate::fake_server::html(200, "<p>Some words on a page that anybody may read.</p>"),
    })
    .await;
    let spec = |robots: bool| octo_toolkit::net::NetSpec {
        allow: vec!["127.0.0.1".to_owned()],
        user_agent: "octoprox/1 (+mailto:ops@example.com)".to_owned(),
        robots,
        ..octo_toolkit::net::NetSpec::default()
    };
    let at = |path: &str| fake.url.join(path).unwrap().to_string();
    for robots in [false, true] {
        let doors = crate::fake_server::capabilities().with(octo_toolkit::Net::new(spec(robots)).unwrap());
        let bench = ToolFixture::new(crate::fetch_toolbox(), doors);
        bench.call("fetch_url", json!({"url": at("/public")})).await.unwrap();
        for path in ["/private/x", "/%70rivate/x", "/moved"] {
            let private = bench.call("fetch_url", json!({"url": at(path)})).await;
            match robots {
                true => assert!(private.unwrap_err().text().contains("robots.txt of 127.0.0.1 disallows")),
                false => drop(private.unwrap()),
            }
        }
        let asked = fake.requests().iter().filter(|seen| seen.path == "/robots.txt").count();
        assert_eq!(asked, usize::from(robots), "it is asked for once, and only when it is respected");
    }
    assert!(
        fake.requests()
            .iter()
            .all(|seen| seen.headers["user-agent"].to_str().unwrap().contains("+mailto:ops@example.com"))
    );
}
