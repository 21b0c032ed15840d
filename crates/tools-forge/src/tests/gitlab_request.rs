//! `gitlab_request` against a server that pages, refuses and redirects as GitLab does.

use super::tool_schemas::assert_fits;
use crate::fake_server::{FakeReply, FakeServer, RecordedRequest, bench, now};
use crate::{GitlabSettings, TokenKind, gitlab_toolbox};
use octo_toolkit::{Kind, Secret, ToolError, ToolFixture};
use serde_json::{Value, json};
use url::Url;

const SECRET: &str = "glpat-canary-5f2c";

fn settings(url: &Url) -> GitlabSettings {
    GitlabSettings { url: Some(url.clone()), token: Some(Secret::new(SECRET)), ..GitlabSettings::default() }
}

fn ready(url: &Url) -> ToolFixture {
    bench(gitlab_toolbox(settings(url)))
}

/// Lists of 45 issues in pages of `per_page`, in GitLab's format.
fn issues(seen: &RecordedRequest, host: &str) -> FakeReply {
    const ALL: u64 = 45;
    let (page, size) = (seen.number("page", 1), seen.number("per_page", 20));
    let from = (page - 1) * size;
    let items: Vec<Value> =
        (from..ALL.min(from + size)).map(|iid| json!({"iid": iid + 1, "title": "an issue"})).collect();
    let next = (from + size < ALL).then_some(page + 1);
    let mut reply = FakeReply::json(200, &json!(items))
        .with("x-page", page)
        .with("x-per-page", size)
        .with("x-next-page", next.map(|page| page.to_string()).unwrap_or_default())
        .with("x-total", ALL)
        .with("x-runtime", "0.05")
        .with("set-cookie", "_session=1");
    if let (Some(next), false) = (next, seen.query.contains_key("unlinked")) {
        let base = format!("{host}{}", seen.path.trim_start_matches('/'));
        reply = reply.with(
            "link",
            format!(r#"<{base}?page={next}&per_page={size}>; rel="next", <{base}?page=1&per_page={size}>; rel="first""#),
        );
    }
    reply
}

async fn forge() -> FakeServer {
    FakeServer::serve(|seen: &RecordedRequest| {
        let host = format!("http://{}/", seen.header("host").unwrap());
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/api/v4/projects/group%2Fsub%2Fproject/issues") => issues(seen, &host),
            ("GET", "/api/v4/projects/1") => {
                FakeReply::json(200, &json!({"id": 1, "description": "a\u{200b}b\u{202e}"}))
            }
            ("POST", "/api/v4/projects/1/issues") => FakeReply::json(201, &json!({"sent": seen.body})),
            ("DELETE", "/api/v4/projects/1/issues/2") => FakeReply::text(204, ""),
            ("GET", "/api/v4/limited") => FakeReply::json(429, &json!({"message": "429 Too Many Requests"}))
                .with("retry-after", 42)
                .with("ratelimit-remaining", 0),
            ("GET", "/api/v4/limited_by_date") => {
                FakeReply::text(429, "Retry later").with("ratelimit-reset", now().as_second() + 90)
            }
            ("GET", "/api/v4/unauthorized") => FakeReply::json(401, &json!({"message": "401 Unauthorized"})),
            ("GET", "/api/v4/forbidden") => FakeReply::json(403, &json!({"message": "403 Forbidden"})),
            ("GET", "/api/v4/trace") => FakeReply::text(200, "line\u{1b}[31m red\n".repeat(9_000)),
            ("GET", "/api/v4/archive") => {
                FakeReply::text(200, vec![0x1f, 0x8b, 0xff, 0x00]).with("content-type", "application/gzip")
            }
            ("GET", "/api/v4/large") => {
                FakeReply::json(200, &json!(vec![json!({"text": "x".repeat(500)}); 300]))
            }
            ("GET", "/api/v4/tree") => FakeReply::json(200, &json!({"text": "x".repeat(90_000)})),
            _ => FakeReply::json(404, &json!({"message": "404 Not Found"})),
        }
    })
    .await
}

