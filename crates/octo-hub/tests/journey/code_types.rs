//! `run_code` without a program: declarations of tools, and arguments that are wrong.

use crate::error_kind;
use crate::hub_fixture::{HubFixture, ScriptedSource, tool};
use octo_hub::{ChildCommand, Decision, PolicySettings};
use octo_model::Kind;
use octo_toolkit::Source;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Servers with a thousand tools each. No program is started.
fn fixture(servers: usize, policy: PolicySettings) -> HubFixture {
    let server = |number: usize| {
        let name: &str = ["one", "two", "three"][number];
        let tools = (0..1_000).map(|number| tool(&format!("tool_{number:04}"))).collect();
        ScriptedSource::new(name, tools) as Arc<dyn Source>
    };
    HubFixture::new((0..servers).map(server).collect(), |parts| {
        parts.policy = policy;
        parts.code_child = Some(ChildCommand { program: "/nonexistent".into(), args: Vec::new() });
    })
}

async fn types(bench: &HubFixture, names: Value) -> String {
    let result = bench.call("run_code", json!({"types": names})).await.unwrap();
    let structure: Value = result.get("structuredContent").unwrap().to().unwrap();
    structure["types"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn declarations_are_bounded_whatever_is_asked_for() {
    let bench = fixture(3, PolicySettings::default());
    let one = types(&bench, json!(["one.tool_0001"])).await;
    assert!(one.starts_with("declare const tools: {\n  one: {\n") && one.contains("tool_0001("), "{one}");
    assert_eq!(types(&bench, json!(["one:tool_0001", "one__tool_0001", "tools.one.tool_0001"])).await, one);
    let begun = Instant::now();
    let all = types(&bench, json!(vec!["*"; 50])).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(all.len() < 7_000, "{}", all.len());
    assert!(all.contains("tools that match are left out"), "{all}");
}

#[tokio::test]
async fn wrong_arguments_say_what_is_right() {
    let bench = fixture(1, PolicySettings::default());
    for (arguments, kind, expected) in [
        (json!({}), Kind::Invalid, "Give `code`"),
        (json!({"code": "  "}), Kind::Invalid, "Give `code`"),
        (json!({"code": "return 1", "types": ["one.*"]}), Kind::Invalid, "either `code` or `types`"),
        (json!({"types": vec!["one.*"; 51]}), Kind::Invalid, "more than 50 names"),
        (json!({"types": ["one.*", "x".repeat(5_000)]}), Kind::NotFound, "Find names with tools_find"),
        (json!({"source": "return 1"}), Kind::Invalid, "source"),
        (json!({"code": 5}), Kind::Invalid, "code"),
        // No process can be started here.
        (json!({"code": "return 1"}), Kind::Unavailable, "cannot be started"),
        (json!({"code": " ".repeat(70_000) + "1"}), Kind::TooLarge, "longer than"),
    ] {
        let error = bench.call("run_code", arguments.clone()).await.unwrap_err();
        let shown: String = arguments.to_string().chars().take(100).collect();
        assert_eq!(error.kind, kind, "{shown}: {}", error.text());
        assert!(error.text().contains(expected) && error.text().len() < 1_000, "{shown}: {}", error.text());
    }
}

#[tokio::test]
async fn what_is_denied_is_not_declared() {
    let deny = |tools: &[&str]| PolicySettings {
        default: Decision::Allow,
        rules: vec![
            serde_json::from_value(json!({"name": "r", "tools": tools, "decision": "deny"})).unwrap(),
        ],
    };
    let bench = fixture(1, deny(&["one__tool_0001"]));
    let names = |name: &str| json!({"types": [name]});
    assert_eq!(error_kind(bench.call("run_code", names("one.tool_0001")).await), Kind::NotFound);
    assert!(bench.call("run_code", names("one.tool_0002")).await.is_ok());
    let bench = fixture(1, deny(&["run_code"]));
    assert_eq!(error_kind(bench.call("run_code", names("one.tool_0002")).await), Kind::Denied);
    // Nothing that was not allowed may run programs.
    let bench = fixture(1, PolicySettings { default: Decision::Deny, rules: Vec::new() });
    assert_eq!(error_kind(bench.call("run_code", names("one.tool_0002")).await), Kind::Denied);
}
