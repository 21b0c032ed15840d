//! A custom policy engine: arguments, approval, obligations, and replacement while the hub runs.

use crate::hub_fixture::{HubFixture, ScriptedSource, tool};
use crate::{error_kind, listed_names};
use octo_hub::{
    Action, ApprovalRequest, Approver, CacheRule, Change, Obligations, PolicyDecision, PolicyEngine,
    PolicyRequest, PolicySettings, RuleSettings,
};
use octo_model::{ItemKind, Kind, Method, ToolError};
use octo_toolkit::BoxFuture;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Denies `n` above 10 and `up__hidden`, requires approval of `up__risky`, and redacts `up__mirror`.
struct NumberPolicy;

impl PolicyEngine for NumberPolicy {
    fn decide<'a>(&'a self, request: &PolicyRequest<'_>) -> PolicyDecision<'a> {
        let n = request.arguments.and_then(|json| json.to::<Value>().ok()?["n"].as_i64());
        let name = &*request.entry.listed_name;
        let mut obligations = Obligations::default();
        match name {
            "up__hidden" => return PolicyDecision::Deny { rule: "hidden".into(), hint: None },
            "up__risky" => return PolicyDecision::RequireApproval { rule: "risky".into(), obligations },
            "up__mirror" => obligations.redact = vec!["out".into()],
            "up__long" => obligations.max_result_bytes = Some(1_000),
            _ => {}
        }
        if n > Some(10) {
            assert_eq!(request.action, Action::Use(Method::CallTool));
            return PolicyDecision::Deny { rule: "small-numbers".into(), hint: Some("Use less.".into()) };
        }
        PolicyDecision::Permit { rule: "rest".into(), obligations }
    }

    fn reads_arguments(&self) -> bool {
        true
    }
}

fn fixture() -> HubFixture {
    let tools = ["do", "hidden", "risky", "mirror", "long"];
    let source = ScriptedSource::new("up", tools.iter().map(|name| tool(name)).collect());
    let bench = HubFixture::new(vec![source], |_| {});
    bench.hub.set_policy(Some(Arc::new(NumberPolicy))).unwrap();
    bench
}

fn last_rule(bench: &HubFixture) -> Option<String> {
    bench.store.closed.lock().unwrap().last().unwrap().rule.clone()
}

#[tokio::test]
async fn arguments_are_decided_on_after_they_are_coerced() {
    let bench = fixture();
    assert!(bench.call("up__do", json!({"n": 10})).await.is_ok());
    assert_eq!(last_rule(&bench).as_deref(), Some("rest"));
    for n in [json!(11), json!("11")] {
        let error = bench.call("up__do", json!({"n": n})).await.unwrap_err();
        assert_eq!((error.kind, error.hint.as_deref()), (Kind::Denied, Some("Use less.")));
        assert_eq!(last_rule(&bench).as_deref(), Some("small-numbers"));
    }
}