async fn get(bench: &ToolFixture, path: &str) -> Value {
    let answer = bench.call("gitlab_request", json!({"method": "GET", "path": path})).await.unwrap();
    assert_fits(bench.tools(), "gitlab_request", &answer);
    answer
}

#[tokio::test]
async fn a_project_by_its_path_is_one_segment_on_the_wire() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    for input in [
        json!({"method": "GET", "path": "projects/group%2Fsub%2Fproject/issues"}),
        json!({"method": "get", "path": "/api/v4/projects/{id}/issues", "path_params": {"id": "group/sub/project"}}),
        json!({"method": "GET", "path": "/projects/:id/issues", "path_params": {"id": "group/sub/project"}}),
    ] {
        let answer = bench.call("gitlab_request", input).await.unwrap();
        assert_eq!(answer["status_code"], 200, "{answer}");
    }
    for seen in forge.requests() {
        assert_eq!(seen.path, "/api/v4/projects/group%2Fsub%2Fproject/issues");
        assert_eq!(seen.header("private-token"), Some(SECRET));
        assert_eq!(seen.header("authorization"), None);
    }
}

#[tokio::test]
async fn jq_selects_from_the_body() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    let ask = async |method: &str, path: &str, jq: &str, max_bytes: u64| {
        let input = json!({"method": method, "path": path, "jq": jq, "max_bytes": max_bytes});
        bench.call("gitlab_request", input).await
    };
    let issues = "projects/group%2Fsub%2Fproject/issues";
    let answer = ask("GET", issues, "/1/iid", 60_000).await.unwrap();
    assert_fits(bench.tools(), "gitlab_request", &answer);
    assert_eq!((&answer["body"], &answer["headers"]["x-total"]), (&json!(2), &json!("45")));
    let answer = ask("GET", "projects/1", "/description", 60_000).await.unwrap();
    assert_eq!((&answer["body"], answer.get("notice")), (&json!("ab"), None));
    let answer = ask("GET", "large", "", 1_000).await.unwrap();
    assert_eq!((answer["body"].as_array().unwrap().len(), &answer["truncated"]), (1, &json!(true)));

    // A request that may have changed something is answered with its body.
    let answer = ask("POST", "projects/1/issues", "/nothing", 60_000).await.unwrap();
    assert_eq!(answer["body"], json!({"sent": ""}));
    assert!(answer["notice"].as_str().unwrap().contains("The request was sent"), "{answer}");
    let answer = ask("GET", "forbidden", "/message", 60_000).await.unwrap();
    assert_eq!(answer["body"]["message"], "403 Forbidden");
    let error = ask("GET", issues, "/99", 60_000).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    assert!(ask("GET", "trace", "/0", 60_000).await.unwrap_err().message.contains("not JSON"));
}

#[tokio::test]
async fn hostile_paths_send_nothing() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    for path in [
        "https://evil.example/api/v4/x",
        "//evil.example/x",
        "projects/../../admin",
        "projects/%2e%2e/x",
        "..",
        "",
    ] {
        let error = bench.call("gitlab_request", json!({"method": "GET", "path": path})).await.unwrap_err();
        assert!(matches!(error.kind, Kind::Denied | Kind::Invalid), "{path}: {error}");
        assert!(error.hint.is_some(), "{path}");
    }
    for method in ["TRACE", "CONNECT", "OPTIONS", "GET /x", ""] {
        let error =
            bench.call("gitlab_request", json!({"method": method, "path": "projects/1"})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{method}");
    }
    assert_eq!(forge.take_paths(), [""; 0]);
}

#[tokio::test]
async fn pages_are_followed_by_what_next_gives() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    for first in [
        "projects/group%2Fsub%2Fproject/issues?per_page=20",
        "projects/group%2Fsub%2Fproject/issues?per_page=20&unlinked=1",
    ] {
        let (mut path, mut iids, mut pages) = (Some(first.to_owned()), Vec::new(), 0);
        while let Some(asked) = path {
            let answer = get(&bench, &asked).await;
            iids.extend(
                answer["body"].as_array().unwrap().iter().map(|issue| issue["iid"].as_u64().unwrap()),
            );
            assert_eq!(answer["headers"]["x-total"], "45");
            assert!(
                answer["headers"].get("set-cookie").is_none() && answer["headers"].get("x-runtime").is_none()
            );
            path = answer["next"].as_str().map(str::to_owned);
            pages += 1;
        }
        assert_eq!((iids, pages), ((1..=45).collect(), 3), "{first}");
    }
}

