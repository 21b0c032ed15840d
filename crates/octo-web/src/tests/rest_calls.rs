//! Calls over REST, end to end.

use super::web_fixture::{TOKEN, WebFixture, get, post, request, send};
use axum::body::Body;
use octo_hub::{Decision, PolicySettings, Rule};
use octo_model::{Frontend, Kind};
use octo_ports::Outcome;
use serde_json::{Value, json};

#[tokio::test]
async fn a_call_gives_the_typed_answer_and_how_it_went() {
    let bed = WebFixture::new();
    let answer = post(&bed.local(), "/tools/echo", r#" {"text":"hi","times":2} "#).await;
    assert_eq!(answer.status, 200);
    let reply = answer.json();
    let keys: Vec<&String> = reply.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["success", "result", "error", "metadata", "execution_time_ms"]);
    assert_eq!(reply["success"], true);
    assert_eq!(reply["result"], json!({"lines": ["hi", "hi"]}));
    assert_eq!(reply["error"], Value::Null);
    let id = answer.header("x-request-id");
    assert_eq!(reply["metadata"], json!({"call_id": id, "tool": "echo", "server": "demo"}));
    assert!(reply["execution_time_ms"].is_f64());
    let book = bed.audit_log.0.lock().unwrap();
    assert_eq!((book[0].id.to_string().as_str(), book[0].frontend), (id, Frontend::Rest));
    assert_eq!(*bed.audit_log.1.lock().unwrap(), [Outcome::Ok]);
}

