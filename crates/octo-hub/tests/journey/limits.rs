//! Limits for untrusted servers and callers: schemas, replies, cached replies, and names that are not visible
//! to everyone.

use crate::hub_fixture::HubFixture;
use octo_hub::{CacheRule, Decision, PolicySettings, Profile, ProfileSettings, Request, ResultLimits, Rule};
use octo_model::{
    Effect, EffectOrigin, Frontend, Json, JsonObject, Kind, Method, Operation, RpcError, ToolError,
};
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Source, SourceState};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

type Answer = dyn Fn(&Operation) -> Result<JsonObject, ToolError> + Send + Sync;

/// An untrusted server named `evil`, which answers as a test needs.
pub struct UntrustedSource {
    listing: watch::Sender<ListingState>,
    answer: Box<Answer>,
    calls: AtomicUsize,
    seen: Mutex<Vec<Operation>>,
}

impl UntrustedSource {
    pub fn new(
        lists: Listing,
        answer: impl Fn(&Operation) -> Result<JsonObject, ToolError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let listing = ListingState { state: SourceState::Ready, listing: Arc::new(lists), version: 1 };
        Arc::new(Self {
            listing: watch::channel(listing).0,
            answer: Box::new(answer),
            calls: AtomicUsize::new(0),
            seen: Mutex::default(),
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Source for UntrustedSource {
    fn name(&self) -> &str {
        "evil"
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, _: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = (self.answer)(&op);
        self.seen.lock().unwrap().push(op);
        Box::pin(async move { answer })
    }
}

pub fn definition(key: &str, members: Value, effect: Effect) -> Definition {
    Definition {
        key: key.to_owned(),
        members: Json::from(members).members().unwrap(),
        effect,
        effect_origin: EffectOrigin::Assumed,
    }
}

fn tool(schema: Value) -> Definition {
    definition("do", json!({"name": "do", "inputSchema": schema}), Effect::unknown())
}

pub fn tools(all: Vec<Definition>) -> Listing {
    Listing { tools: all, ..Listing::default() }
}

pub fn reply(value: Value) -> Result<JsonObject, ToolError> {
    Ok(Json::from(value).members().unwrap())
}

fn one_tool(schema: Value) -> HubFixture {
    let stranger = UntrustedSource::new(tools(vec![tool(schema)]), |_| reply(json!({"content": []})));
    HubFixture::new(vec![stranger], |_| {})
}

/// Levels of `anyOf`, each with two branches that lead to the next.
fn nested_schema(levels: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"properties": {"a": {"$ref": format!("#/$defs/l{}", level + 1)}}});
        let other =
            json!({"properties": {"a": {"$ref": format!("#/$defs/l{}", level + 1)}}, "minProperties": 1});
        defs.insert(format!("l{level}"), json!({"anyOf": [next, other]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs})
}

fn nested_value(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn no_schema_of_a_stranger_takes_long() {
    let look =
        json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(?:(?=.*b).)*c$"}}});
    let wide = json!({"type": "object", "properties": {"s": {
        "anyOf": (0..4_000).map(|n| json!({"maxLength": n})).collect::<Vec<_>>()}}});
    let unique = json!({"type": "object", "properties": {"s": {
        "anyOf": (0..4_000).map(|_| json!({"uniqueItems": true, "maxItems": 1})).collect::<Vec<_>>()}}});
    let counted =
        json!({"type": "object", "properties": {"s": {"pattern": "^(?:(?:a|b)*a(?:a|b){60}){60}x$"}}});
    let cases = [
        ("look-around", look, json!({"s": "b".repeat(100_000)})),
        ("a tower of alternatives", nested_schema(20), nested_value(22)),
        ("many alternatives over a long text", wide, json!({"s": "x".repeat(1_000_000)})),
        ("many comparisons of a long list", unique, json!({"s": vec![1; 200_000]})),
        ("a large pattern over a long text", counted, json!({"s": "ab".repeat(200_000)})),
    ];
    for (what, schema, arguments) in cases {
        let bench = one_tool(schema);
        let begun = Instant::now();
        // Values that could not be checked are left to the server.
        let answer = bench.call("evil__do", arguments).await;
        let took = begun.elapsed();
        // Without a limit the first takes minutes; leaves room for a busy machine and a debug build.
        assert!(took < Duration::from_secs(15), "{what}: {took:?}");
        assert!(answer.is_ok() || answer.unwrap_err().kind == Kind::Invalid, "{what}");
    }
}

#[tokio::test]
async fn a_schema_that_never_ends_ends_nothing() {
    let chain: serde_json::Map<String, Value> = (0..6_000)
        .map(|n| (format!("d{n}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
        .chain([("d6000".to_owned(), json!({}))])
        .collect();
    let through: serde_json::Map<String, Value> = (0..6_000)
        .map(|n| {
            (format!("d{n}"), json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", (n + 1) % 6_000)}}}))
        })
        .collect();
    for (what, schema) in [
        ("a loop", json!({"type": "object", "allOf": [{"$ref": "#"}]})),
        (
            "a longer loop",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        ),
        ("a chain", json!({"$ref": "#/$defs/d0", "$defs": chain})),
        ("a chain through members", json!({"$ref": "#/$defs/d0", "$defs": through})),
        ("somewhere else", json!({"type": "object", "$ref": "http://127.0.0.1:1/schema"})),
    ] {
        assert!(one_tool(schema).call("evil__do", nested_value(40)).await.is_ok(), "{what}");
    }
    // A tree that contains itself is a valid schema.
    let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "n": {"type": "integer"}}});
    let bench = one_tool(tree);
    assert!(bench.call("evil__do", json!({"a": {"a": {"n": 1}}})).await.is_ok());
    assert_eq!(
        bench.call("evil__do", json!({"a": {"a": {"n": "1"}}})).await.unwrap_err().kind,
        Kind::Invalid
    );
}

#[tokio::test]
async fn a_pattern_that_cannot_be_used_costs_only_its_own_check() {
    let bench = one_tool(json!({"type": "object", "properties": {
        "s": {"type": "string", "pattern": "^(?!x)"}, "t": {"type": "string", "pattern": "^a+$"}, "n": {"type": "integer"}}}));
    assert!(bench.call("evil__do", json!({"s": "x"})).await.is_ok());
    for wrong in [json!({"t": "b"}), json!({"n": "x"}), json!({"s": 1})] {
        assert_eq!(bench.call("evil__do", wrong).await.unwrap_err().kind, Kind::Invalid);
    }
}

fn deny(tools: &[&str]) -> PolicySettings {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let rule = Rule {
        name: "no".into(),
        tools,
        effects: vec![],
        callers: vec![],
        decision: Decision::Deny,
        hint: None,
    };
    PolicySettings { default: Decision::Allow, rules: vec![rule] }
}

#[tokio::test]
async fn whoever_may_not_call_a_tool_learns_nothing_of_it() {
    let schema = json!({"type": "object", "required": ["launch_code"], "properties": {"launch_code": {"type": "string"}}});
    let stranger = UntrustedSource::new(tools(vec![tool(schema)]), |_| reply(json!({"content": []})));
    let bench = HubFixture::new(vec![stranger], |parts| parts.policy = deny(&["evil__do"]));
    let error = bench.call("evil__do", json!({"n": 1})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(!error.text().contains("launch_code"), "{error}");
    let error = bench.call("evil__du", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    assert!(!error.text().contains("evil__do"), "{error}");
}

const REPLY_LIMIT: usize = 4_000;
/// Room for a notice, a link and their names.
const NOTICE_ROOM: usize = 1_600;

fn size_of(outcome: &Result<JsonObject, ToolError>) -> usize {
    match outcome {
        Ok(result) => result.to_json().bytes().len(),
        Err(error) => {
            let rpc = error.rpc.as_deref();
            let data = rpc.and_then(|rpc| rpc.data.as_ref()).map_or(0, |data| data.bytes().len());
            let message = rpc.map_or(0, |rpc| Json::text(&rpc.message).bytes().len());
            (Json::text(&error.text()).bytes().len()).max(message + data)
        }
    }
}

fn failure(message: &str, data: Option<Value>) -> Result<JsonObject, ToolError> {
    let rpc = RpcError { code: -32000, message: message.to_owned(), data: data.map(Json::from) };
    Err(ToolError::unavailable(message.to_owned()).hint(message.to_owned()).rpc(rpc))
}

/// Replies that exceed the limit.
fn oversized() -> Vec<(&'static str, Result<JsonObject, ToolError>)> {
    let big = "x".repeat(50_000);
    let many = |make: fn(usize) -> (String, Value)| Value::Object((0..5_000).map(make).collect());
    let blocks: Vec<Value> = (0..5_000).map(|n| json!({"type": "text", "text": n.to_string()})).collect();
    let keys = many(|n| (format!("key{n}"), json!(n)));
    let escaped = many(|n| (format!("\u{1}{n}"), json!("\"\\")));
    let quotes = "\"".repeat(big.len());
    let picture = "A".repeat(4 << 20);
    vec![
        ("_meta", reply(json!({"content": [], "_meta": {"a": big}}))),
        ("unknown member", reply(json!({"content": [], "vendor": big}))),
        ("other members", reply(json!({"content": [{"type": "text", "text": "t", "vendor": big}]}))),
        ("many blocks", reply(json!({"content": blocks}))),
        ("many keys", reply(json!({"content": [], "structuredContent": keys}))),
        ("keys to be escaped", reply(json!({"content": [], "structuredContent": escaped}))),
        ("many members", reply(many(|n| (format!("top\n{n}"), json!(1))))),
        ("a structure and its text", reply(json!({"content": [], "structuredContent": {"a": quotes}}))),
        ("not a list", reply(json!({"content": big}))),
        (
            "a large picture",
            reply(json!({"content": [{"type": "image", "data": picture, "mimeType": "image/png"}]})),
        ),
        ("a failure", reply(json!({"isError": true, "content": [{"type": "text", "text": big}]}))),
        (
            "a question",
            reply(json!({"resultType": "input_required", "inputRequests": {"a": {"message": big}}})),
        ),
        ("error message", failure(&big, None)),
        ("error data", failure("no", Some(json!({"a": big})))),
    ]
}

#[tokio::test]
async fn no_reply_is_larger_than_the_cap() {
    for (way, reply) in oversized() {
        let stranger =
            UntrustedSource::new(tools(vec![tool(json!({"type": "object"}))]), move |_| reply.clone());
        let bench = HubFixture::new(vec![stranger], |parts| parts.result_limits.max_bytes = REPLY_LIMIT);
        let outcome = bench.call("evil__do", json!({})).await;
        let size = size_of(&outcome);
        // As text and as structured content.
        assert!(size <= 2 * REPLY_LIMIT + NOTICE_ROOM, "{way}: {size}");
    }
}

/// The bytes of text in a reply to a call with this frontend and `_meta`, of a tool that has 300,000.
async fn shown_bytes(bench: &HubFixture, frontend: Frontend, meta: Option<Value>) -> usize {
    let mut request = HubFixture::request("evil__do", json!({"max_bytes": 90_000}));
    request.frontend = frontend;
    if let Some(meta) = meta {
        request.op.params = request.op.params.with("_meta", Json::from(meta));
    }
    let result = bench.call_request(request).await.outcome.unwrap();
    let text = result.list("content").first().unwrap().member("text").unwrap();
    text.to_text().unwrap().len()
}

#[tokio::test]
async fn replies_are_as_large_as_their_reader_needs() {
    let lines = "a line of a long text\n".repeat(300_000 / 22);
    let stranger = UntrustedSource::new(tools(vec![tool(json!({"type": "object"}))]), move |_| {
        reply(json!({"content": [{"type": "text", "text": lines}]}))
    });
    let bench = HubFixture::new(vec![stranger], |parts| parts.result_limits = ResultLimits::default());
    let asked = |bytes: Value| Some(json!({"octoprox/max_bytes": bytes}));
    for (frontend, meta, most) in [
        (Frontend::Stdio, None, 8_000),
        (Frontend::Http, None, 8_000),
        (Frontend::Http, asked(json!(30_000)), 30_000),
        (Frontend::Http, asked(json!(2_000)), 2_000),
        // The limits of what a caller may ask for.
        (Frontend::Http, asked(json!(0)), 1_000),
        (Frontend::Stdio, asked(json!(10_000_000)), 100_000),
        // Not a size.
        (Frontend::Http, asked(json!("many")), 8_000),
        (Frontend::Http, asked(json!(-1)), 8_000),
        (Frontend::Http, asked(json!(1e30)), 8_000),
        // Programs read these.
        (Frontend::Rest, None, 100_000),
        (Frontend::Cli, None, 100_000),
    ] {
        let shown = shown_bytes(&bench, frontend, meta.clone()).await;
        assert!(shown <= most && shown > most * 9 / 10, "{frontend:?} {meta:?}: {shown} of {most}");
    }
}

/// Deterministic pseudo-random numbers.
struct Rng(u64);

impl Rng {
    fn next(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn text(&mut self) -> String {
        let length = [0, 3, 30, 3_000, 9_000][self.next(5) as usize];
        let letters = ["a", "\"", "\u{1}", "é", "\\", "\n"][self.next(6) as usize];
        letters.repeat(length)
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.next(if depth == 0 { 3 } else { 5 }) {
            0 => json!(self.text()),
            1 => json!(self.next(1_000_000)),
            2 => json!(self.next(2) == 0),
            3 => (0..self.next(30)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object((0..self.next(30)).map(|_| (self.text(), self.value(depth - 1))).collect()),
        }
    }

    fn reply(&mut self) -> Value {
        let mut reply = serde_json::Map::new();
        for name in ["content", "structuredContent", "_meta", "isError", "vendor", "resultType"] {
            if self.next(2) == 0 {
                reply.insert(name.to_owned(), self.value(3));
            }
        }
        if self.next(2) == 0 {
            let blocks = (0..self.next(40)).map(|_| {
                let (kind, text) = (["text", "image", "resource"][self.next(3) as usize], self.text());
                json!({"type": kind, "text": text, "data": self.value(1), "annotations": self.value(1)})
            });
            let blocks: Vec<Value> = blocks.collect();
            reply.insert("content".to_owned(), json!(blocks));
        }
        Value::Object(reply)
    }
}

#[tokio::test]
async fn no_reply_of_chance_is_larger_than_the_cap() {
    let dice = Mutex::new(Rng(0x9e37_79b9_7f4a_7c15));
    let stranger = UntrustedSource::new(tools(vec![tool(json!({"type": "object"}))]), move |_| {
        let mut dice = dice.lock().unwrap();
        if dice.next(10) == 0 {
            let (message, data) = (dice.text(), dice.value(3));
            return failure(&message, Some(data));
        }
        let random = dice.reply();
        reply(random)
    });
    let bench = HubFixture::new(vec![stranger], |parts| parts.result_limits.max_bytes = REPLY_LIMIT);
    for round in 0..100 {
        let outcome = bench.call("evil__do", json!({})).await;
        let size = size_of(&outcome);
        assert!(size <= 2 * REPLY_LIMIT + NOTICE_ROOM, "round {round}: {size}");
    }
}

#[tokio::test]
async fn a_server_does_not_speak_for_the_hub() {
    let stranger = UntrustedSource::new(tools(vec![tool(json!({"type": "object"}))]), |_| {
        let meta = r#"{"octoprox/result_handle":"r_stolen","octoprox\/truncated":true,"own":1}"#;
        Ok(JsonObject::new().with("content", Json::array([])).with("_meta", Json::parse(meta).unwrap()))
    });
    let bench = HubFixture::new(vec![stranger], |_| {});
    let result = bench.call("evil__do", json!({})).await.unwrap();
    let meta: Value = result.get("_meta").unwrap().to().unwrap();
    assert_eq!(meta, json!({"own": 1}));
}

fn template(uri: &str) -> Definition {
    definition(uri, json!({"uriTemplate": uri, "name": uri}), Effect::reads())
}

fn resource(uri: &str) -> Definition {
    definition(uri, json!({"uri": uri, "name": uri}), Effect::reads())
}

fn read(uri: &str) -> Request {
    let mut request = HubFixture::request(uri, json!({}));
    let params = JsonObject::new().with("uri", uri);
    request.op = Operation { method: Method::ReadResource, name: uri.to_owned(), params };
    request
}

/// Returns the requested URI.
fn library_source() -> Arc<UntrustedSource> {
    let lists = Listing {
        tools: vec![
            definition("look", json!({"name": "look", "inputSchema": {}}), Effect::reads()),
            definition("change", json!({"name": "change", "inputSchema": {}}), Effect::writes()),
        ],
        resources: vec![resource("evil://secret/a"), resource("evil://listed%2Fname")],
        templates: vec![template("evil://docs/{id}"), template("evil://tree/{+path}")],
        ..Listing::default()
    };
    UntrustedSource::new(lists, |op| reply(json!({"contents": [{"uri": op.name, "text": op.name}]})))
}

#[tokio::test]
async fn a_cached_answer_belongs_to_its_question() {
    for pattern in ["*", "evil://*"] {
        let stranger = library_source();
        let bench = HubFixture::new(vec![Arc::clone(&stranger) as Arc<dyn Source>], |parts| {
            parts.cache = vec![CacheRule { tools: vec![pattern.into()], ttl_seconds: 60 }];
        });
        for uri in ["evil://docs/1", "evil://docs/2", "evil://docs/1", "evil://unlisted"] {
            let answer = bench.call_request(read(uri)).await.outcome.unwrap().to_json();
            assert!(answer.as_str().contains(&format!("\"text\":\"{uri}\"")), "{uri}: {}", answer.as_str());
        }
        // A pattern of tools does not match resources.
        assert_eq!(stranger.calls(), if pattern == "*" { 4 } else { 3 });
    }
}

#[tokio::test]
async fn a_change_through_the_hub_is_seen_by_the_next_read() {
    let stranger = library_source();
    let bench = HubFixture::new(vec![Arc::clone(&stranger) as Arc<dyn Source>], |parts| {
        parts.cache = vec![CacheRule { tools: vec!["evil__look".into()], ttl_seconds: 60 }];
    });
    for (name, calls) in
        [("evil__look", 1), ("evil__look", 1), ("evil__change", 2), ("evil__look", 3), ("evil__look", 3)]
    {
        bench.call(name, json!({})).await.unwrap();
        assert_eq!(stranger.calls(), calls, "{name}");
    }
}

#[tokio::test]
async fn rules_about_uris_hold_however_they_are_written() {
    let bench = HubFixture::new(vec![library_source()], |parts| {
        parts.policy =
            deny(&["evil://secret/*", "evil://docs/private*", "evil://tree/closed/*", "evil://listed/*"]);
    });
    for (uri, allowed) in [
        ("evil://secret/a", false),
        ("evil://docs/private-x", false),
        ("evil:///secret/a", false),
        ("evil:////secret//a", false),
        ("EVIL://secret/a", false),
        ("evil://SECRET/a", false),
        ("evil://secre%74/a", false),
        ("evil://secret%2Fa", false),
        ("evil://%73ecret%252Fa", false),
        ("evil://docs/../secret/a", false),
        ("evil://docs/%2e%2e/secret/a", false),
        ("evil://docs\\..\\secret/a", false),
        ("evil://docs/%70rivate", false),
        ("evil://tree/open/../closed/a", false),
        ("evil://tree/./closed/a", false),
        ("evil://tree//closed/a", false),
        ("evil://user@secret/a", false),
        ("evil://docs/a%2Fb", false),
        ("evil://docs/public", true),
        ("evil://docs/a%20b", true),
        ("evil://tree/open/a", true),
        // The server itself lists it in this spelling.
        ("evil://listed%2Fname", false),
    ] {
        let outcome = bench.call_request(read(uri)).await.outcome;
        assert_eq!(outcome.is_ok(), allowed, "{uri}: {outcome:?}");
        let complete = Operation {
            method: Method::Complete,
            name: uri.to_owned(),
            params: JsonObject::new().with("ref", Json::from(json!({"type": "ref/resource", "uri": uri}))),
        };
        let mut request = read(uri);
        request.op = complete;
        assert_eq!(bench.call_request(request).await.outcome.is_ok(), allowed, "completion of {uri}");
        let mut request = read(uri);
        request.op.method = Method::Subscribe;
        assert!(allowed || bench.hub.subscribe(&request).await.is_err(), "subscribing to {uri}");
    }
    // The URI that is read is the one that was authorized.
    let mut request = read("evil://docs/public");
    request.op.params.set("uri", "evil://secret/a");
    assert!(bench.call_request(request).await.outcome.is_err());
}

#[tokio::test]
async fn to_allow_a_uri_is_to_allow_that_one() {
    let bench = HubFixture::new(vec![library_source()], |parts| {
        parts.policy = serde_json::from_value(json!({"default": "deny", "rules": [
            {"name": "docs", "tools": ["evil://docs/*"], "decision": "allow"}]}))
        .unwrap();
    });
    for (uri, allowed) in [
        ("evil://docs/1", true),
        ("evil://docs/../secret/a", false),
        ("evil://docs/%2e%2e/secret/a", false),
        ("evil://secret/a", false),
        ("evil://tree/docs", false),
    ] {
        assert_eq!(bench.call_request(read(uri)).await.outcome.is_ok(), allowed, "{uri}");
    }
}

#[tokio::test]
async fn hidden_parameters_stay_hidden() {
    let schema = json!({"type": "object", "properties": {
        "q": {"type": "string"}, "n": {"type": "integer"}, "force": {"type": "boolean"}}});
    for (settings, wrong) in [
        (json!({"tool": "evil__do", "others": "hide", "args": {"query": "q"}}), vec!["n", "q", "secretflag"]),
        (json!({"tool": "evil__do", "hide": ["force"]}), vec!["force", "secretflag"]),
        (json!({"tool": "evil__do", "fixed": {"force": false}}), vec!["force"]),
        (json!({"tool": "evil__do", "args": {"query": "q"}}), vec!["q"]),
    ] {
        let stranger =
            UntrustedSource::new(tools(vec![tool(schema.clone())]), |_| reply(json!({"content": []})));
        let seen = Arc::clone(&stranger);
        let bench = HubFixture::new(vec![stranger], |parts| {
            let profile = ProfileSettings {
                overrides: [("do".to_owned(), serde_json::from_value(settings.clone()).unwrap())].into(),
                ..ProfileSettings::default()
            };
            parts.profiles = vec![Profile::new("p", &profile).unwrap()];
        });
        for name in wrong {
            let mut request = HubFixture::request("do", json!({name: true}));
            request.profile = "p".to_owned();
            let error = bench.call_request(request).await.outcome.expect_err(name);
            assert_eq!(error.kind, Kind::Invalid, "{name}");
        }
        assert!(seen.seen.lock().unwrap().is_empty(), "{settings}");
    }
}

#[tokio::test]
async fn equal_arguments_of_two_hubs_do_not_look_equal() {
    let bench = one_tool(json!({"type": "object"}));
    bench.call("evil__do", json!({"pin": 1234})).await.unwrap();
    bench.call("evil__do", json!({"pin": 1234})).await.unwrap();
    let opened = bench.store.opened.lock().unwrap();
    let hashes: Vec<&str> = opened.iter().map(|one| one.arguments.as_str()).collect();
    assert_eq!(hashes[0], hashes[1]);
    // SHA-256 of {"pin":1234}, which anyone can compute.
    assert_ne!(hashes[0], "db6ef889e411ac42b55e31638dbcc3bb973f5b7a76b6e82caae4f243a68234d4");
    assert_eq!(hashes[0].len(), 64);
}