#[tokio::test]
async fn bodies_are_sent_and_given_as_json() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    let input = json!({"method": "POST", "path": "projects/1/issues", "body": {"title": "ä"}, "params": {"confidential": true}});
    let answer = bench.call("gitlab_request", input).await.unwrap();
    assert_eq!(answer["body"]["sent"], r#"{"title":"ä"}"#);
    let seen = forge.requests().pop().unwrap();
    assert_eq!(
        (seen.header("content-type"), seen.query["confidential"].as_str()),
        (Some("application/json"), "true")
    );
    let answer = bench
        .call("gitlab_request", json!({"method": "DELETE", "path": "projects/1/issues/2"}))
        .await
        .unwrap();
    assert_eq!((&answer["status_code"], &answer["body"]), (&json!(204), &Value::Null));
    assert_fits(bench.tools(), "gitlab_request", &answer);
    let error = bench
        .call("gitlab_request", json!({"method": "GET", "path": "projects/1", "body": {}}))
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
}

#[tokio::test]
async fn answers_are_cleaned_and_kept_small() {
    let forge = forge().await;
    let bench = ready(&forge.url);
    let answer = get(&bench, "projects/1").await;
    assert_eq!(answer["body"]["description"], "ab");
    assert!(answer["notice"].as_str().unwrap().contains("removed: 2"), "{answer}");

    let answer = get(&bench, "large").await;
    let kept = answer["body"].as_array().unwrap().len();
    assert!(answer["truncated"] == true && (50..300).contains(&kept), "{kept}");
    assert!(answer["notice"].as_str().unwrap().contains(&format!("first {kept} of 300")), "{answer}");
    assert!(answer.to_string().len() < 62_000);

    let answer = get(&bench, "tree").await;
    assert!(answer["truncated"] == true && answer["body"].as_str().unwrap().len() == 60_000);

    let answer = get(&bench, "trace").await;
    let text = answer["body"].as_str().unwrap();
    assert!(answer["truncated"] == true && text.starts_with("line red\nline red\n") && text.len() <= 60_000);

    let answer = get(&bench, "archive").await;
    assert!(answer["body"] == "" && answer["notice"].as_str().unwrap().contains("application/gzip, 4 bytes"));
}

async fn call(bench: &ToolFixture, path: &str) -> Result<Value, ToolError> {
    bench.call("gitlab_request", json!({"method": "GET", "path": path})).await
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let forge = forge().await;
    let known = ready(&forge.url);
    let unknown = bench(gitlab_toolbox(GitlabSettings { token: None, ..settings(&forge.url) }));
    let error = call(&known, "unauthorized").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthorized);
    assert!(
        error.text().contains("rejected the configured token") && error.text().contains("401 Unauthorized"),
        "{error}"
    );
    let error = call(&unknown, "unauthorized").await.unwrap_err();
    assert!(error.kind == Kind::Unauthorized && error.text().contains("set gitlab.token"), "{error}");
    let answer = call(&known, "forbidden").await.unwrap();
    assert!(answer["status_code"] == 403 && answer["notice"].as_str().unwrap().contains("scopes"));
    let answer = call(&known, "projects/group/project").await.unwrap();
    assert!(answer["status_code"] == 404 && answer["notice"].as_str().unwrap().contains("group%2Fproject"));
    let answer = call(&unknown, "projects/9").await.unwrap();
    assert!(answer["notice"].as_str().unwrap().contains("gitlab.token"));
    assert!(forge.requests().last().unwrap().header("private-token").is_none());

    let error = call(&known, "limited").await.unwrap_err();
    assert_eq!((error.kind, error.retry_after.unwrap().as_secs()), (Kind::RateLimited, 42), "{error}");
    assert!(error.text().contains("42 s"), "{error}");
    let other = self::forge().await;
    let error = call(&ready(&other.url), "limited_by_date").await.unwrap_err();
    assert_eq!((error.kind, error.retry_after.unwrap().as_secs()), (Kind::RateLimited, 90), "{error}");
}