#[tokio::test]
async fn whoever_is_denied_learns_nothing_of_the_schema() {
    let bench = fixture();
    let error = bench.call("up__hidden", json!({"wrong": [], "n": "x"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(!error.text().contains("parameter") && !error.text().contains("`n`"), "{error}");
    assert!(!listed_names(&bench, "").await.contains(&"up__hidden".to_owned()));
}

/// Records what it is asked, and approves calls with `n`.
#[derive(Default)]
struct NotingApprover(Mutex<Vec<String>>);

impl Approver for NotingApprover {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let arguments = request.arguments.map(|json| json.as_str().to_owned()).unwrap_or_default();
            let line = format!("{} {} {arguments}", request.rule, request.entry.listed_name);
            self.0.lock().unwrap().push(line);
            if arguments.contains("\"n\"") { Ok(()) } else { Err(ToolError::denied("Nobody agreed.")) }
        })
    }
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_for_it() {
    let bench = fixture();
    let error = bench.call("up__risky", json!({"n": 1})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied);
    assert!(error.text().contains("`risky` requires approval"), "{error}");
    let approver = Arc::new(NotingApprover::default());
    bench.hub.set_approver(Arc::clone(&approver) as Arc<dyn Approver>);
    assert!(bench.call("up__risky", json!({"n": 1})).await.is_ok());
    assert_eq!(error_kind(bench.call("up__risky", json!({})).await), Kind::Denied);
    assert!(bench.call("up__do", json!({})).await.is_ok());
    assert_eq!(*approver.0.lock().unwrap(), ["risky up__risky {\"n\":1}", "risky up__risky {}"]);
    assert!(listed_names(&bench, "").await.contains(&"up__risky".to_owned()));
}

#[tokio::test]
async fn obligations_shape_the_result() {
    let bench = fixture();
    let result = bench.call("up__mirror", json!({"n": 3})).await.unwrap().to_json();
    let structure = result.member("structuredContent").unwrap().to::<Value>().unwrap();
    assert_eq!(structure, json!({"got": {"n": 3}, "out": "", "list": [1]}));
    let result = bench.call("up__long", json!({"n": 10})).await.unwrap();
    assert!(result.inner_text("_meta", "octoprox/result_handle").is_none());
    // Within the limit of the settings, and above that of the policy.
    struct Smaller;
    impl PolicyEngine for Smaller {
        fn decide<'a>(&'a self, _: &PolicyRequest<'_>) -> PolicyDecision<'a> {
            let obligations = Obligations { max_result_bytes: Some(1_000), ..Obligations::default() };
            PolicyDecision::Permit { rule: "small".into(), obligations }
        }
    }
    bench.hub.set_policy(Some(Arc::new(Smaller))).unwrap();
    let result = bench.call("up__long", json!({"n": 300})).await.unwrap();
    assert!(result.inner_text("_meta", "octoprox/result_handle").is_some());
}

/// Never answers.
struct SilentApprover;

impl Approver for SilentApprover {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn whoever_cancels_waits_for_no_approval() {
    let bench = fixture();
    bench.hub.set_approver(Arc::new(SilentApprover));
    let request = HubFixture::request("up__risky", json!({}));
    let cancel = request.cancel.clone();
    let (called, ()) = tokio::join!(bench.call_request(request), async { cancel.cancel() });
    assert_eq!(error_kind(called.outcome), Kind::Cancelled);
}

/// Requires approval of everything.
struct AskFirst;

impl PolicyEngine for AskFirst {
    fn decide<'a>(&'a self, _: &PolicyRequest<'_>) -> PolicyDecision<'a> {
        PolicyDecision::RequireApproval { rule: "ask".into(), obligations: Obligations::default() }
    }
}

#[tokio::test]
async fn a_subscription_needs_approval_like_a_call() {
    let bench = HubFixture::new(vec![ScriptedSource::with_resource("up")], |_| {});
    bench.hub.set_policy(Some(Arc::new(AskFirst))).unwrap();
    let mut request = HubFixture::request("big://file", json!({}));
    request.op.method = Method::Subscribe;
    let error = bench.hub.subscribe(&request).await.err().unwrap();
    assert!(error.text().contains("`ask` requires approval"), "{error}");
    assert_eq!(last_rule(&bench).as_deref(), Some("ask"));
}

#[tokio::test]
async fn what_policy_shapes_is_not_cached() {
    let source = ScriptedSource::new("up", vec![tool("mirror"), tool("do")]);
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn octo_toolkit::Source>], |parts| {
        parts.cache = vec![CacheRule { tools: vec!["up__*".into()], ttl_seconds: 60 }];
    });
    bench.hub.set_policy(Some(Arc::new(NumberPolicy))).unwrap();
    for (name, runs) in [("up__do", 1), ("up__mirror", 2)] {
        let before = source.calls.load(Ordering::Relaxed);
        for _ in 0..2 {
            bench.call(name, json!({"n": 1})).await.unwrap();
        }
        assert_eq!(source.calls.load(Ordering::Relaxed) - before, runs, "{name}");
    }
}

#[tokio::test]
async fn another_policy_takes_effect_at_once_and_lists_are_announced() {
    let bench = fixture();
    let mut changes = bench.hub.changes();
    struct Nothing;
    impl PolicyEngine for Nothing {
        fn decide<'a>(&'a self, _: &PolicyRequest<'_>) -> PolicyDecision<'a> {
            PolicyDecision::Deny { rule: "nothing".into(), hint: None }
        }
    }
    bench.hub.set_policy(Some(Arc::new(Nothing))).unwrap();
    assert_eq!(error_kind(bench.call("up__do", json!({})).await), Kind::Denied);
    assert!(listed_names(&bench, "").await.is_empty());
    // A reload of the settings does not restore their rules.
    bench
        .hub
        .apply(
            RuleSettings {
                policy: PolicySettings::default(),
                limits: Vec::new(),
                cache: Vec::new(),
                timeout: Duration::from_secs(5),
            },
            Vec::new(),
        )
        .unwrap();
    assert_eq!(error_kind(bench.call("up__do", json!({})).await), Kind::Denied);
    let announced = async { while !matches!(changes.recv().await, Ok(Change::List(ItemKind::Tool))) {} };
    tokio::time::timeout(Duration::from_secs(5), announced).await.unwrap();
    bench.hub.set_policy(None).unwrap();
    assert!(bench.call("up__do", json!({})).await.is_ok());
}

#[tokio::test]
async fn an_outcome_carries_the_definition_that_ran() {
    let source = ScriptedSource::new("up", vec![tool("do")]);
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn octo_toolkit::Source>], |_| {});
    let called = bench.call_request(HubFixture::request("up__do", json!({}))).await;
    let mut changes = bench.hub.changes();
    source.relist(octo_toolkit::SourceState::Ready, Vec::new());
    changes.recv().await.unwrap();
    assert_eq!(&*called.entry.unwrap().listed_name, "up__do");
    assert!(bench.call_request(HubFixture::request("up__do", json!({}))).await.entry.is_none());
}
