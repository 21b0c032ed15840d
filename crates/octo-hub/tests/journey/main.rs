//! A call through the pipeline, stage by stage.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

mod code_types;
mod found_names;
mod hub_fixture;
mod large_replies;
mod limits;
mod list_epochs;
mod name_resolution;
mod overload;
mod policy_engine;
mod profiles;
mod shared_limits;
mod surfaces;
mod tool_search;
mod tool_search_speed;

use hub_fixture::{HubFixture, ScriptedSource, tool};
use octo_hub::{CacheRule, Change, Decision, LimitRule, PolicySettings, Profile, ProfileSettings, Rule};
use octo_model::{Caller, ItemKind, Json, JsonObject, Kind, Method, Operation, Principal, Remedy, ToolError};
use octo_ports::{AuditLog, Outcome};
use octo_toolkit::{Audience, Event, Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn upstream(names: &[&str]) -> Arc<ScriptedSource> {
    ScriptedSource::new("up", names.iter().map(|name| tool(name)).collect())
}

fn simple_fixture(names: &[&str]) -> HubFixture {
    HubFixture::new(vec![upstream(names)], |_| {})
}

fn error_kind(outcome: Result<JsonObject, ToolError>) -> Kind {
    outcome.expect_err("it should fail").kind
}

async fn listed_names(bench: &HubFixture, profile: &str) -> Vec<String> {
    let page = bench.hub.list(profile, ItemKind::Tool, &Caller::local(), None).await.unwrap();
    let tools: Vec<Value> = page.items.to().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_and_calls_under_every_accepted_name_and_keeps_unknown_members() {
    let bench = simple_fixture(&["do"]);
    assert_eq!(listed_names(&bench, "").await, ["result_read", "tools_call", "tools_find", "up__do"]);
    for name in ["up__do", "up:do"] {
        let result = bench.call(name, json!({})).await.unwrap();
        assert_eq!(result.get("vendor").unwrap().as_str(), "1.50");
    }
    let page = bench.hub.list("", ItemKind::Tool, &Caller::local(), None).await.unwrap();
    assert!(page.items.as_str().contains(r#""vendor":{"kept":1.5}"#));
}

#[tokio::test]
async fn a_wrong_name_is_answered_with_a_close_one() {
    let error = simple_fixture(&["search"]).call("up__serch", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    assert_eq!(error.hint.as_deref(), Some("Did you mean `up__search`?"));
    let rpc = error.rpc.unwrap();
    assert_eq!(
        (rpc.code, rpc.message.as_str()),
        (-32602, "Tool not found: `up__serch`. Did you mean `up__search`?")
    );
    assert_eq!(rpc.data.unwrap().to::<Value>().unwrap(), json!({"hint": "Did you mean `up__search`?"}));
}

#[tokio::test]
async fn arguments_are_held_against_the_schema() {
    let bench = simple_fixture(&["do"]);
    let error = bench.call("up__do", json!({"n": "three"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.message.contains('n') && error.hint.unwrap().contains("parameters"));
    assert_eq!(error_kind(bench.call("up__do", json!([1])).await), Kind::Invalid);
    let error = bench.call("result_read", json!({"handel": "x"})).await.unwrap_err();
    assert_eq!(error.message, "Unknown parameter `handel`.");
    assert!(error.hint.unwrap().starts_with("Did you mean `handle`?"));
}

#[tokio::test]
async fn arguments_with_one_reading_are_coerced_and_the_reply_and_the_audit_say_so() {
    let bench = simple_fixture(&["mirror"]);
    let result = bench.call("up__mirror", json!({"n": "5", "file_path": "x"})).await.unwrap();
    let structure: Value = result.get("structuredContent").unwrap().to().unwrap();
    assert_eq!(structure["got"], json!({"n": 5, "file_path": "x"}), "another server's names stay");
    assert_eq!(
        result.object("_meta").get("octoprox/coerced").unwrap().as_str(),
        r#"["`n` read as an integer"]"#
    );
    let last: Value = result.list("content").last().unwrap().to().unwrap();
    assert_eq!(last["text"], "[Arguments adjusted: `n` read as an integer.]");

    let sent = bench.store.fingerprint(br#"{"n":"5","file_path":"x"}"#);
    let ran = bench.store.fingerprint(br#"{"n":5,"file_path":"x"}"#);
    assert_eq!(bench.store.opened.lock().unwrap()[0].arguments, sent);
    assert_eq!(bench.store.closed.lock().unwrap()[0].arguments.as_deref(), Some(ran.as_str()));

    let precise = r#"{"n": "5", "big": 12345678901234567890.1234567891}"#;
    let mut request = HubFixture::request("up__mirror", json!({}));
    request.op.params.set("arguments", Json::parse(precise).unwrap());
    bench.call_request(request).await.outcome.unwrap();
    let ran = bench.store.fingerprint(br#"{"n":5,"big":12345678901234567890.1234567891}"#);
    assert_eq!(bench.store.closed.lock().unwrap()[1].arguments.as_deref(), Some(ran.as_str()));

    let plain = bench.call("up__mirror", json!({"n": 5})).await.unwrap();
    assert!(plain.get("_meta").is_none() && plain.list("content").is_empty());
    assert_eq!(bench.store.closed.lock().unwrap()[2].arguments, None);

    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    let error = bench.call("result_read", json!({"handle": [deep]})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    let error = bench.call("result_read", json!({"handle": "r_0", "from_line": "1"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "coerced, and then there is no such result: {error:?}");
}

#[tokio::test]
async fn without_a_record_nothing_runs() {
    let source = upstream(&["do"]);
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |_| {});
    bench.store.broken.store(true, Ordering::Relaxed);
    assert_eq!(error_kind(bench.call("up__do", json!({})).await), Kind::Unavailable);
    assert_eq!(source.calls.load(Ordering::Relaxed), 0);
    assert!(bench.store.closed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn errors_and_warnings_leave_with_the_text_of_their_remedy() {
    let (source, login) = (upstream(&["needs_login"]), Remedy::Login { server: "up".to_owned() });
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |_| {});
    let error = bench.call("up__needs_login", json!({})).await.unwrap_err();
    let text = format!("{login:?}");
    assert_eq!((error.hint.as_deref(), error.remedy), (Some(&*format!("Log in. {text}")), None));
    let mut changes = bench.hub.changes();
    let (audience, lost) = (Audience::Everybody, "Lost.".to_owned());
    source.events.send(Event::Warning { audience, text: lost, remedy: login }).unwrap();
    let told = async {
        loop {
            if let Change::Warning { text, .. } = changes.recv().await.unwrap() {
                return text;
            }
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
    assert_eq!(told, format!("Lost. {text}"));
}

#[tokio::test]
async fn every_end_is_recorded() {
    let bench = HubFixture::new(vec![upstream(&["do", "fails", "panics", "sleeps"])], |parts| {
        parts.timeout = Duration::from_millis(50);
    });
    for (name, outcome) in [
        ("up__do", Outcome::Ok),
        ("up__fails", Outcome::Failed),
        ("up__panics", Outcome::Error(Kind::Internal)),
        ("up__sleeps", Outcome::Error(Kind::Timeout)),
        ("up__nothing", Outcome::Error(Kind::NotFound)),
    ] {
        let called = bench.call_request(HubFixture::request(name, json!({}))).await;
        let closed = bench.store.closed.lock().unwrap().pop().unwrap();
        let opened = bench.store.opened.lock().unwrap().pop().unwrap();
        assert_eq!((closed.outcome, closed.id, opened.id), (outcome, called.id, called.id), "{name}");
        assert_eq!(closed.target.is_some(), name != "up__nothing");
    }
    // A call whose future is dropped closes its record, too.
    let dropped = tokio::time::timeout(Duration::from_millis(5), bench.call("up__sleeps", json!({}))).await;
    assert!(dropped.is_err());
    assert_eq!(bench.store.closed.lock().unwrap().pop().unwrap().outcome, Outcome::Dropped);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let bench = simple_fixture(&["sleeps"]);
    let request = HubFixture::request("up__sleeps", json!({}));
    let cancel = request.cancel.clone();
    let begun = Instant::now();
    let (called, ()) = tokio::join!(bench.call_request(request), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(error_kind(called.outcome), Kind::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

fn rule(name: &str, tools: &[&str], decision: Decision) -> Rule {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    Rule { name: name.into(), tools, effects: vec![], callers: vec![], decision, hint: None }
}

#[tokio::test]
async fn deny_beats_allow_and_hides_what_it_refuses() {
    let bench = HubFixture::new(vec![upstream(&["get", "drop"])], |parts| {
        parts.policy = PolicySettings {
            default: Decision::Allow,
            rules: vec![
                rule("all", &["up__*"], Decision::Allow),
                rule("no-drop", &["up/drop"], Decision::Deny),
            ],
        };
    });
    let error = bench.call("up__drop", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(error.message.contains("no-drop"));
    assert_eq!(bench.store.closed.lock().unwrap().last().unwrap().rule.as_deref(), Some("no-drop"));
    assert!(bench.call("up__get", json!({})).await.is_ok());
    assert_eq!(bench.store.closed.lock().unwrap().last().unwrap().rule.as_deref(), Some("all"));
    assert_eq!(listed_names(&bench, "").await, ["result_read", "tools_call", "tools_find", "up__get"]);
}

#[tokio::test]
async fn rules_know_effects_and_callers_and_the_default_may_be_no() {
    let bench = HubFixture::new(vec![upstream(&["do"])], |parts| {
        parts.policy = serde_json::from_value(json!({
            "default": "deny",
            "rules": [
                {"name": "readers", "effects": ["reads"], "decision": "allow"},
                {"name": "admins", "callers": ["admin-*"], "decision": "allow"},
            ],
        }))
        .unwrap();
    });
    assert_eq!(error_kind(bench.call("up__do", json!({})).await), Kind::Denied);
    assert_eq!(error_kind(bench.call("result_read", json!({"handle": "r_9"})).await), Kind::NotFound);
    let mut request = HubFixture::request("up__do", json!({}));
    request.caller = Arc::new(Caller::named("admin-1"));
    assert!(bench.call_request(request).await.outcome.is_ok());
}

#[tokio::test]
async fn rules_know_the_tenant() {
    let bench = HubFixture::new(vec![upstream(&["do", "drop"])], |parts| {
        parts.policy = serde_json::from_value(json!({
            "default": "deny",
            "rules": [
                {"name": "own", "callers": ["ada", "acme/bob"], "decision": "allow"},
                {"name": "tenant", "callers": ["lab/*"], "decision": "allow"},
                {"name": "no-drop", "tools": ["up__drop"], "callers": ["eve"], "decision": "deny"},
            ],
        }))
        .unwrap();
    });
    for (tenant, subject, tool, allowed) in [
        ("default", "ada", "up__do", true),
        ("acme", "ada", "up__do", false),
        ("acme", "bob", "up__do", true),
        ("default", "bob", "up__do", false),
        ("lab", "eve", "up__do", true),
        ("lab", "eve", "up__drop", false),
        ("lab", "ann", "up__drop", true),
    ] {
        let mut request = HubFixture::request(tool, json!({}));
        request.caller = Arc::new(Caller::from(Principal::new(tenant, subject)));
        assert_eq!(bench.call_request(request).await.outcome.is_ok(), allowed, "{tenant}/{subject} {tool}");
    }
}

#[tokio::test]
async fn limits_count_per_caller_and_say_when_to_come_back() {
    let bench = HubFixture::new(vec![upstream(&["do"])], |parts| {
        let per_minute = 2.try_into().unwrap();
        parts.limits = vec![LimitRule { tools: vec!["up__*".into()], per_minute, burst: None }];
    });
    for _ in 0..2 {
        assert!(bench.call("up__do", json!({})).await.is_ok());
    }
    let error = bench.call("up__do", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::RateLimited);
    assert!(error.retry_after.unwrap() <= Duration::from_secs(30));
    let mut request = HubFixture::request("up__do", json!({}));
    request.caller = Arc::new(Caller::named("somebody-else"));
    assert!(bench.call_request(request).await.outcome.is_ok());
}

#[tokio::test]
async fn answers_are_kept_only_where_the_settings_say_so_and_only_for_their_caller() {
    let source = upstream(&["do", "other"]);
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |parts| {
        parts.cache = vec![CacheRule { tools: vec!["up__do".into()], ttl_seconds: 60 }];
    });
    for name in ["up__do", "up__do", "up__other", "up__other"] {
        bench.call(name, json!({"n": 0})).await.unwrap();
    }
    assert_eq!(source.calls.load(Ordering::Relaxed), 3);
    let mut request = HubFixture::request("up__do", json!({"n": 0}));
    request.caller = Arc::new(Caller::named("somebody-else"));
    bench.call_request(request).await.outcome.unwrap();
    assert_eq!(source.calls.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_large_result_is_cut_within_its_schema_and_can_be_read_whole() {
    let rows = json!({"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": {
        "type": "object", "required": ["rows", "count"],
        "properties": {"rows": {"type": "array", "items": {"type": "object", "required": ["n", "text"]}}, "count": {"type": "integer"}}}});
    let bench = HubFixture::new(vec![ScriptedSource::new("up", vec![rows])], |_| {});
    let result = bench.call("up__rows", json!({"n": 1000})).await.unwrap();
    assert!(result.to_json().bytes().len() < 10_000);
    let structure: Value = result.get("structuredContent").unwrap().to().unwrap();
    assert_eq!(structure["count"], 1000);
    assert!(structure["rows"].as_array().unwrap().iter().all(|row| row["text"] == "some text"));
    assert_eq!(structure["truncated"], true);
    let handle = structure["result_handle"].as_str().unwrap().to_owned();
    let blocks: Vec<Value> = result.get("content").unwrap().to().unwrap();
    assert!(blocks[1]["text"].as_str().unwrap().contains(&handle));
    assert_eq!(blocks[2]["type"], "resource_link");
    assert_eq!(
        bench.store.closed.lock().unwrap().last().unwrap().result_handle.as_deref(),
        Some(handle.as_str())
    );

    let read = async |arguments: Value| -> Value {
        bench.call("result_read", arguments).await.unwrap().get("structuredContent").unwrap().to().unwrap()
    };
    let by_jq = read(json!({"handle": handle, "jq": ".rows[999].n"})).await;
    assert_eq!(by_jq["text"], "999\n");
    let by_lines = read(json!({"handle": handle, "from_line": 1, "lines": 3})).await;
    assert_eq!((by_lines["text"].as_str().unwrap().lines().count(), &by_lines["next"]), (3, &json!(4)));
    let by_bytes = read(json!({"handle": handle, "from_byte": 10, "bytes": 5})).await;
    assert_eq!(by_bytes["text"].as_str().unwrap().len(), 5);
    let by_none = read(json!({"handle": handle, "from_byte": 10, "bytes": 0})).await;
    assert!(by_none["next"].as_u64().unwrap() > 10, "{by_none}");
    let by_pattern = read(json!({"handle": handle, "pattern": "\"n\": 77,"})).await;
    assert_eq!(by_pattern["text"].as_str().unwrap().lines().count(), 1);

    let mut request = HubFixture::request("result_read", json!({"handle": handle}));
    request.caller = Arc::new(Caller::named("somebody-else"));
    assert_eq!(error_kind(bench.call_request(request).await.outcome), Kind::NotFound);
}

#[tokio::test]
async fn a_large_resource_is_refused_whole_and_kept() {
    let bench = HubFixture::new(vec![ScriptedSource::with_resource("up")], |_| {});
    let mut request = HubFixture::request("big://file", json!({}));
    request.op = Operation {
        method: Method::ReadResource,
        name: "big://file".to_owned(),
        params: JsonObject::new().with("uri", "big://file"),
    };
    let error = bench.call_request(request).await.outcome.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
    let handle = bench.store.closed.lock().unwrap().last().unwrap().result_handle.clone().unwrap();
    assert!(error.hint.unwrap().contains(&handle));
    let read = bench.call("result_read", json!({"handle": handle, "jq": ".contents[0].text | length"})).await;
    let read: Value = read.unwrap().get("structuredContent").unwrap().to().unwrap();
    assert_eq!(read["text"], "8000\n");
}

#[tokio::test]
async fn text_is_cut_and_a_schema_without_room_is_refused_with_the_handle() {
    let closed = json!({"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": {
        "type": "object", "additionalProperties": false,
        "properties": {"rows": {"type": "array", "minItems": 900}, "count": {}}}});
    let bench = HubFixture::new(vec![ScriptedSource::new("up", vec![tool("long"), closed])], |_| {});
    let result = bench.call("up__long", json!({"n": 5000})).await.unwrap();
    let blocks: Vec<Value> = result.get("content").unwrap().to().unwrap();
    assert!(blocks[0]["text"].as_str().unwrap().starts_with("line 0\nline 1\n"));
    assert_eq!(blocks.len(), 3);
    let error = bench.call("up__rows", json!({"n": 1000})).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
    assert!(error.hint.unwrap().contains("r_"));
}

#[tokio::test]
async fn long_and_colliding_names_stay_apart_and_stable() {
    let long = "x".repeat(128);
    let names = [format!("{long}1"), format!("{long}2"), "a-b".into(), "a_b".into(), "dot.ted".into()];
    let tools = || names.iter().map(|name| tool(name)).collect::<Vec<_>>();
    let alone = HubFixture::new(vec![ScriptedSource::new("up", tools())], |_| {});
    let joined =
        HubFixture::new(vec![ScriptedSource::new("up", tools()), ScriptedSource::new("aa", tools())], |_| {});
    let before = listed_names(&alone, "").await;
    let after = listed_names(&joined, "").await;
    assert_eq!(before.len(), 8);
    assert!(after.iter().all(|name| name.len() <= 46));
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    assert!(alone.call(&format!("up:{long}1"), json!({})).await.is_ok());
}

#[tokio::test]
async fn a_profile_shows_a_part_under_its_own_names() {
    let bench = HubFixture::new(
        vec![upstream(&["do", "other"]), ScriptedSource::new("zz", vec![tool("do")])],
        |parts| {
            let settings = ProfileSettings {
                servers: vec!["up".into()],
                tools: vec!["d*".into()],
                without_prefix: true,
                ..ProfileSettings::default()
            };
            parts.profiles = vec![Profile::new("bare", &settings).unwrap()];
        },
    );
    assert_eq!(listed_names(&bench, "bare").await, ["do"]);
    assert!(bench.hub.list("nosuch", ItemKind::Tool, &Caller::local(), None).await.is_err());
}

#[tokio::test]
async fn a_source_that_hangs_costs_only_its_own_tools() {
    let slow = ScriptedSource::new("slow", vec![]);
    slow.relist(SourceState::Starting, vec![]);
    let bench = HubFixture::new(vec![upstream(&["do"]), Arc::clone(&slow) as Arc<dyn Source>], |_| {});
    let begun = Instant::now();
    assert!(listed_names(&bench, "").await.contains(&"up__do".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(2));
    let mut changes = bench.hub.changes();
    let late = tokio::spawn({
        let hub = Arc::clone(&bench.hub);
        async move { hub.call(HubFixture::request("slow__do", json!({}))).await.outcome }
    });
    slow.relist(SourceState::Ready, vec![tool("do")]);
    assert!(late.await.unwrap().is_ok());
    let change = tokio::time::timeout(Duration::from_secs(2), changes.recv()).await.unwrap().unwrap();
    assert!(matches!(change, Change::Items));
    slow.relist(SourceState::Down("it is gone".into()), vec![]);
    tokio::time::timeout(Duration::from_secs(2), changes.recv()).await.unwrap().unwrap();
    let error = bench.call("slow__do", json!({})).await.unwrap_err();
    assert!(error.hint.unwrap().contains("it is gone"));
}

#[tokio::test]
async fn two_thousand_tools_come_in_pages() {
    let names: Vec<Value> = (0..2_000).map(|n| tool(&format!("tool_{n:04}"))).collect();
    let bench = HubFixture::new(vec![ScriptedSource::new("up", names)], |_| {});
    let mut cursor = None;
    let mut seen = 0;
    loop {
        let page = bench.hub.list("", ItemKind::Tool, &Caller::local(), cursor.as_deref()).await.unwrap();
        seen += page.items.elements().unwrap().len();
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, 2_003);
    assert!(bench.hub.list("", ItemKind::Tool, &Caller::local(), Some("nonsense")).await.is_err());
}