#[tokio::test]
async fn tokens_are_sent_as_their_kind_asks() {
    let forge = forge().await;
    for (kind, header, value) in [
        (TokenKind::Private, "private-token", SECRET.to_owned()),
        (TokenKind::Bearer, "authorization", format!("Bearer {SECRET}")),
        (TokenKind::Job, "job-token", SECRET.to_owned()),
    ] {
        let bench = bench(gitlab_toolbox(GitlabSettings { token_kind: kind, ..settings(&forge.url) }));
        get(&bench, "projects/1").await;
        let seen = forge.requests().pop().unwrap();
        let sent = ["private-token", "authorization", "job-token"]
            .into_iter()
            .filter(|name| seen.headers.contains_key(*name));
        assert_eq!(sent.collect::<Vec<_>>(), [header]);
        assert_eq!(seen.header(header), Some(value.as_str()));
    }
}

#[tokio::test]
async fn the_token_never_leaves_its_origin() {
    let elsewhere =
        FakeServer::serve(|_: &RecordedRequest| FakeReply::json(200, &json!({"stolen": true}))).await;
    let target = elsewhere.url_for("/api/v4/projects/1").to_string();
    let forge = FakeServer::serve(move |seen: &RecordedRequest| match seen.path.as_str() {
        "/api/v4/moved" => FakeReply::text(302, "").with("location", &target),
        "/api/v4/moved_twice" => FakeReply::text(307, "").with("location", "/api/v4/moved"),
        _ => FakeReply::json(500, &json!({"message": "oops"})),
    })
    .await;
    let bench = ready(&forge.url);
    for path in ["moved", "moved_twice"] {
        assert_eq!(get(&bench, path).await["body"]["stolen"], true);
    }
    let asked = elsewhere.requests();
    assert_eq!(asked.len(), 2);
    for seen in asked {
        assert!(!format!("{:?}", seen.headers).contains(SECRET), "{:?}", seen.headers);
        assert!(seen.header("private-token").is_none());
    }
    // Requests with side effects do not follow redirects.
    let answer =
        bench.call("gitlab_request", json!({"method": "POST", "path": "moved", "body": {}})).await.unwrap();
    assert_eq!(answer["status_code"], 302);
    assert_eq!(elsewhere.requests().len(), 2);
}

#[tokio::test]
async fn no_error_tells_the_token() {
    let forge = forge().await;
    let gone: Url = "http://127.0.0.1:1/".parse().unwrap();
    for url in [&forge.url, &gone, &"http://10.0.0.1/".parse().unwrap()] {
        for path in ["unauthorized", "limited", "https://evil.example", "projects/%zz"] {
            let called = ready(url)
                .call("gitlab_request", json!({"method": "GET", "path": path, "timeout_s": 2}))
                .await;
            let told = format!("{:?}", called.unwrap_err());
            assert!(!told.contains("canary"), "{told}");
        }
    }
    let help = ready(&forge.url).call("gitlab_tool_help", json!({})).await.unwrap();
    assert!(help["has_token"] == true && !help.to_string().contains("canary"));
}

#[tokio::test]
async fn help_names_every_other_tool_with_a_call_that_fits() {
    let bench = ready(&"https://git.example/".parse().unwrap());
    let help = bench.call("gitlab_tool_help", json!({})).await.unwrap();
    assert_fits(bench.tools(), "gitlab_tool_help", &help);
    assert_eq!(help["api"], "https://git.example/api/v4");
    let mut told: Vec<&str> =
        help["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let mut known: Vec<&str> =
        bench.tools().iter().map(|tool| tool.name).filter(|name| *name != "gitlab_tool_help").collect();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known);
    for tool in help["tools"].as_array().unwrap() {
        let native = bench.tools().iter().find(|native| native.name == tool["name"]).unwrap();
        let definition: Value = native.definition.to_json().to().unwrap();
        assert!(jsonschema::is_valid(&definition["inputSchema"], &tool["example"]), "{tool}");
    }
}
