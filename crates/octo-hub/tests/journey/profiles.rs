//! Tools renamed by a profile, and rules that still apply to them.

use crate::hub_fixture::{HubFixture, ScriptedSource};
use octo_hub::{Profile, ProfileSettings};
use octo_model::{Caller, ItemKind, JsonObject, Kind};
use serde_json::{Value, json};

fn echo_tool() -> Value {
    json!({
        "name": "mirror", "description": "Answers with what it got.",
        "inputSchema": {
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "Where.", "x-mcp-header": "Path"},
                "text": {"type": "string"},
                "append": {"type": "boolean", "default": false},
                "force": {"type": "boolean", "default": false}
            }
        }
    })
}

fn override_fixture(recasts: Value, more: Value) -> HubFixture {
    let mut settings = json!({"as": recasts});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    HubFixture::new(vec![ScriptedSource::new("up", vec![echo_tool()])], |parts| {
        let settings: ProfileSettings = serde_json::from_value(settings).unwrap();
        parts.profiles = vec![Profile::new("p", &settings).unwrap()];
    })
}

async fn tools(bench: &HubFixture) -> Vec<Value> {
    bench.hub.list("p", ItemKind::Tool, &Caller::local(), None).await.unwrap().items.to().unwrap()
}

async fn call(bench: &HubFixture, name: &str, arguments: Value) -> Result<JsonObject, octo_model::ToolError> {
    let mut request = HubFixture::request(name, arguments);
    request.profile = "p".to_owned();
    bench.call_request(request).await.outcome
}

fn structure(reply: JsonObject) -> Value {
    reply.get("structuredContent").unwrap().to().unwrap()
}

#[tokio::test]
async fn arguments_are_renamed_translated_fixed_and_hidden() {
    let bench = override_fixture(
        json!({"write_file": {
            "tool": "up__mirror", "description": "Writes.", "others": "hide", "fixed": {"force": true},
            "args": {
                "file": "path", "content": "text", "ignored": null,
                "mode": {"to": "append", "default": "w", "values": {"w": false, "a": true}},
                "capture": {"default": true, "empties": {"true": [], "false": ["out", "list"]}}
            }
        }}),
        json!({}),
    );
    let listed = tools(&bench).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["name"], &listed[0]["description"]), (&json!("write_file"), &json!("Writes.")));
    let schema = &listed[0]["inputSchema"];
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["file", "content", "mode", "capture", "ignored"]);
    assert_eq!(schema["required"], json!(["file"]));
    assert_eq!(schema["properties"]["mode"]["enum"], json!(["a", "w"]));
    assert_eq!(schema["properties"]["capture"]["type"], "boolean");
    assert_eq!(schema["properties"]["file"]["description"], "Where.");

    let got = |reply| structure(reply)["got"].clone();
    let reply = call(&bench, "write_file", json!({"file": "a", "content": "x", "mode": "a", "ignored": 1}));
    assert_eq!(got(reply.await.unwrap()), json!({"path": "a", "text": "x", "append": true, "force": true}));
    let reply = call(&bench, "write_file", json!({"file": "a", "capture": false})).await.unwrap();
    assert_eq!(
        structure(reply),
        json!({"got": {"path": "a", "append": false, "force": true}, "out": "", "list": []})
    );
    for wrong in
        [json!({"path": "a"}), json!({"file": "a", "mode": "x"}), json!({"file": "a", "force": false})]
    {
        assert_eq!(
            call(&bench, "write_file", wrong.clone()).await.unwrap_err().kind,
            Kind::Invalid,
            "{wrong}"
        );
    }
    assert_eq!(call(&bench, "up__mirror", json!({"path": "a"})).await.unwrap_err().kind, Kind::NotFound);
}

#[tokio::test]
async fn one_tool_may_be_renamed_among_all() {
    let bench =
        override_fixture(json!({"put": {"tool": "up/mirror", "hide": ["force"]}}), json!({"tools": ["*"]}));
    let names: Vec<Value> = tools(&bench).await.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["result_read", "tools_call", "tools_find", "put"]);
    let got = structure(call(&bench, "put", json!({"path": "a", "text": "x"})).await.unwrap())["got"].clone();
    assert_eq!(got, json!({"path": "a", "text": "x"}));
}

#[tokio::test]
async fn a_profile_that_does_not_fit_its_tool_says_why() {
    for (recast, why) in [
        (json!({"tool": "up__mirror", "args": {"a": "nosuch"}}), "has no parameter `nosuch`"),
        (json!({"tool": "up__mirror", "others": "hide"}), "requires the parameter `path`"),
    ] {
        let bench = override_fixture(json!({"odd": recast}), json!({}));
        assert!(tools(&bench).await.is_empty());
        let error = call(&bench, "odd", json!({})).await.unwrap_err();
        assert!(error.hint.as_deref().unwrap_or_default().contains(why), "{error:?}");
    }
}

#[tokio::test]
async fn another_name_escapes_no_rule_and_no_limit() {
    let renamed = json!({"as": {"safe_read": {"tool": "up__mirror"}}});
    let bare = json!({"servers": ["up"], "without_prefix": true});
    for (profile, name) in [(renamed, "safe_read"), (bare, "mirror")] {
        for policy in [
            json!({"rules": [{"name": "no", "tools": ["up__*"], "decision": "deny"}]}),
            json!({"rules": [{"name": "no", "tools": [name], "decision": "deny"}]}),
            json!({"default": "deny", "rules": [{"name": "yes", "tools": [name], "decision": "allow"}]}),
        ] {
            let bench = HubFixture::new(vec![ScriptedSource::new("up", vec![echo_tool()])], |parts| {
                let settings: ProfileSettings = serde_json::from_value(profile.clone()).unwrap();
                parts.profiles = vec![Profile::new("p", &settings).unwrap()];
                parts.policy = serde_json::from_value(policy.clone()).unwrap();
            });
            assert_eq!(
                call(&bench, name, json!({"path": "a"})).await.unwrap_err().kind,
                Kind::Denied,
                "{policy}"
            );
        }
        let bench = HubFixture::new(vec![ScriptedSource::new("up", vec![echo_tool()])], |parts| {
            let settings: ProfileSettings = serde_json::from_value(profile.clone()).unwrap();
            parts.profiles = vec![Profile::new("p", &settings).unwrap()];
            parts.limits =
                vec![serde_json::from_value(json!({"tools": ["up__*"], "per_minute": 1})).unwrap()];
        });
        assert!(call(&bench, name, json!({"path": "a"})).await.is_ok());
        assert_eq!(call(&bench, name, json!({"path": "a"})).await.unwrap_err().kind, Kind::RateLimited);
    }
}