#[tokio::test]
async fn results_are_relayed_as_they_are() {
    let router = WebFixture::new().local();
    let both = post(&router, "/tools/up__both", "").await;
    assert!(both.text.contains(r#""result":{"n":1.50}"#));
    assert_eq!(both.json()["metadata"]["content"][0]["type"], "image");
    assert_eq!(both.json()["metadata"]["content"].as_array().unwrap().len(), 1);
    let picture = post(&router, "/tools/up:picture", "{}").await.json();
    assert_eq!(picture["result"]["content"][0]["type"], "image");
    assert_eq!(picture["metadata"]["tool"], "up__picture");
    assert_eq!(picture["metadata"]["server"], "up");
}

#[tokio::test]
async fn a_failed_tool_is_a_reply_without_success() {
    let router = WebFixture::new().local();
    let failed = post(&router, "/tools/up__fail", "").await;
    assert_eq!(failed.status, 200);
    assert_eq!(failed.json()["success"], false);
    assert_eq!(failed.json()["result"], Value::Null);
    assert_eq!(failed.json()["error"], json!({"kind": "failed", "message": "No such page.", "hint": null}));
    assert_eq!(failed.json()["metadata"]["content"][0]["type"], "image");
    let asks = post(&router, "/tools/up__ask", "").await.json();
    assert_eq!((&asks["success"], &asks["error"]["kind"]), (&json!(false), &json!("failed")));
    let panics = post(&router, "/tools/up__panic", "").await;
    assert_eq!(panics.status, 500);
    assert!(!panics.text.contains("on purpose"));
}

#[tokio::test]
async fn every_kind_of_error_has_its_status_and_shape() {
    let router = WebFixture::new().local();
    for kind in Kind::ALL {
        let answer = post(&router, "/tools/up__error", json!({"kind": kind.as_str()}).to_string()).await;
        let reply = answer.json();
        assert_eq!(answer.status, crate::http_status(kind), "{kind:?}");
        assert_eq!(reply["error"]["kind"], kind.as_str());
        assert_eq!(reply["error"]["hint"], "Do it right.");
        assert_eq!(reply["metadata"]["tool"], "up__error");
        assert!(!answer.text.contains("secret detail"));
        let waits = matches!(kind, Kind::Unavailable | Kind::RateLimited);
        assert_eq!(answer.header("retry-after").is_empty(), !waits);
        assert_eq!(answer.header("www-authenticate").is_empty(), kind != Kind::Unauthorized);
        assert_eq!(answer.header("x-request-id").len(), 32);
    }
}

#[tokio::test]
async fn large_results_are_cut_and_say_so() {
    let reply = post(
        &WebFixture::new().local(),
        "/tools/echo",
        json!({"text": "word ".repeat(100), "times": 50}).to_string(),
    )
    .await
    .json();
    assert_eq!(reply["success"], true);
    assert_eq!(reply["result"]["truncated"], true);
    assert_eq!(reply["metadata"]["truncated"], true);
    assert_eq!(reply["metadata"]["result_handle"], "handle-1");
    assert_eq!(reply["metadata"]["content"][0]["type"], "resource_link");
}

#[tokio::test]
async fn bad_bodies_are_refused_before_the_hub() {
    let bed = WebFixture::new();
    for body in [
        "[]",
        "3",
        "null",
        "\"x\"",
        "{",
        "{}{}",
        r#"{"a":1,"a":2}"#,
        r#"{"a":"\ud800"}"#,
        "{'a':1}",
        "\u{feff}{}",
        r#"{"a":NaN}"#,
        "{\"a\":1,}",
        "nul",
    ] {
        let answer = post(&bed.local(), "/tools/echo", body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["error"]["kind"], "invalid");
    }
    let deep = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(post(&bed.local(), "/tools/echo", deep).await.status, 400);
    assert_eq!(post(&bed.local(), "/tools/echo", vec![b'"', 0xff, b'"']).await.status, 400);
    assert!(bed.audit_log.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn bad_arguments_come_back_with_the_repair() {
    let answer = post(&WebFixture::new().local(), "/tools/echo", r#"{"txt":"a"}"#).await;
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"]["hint"].as_str().unwrap().contains("Did you mean `text`?"));
    let answer = post(&WebFixture::new().local(), "/tools/ecko", "{}").await;
    assert_eq!(answer.status, 404);
    assert!(answer.json()["error"]["hint"].as_str().unwrap().contains("`echo`"));
    assert_eq!(answer.json()["metadata"]["server"], Value::Null);
}

#[tokio::test]
async fn names_in_paths_are_decoded_once() {
    let router = WebFixture::new().local();
    for (path, status) in [
        ("/tools/up%3Apicture", 200),
        ("/tools/up%253Apicture", 404),
        ("/tools/%FF", 400),
        ("/tools/a%2Fb", 404),
        ("/tools/..%2F..%2Fetc", 404),
        ("/tools/%00", 404),
    ] {
        assert_eq!(post(&router, path, "").await.status, status, "{path}");
        let looked = get(&router, path).await;
        assert_eq!(looked.status, status, "{path}");
        looked.json();
    }
}

#[tokio::test]
async fn lists_are_those_of_mcp() {
    let router = WebFixture::new().local();
    let tools = get(&router, "/tools").await.json();
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"echo") && names.contains(&"up__both") && names.contains(&"result_read"));
    let echo = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(*echo, get(&router, "/tools/echo").await.json());
    assert_eq!(get(&router, "/tools/up:both").await.json()["name"], "up__both");
    assert_eq!(get(&router, "/tools/nothing").await.status, 404);
    assert_eq!(get(&router, "/prompts").await.json()["prompts"][0]["name"], "up__greet");
    for path in ["/tools", "/prompts"] {
        let (plain, slash) = (get(&router, path).await, get(&router, &format!("{path}/")).await);
        assert_eq!((slash.status.as_u16(), slash.json()), (200, plain.json()), "{path}/");
    }
    assert_eq!(echo["tags"], json!(["demo"]), "a tool has its toolbox for a tag");
    assert_eq!(get(&router, "/prompts").await.json()["prompts"][0]["tags"], json!(["up"]));
}

#[tokio::test]
async fn profiles_choose_what_is_seen() {
    let bed = WebFixture::new();
    let router = bed.local();
    let small = get(&router, "/tools?profile=small").await.json();
    assert_eq!(small["tools"].as_array().unwrap().len(), 1);
    let bare = request("GET", "/tools").header("x-octoprox-profile", "bare").body(Body::empty()).unwrap();
    assert!(send(&router, bare).await.text.contains(r#""name":"both""#));
    for (path, header, status) in [
        ("/tools?profile=nobody", None, 404),
        ("/tools?profil=small", None, 400),
        ("/tools?profile=small&profile=bare", None, 400),
        ("/tools?profile=small", Some("bare"), 400),
        ("/tools?profile=small", Some("small"), 200),
        ("/tools?profile=", None, 200),
        ("/tools/up__both?profile=small", None, 404),
    ] {
        let mut ask = request("GET", path);
        if let Some(header) = header {
            ask = ask.header("x-octoprox-profile", header);
        }
        assert_eq!(send(&router, ask.body(Body::empty()).unwrap()).await.status, status, "{path} {header:?}");
    }
    assert_eq!(post(&router, "/tools/up__both?profile=small", "").await.status, 404);
    let called =
        request("POST", "/tools/both").header("x-octoprox-profile", "bare").body(Body::empty()).unwrap();
    assert_eq!(send(&router, called).await.json()["metadata"]["server"], "up");
    assert_eq!(bed.audit_log.0.lock().unwrap().last().unwrap().profile, "bare");
}

#[tokio::test]
async fn policy_hides_and_refuses() {
    let rule = Rule {
        name: "no-echo".to_owned(),
        tools: vec!["echo".to_owned()],
        effects: Vec::new(),
        callers: Vec::new(),
        decision: Decision::Deny,
        hint: None,
    };
    let router =
        WebFixture::with(PolicySettings { rules: vec![rule], ..PolicySettings::default() }, None).local();
    assert!(!get(&router, "/tools").await.text.contains(r#""name":"echo""#));
    assert_eq!(get(&router, "/tools/echo").await.status, 404);
    assert!(!get(&router, "/openapi.json").await.text.contains("/tools/echo"));
    assert_eq!(post(&router, "/tools/echo", r#"{"text":"a"}"#).await.status, 403);
}

#[tokio::test]
async fn prompts_are_filled_in() {
    let answer = post(&WebFixture::new().local(), "/prompts/up__greet", r#"{"who":"Ann"}"#).await;
    assert_eq!(answer.json()["result"]["messages"][0]["content"]["text"], "Hello Ann");
    assert_eq!(answer.json()["metadata"]["prompt"], "up__greet");
    assert_eq!(post(&WebFixture::new().local(), "/prompts/none", "").await.status, 404);
}

#[tokio::test]
async fn a_call_ends_when_its_caller_said() {
    let bed = WebFixture::new();
    let ask = |millis: &str| {
        request("POST", "/tools/up__slow")
            .header("x-octoprox-timeout-ms", millis)
            .body(Body::empty())
            .unwrap()
    };
    let begun = tokio::time::Instant::now();
    let late = send(&bed.local(), ask("250")).await;
    assert_eq!(late.status, 504);
    assert!(begun.elapsed().as_millis() < 2_000);
    assert_eq!(*bed.upstream.waiting.borrow(), 0);
    for bad in ["", "0", "-1", "+5", "1.5", "soon", "99999999999999999999999"] {
        assert_eq!(send(&bed.local(), ask(bad)).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_trace_is_joined() {
    let bed = WebFixture::new();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (sent, kept) in [(parent, Some(parent)), ("rubbish", None)] {
        let ask = request("POST", "/tools/up__both").header("traceparent", sent).body(Body::empty()).unwrap();
        assert_eq!(send(&bed.local(), ask).await.status, 200);
        assert_eq!(bed.audit_log.0.lock().unwrap().last().unwrap().trace.as_deref(), kept);
    }
}

#[tokio::test]
async fn says_how_it_is_doing() {
    let bed = WebFixture::new();
    let (open, local) = (bed.secured(), bed.local());
    let health = get(&open, "/health").await.json();
    assert_eq!(health, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}));
    let stranger = get(&open, "/ready").await.json();
    assert_eq!(stranger, json!({"status": "ready"}), "strangers learn nothing else");
    let ready = get(&local, "/ready").await.json();
    assert_eq!(
        ready["sources"][0],
        json!({"name": "demo", "native": true, "state": "ready", "tools": 1, "prompts": 0})
    );
    bed.upstream.go_down("10.1.2.3 refused");
    let anyone = get(&open, "/ready").await;
    assert_eq!(anyone.json(), json!({"status": "ready"}));
    assert_eq!(get(&local, "/ready").await.json()["status"], "degraded");
    assert!(get(&local, "/ready").await.text.contains("10.1.2.3"));
    let metrics = get(&local, "/metrics").await;
    assert_eq!((metrics.text.as_str(), metrics.status.as_u16()), ("octoprox_up 1\n", 200));
    assert!(metrics.header("content-type").starts_with("text/plain"));
    // Metrics name all servers and tools, so they need the admin scope.
    let caller = request("GET", "/metrics").header("authorization", format!("Bearer {TOKEN}"));
    let refused = send(&open, caller.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.status.as_u16(), 403, "{}", refused.text);
}
