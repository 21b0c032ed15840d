//! Every route to a tool is decided like a direct call: what is denied stays denied, approval is asked for, and the audit
//! log names the tool.

use super::workflow_fixture::WorkflowHub;
use octo_hub::{
    ApprovalRequest, Approver, Obligations, PolicyDecision, PolicyEngine, PolicyRequest, Profile,
    ProfileSettings,
};
use octo_model::{BoxFuture, Kind, ToolError};
use octo_ports::Outcome;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Denies `append`, and `put` of one line; other lines of `put` need approval.
struct Rules;

impl PolicyEngine for Rules {
    fn decide<'a>(&'a self, request: &PolicyRequest<'_>) -> PolicyDecision<'a> {
        let line =
            request.arguments.and_then(|json| json.to::<Value>().ok()?["line"].as_str().map(str::to_owned));
        let obligations = Obligations::default();
        match (request.entry.item.key.as_str(), line.as_deref()) {
            ("append", _) | ("put", Some("denied")) => {
                PolicyDecision::Deny { rule: "no-append".into(), hint: None }
            }
            ("put", _) => PolicyDecision::RequireApproval { rule: "ask".into(), obligations },
            _ => PolicyDecision::Permit { rule: "rest".into(), obligations },
        }
    }

    fn reads_arguments(&self) -> bool {
        true
    }
}

struct Refuser(Mutex<Vec<String>>);

impl Approver for Refuser {
    fn approve<'a>(&'a self, asked: ApprovalRequest<'a>) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.lock().unwrap().push(asked.entry.item.key.clone());
        Box::pin(async { Err(ToolError::denied("Nobody approves.")) })
    }
}

/// A way to call a tool: the profile, and the call that stands for it.
struct Route {
    name: &'static str,
    profile: &'static str,
    call: fn(&WorkflowHub, &str, &str) -> (String, Value),
}

fn workflow_of(hub: &WorkflowHub, step: &str) -> (String, Value) {
    hub.write("route.yaml", &format!("version: 1\nname: route\nsteps:\n- {step}\n"));
    ("workflow_run".to_owned(), json!({"path": "route.yaml"}))
}

fn program(tool: &str, line: &str) -> Value {
    json!({"code": format!("return await tools.{tool}({{line: {line:?}}})")})
}

const ROUTES: [Route; 11] = [
    Route { name: "name", profile: "", call: |_, tool, line| (tool.to_owned(), json!({"line": line})) },
    Route {
        name: "server:tool",
        profile: "",
        call: |_, tool, line| (format!("scripted:{tool}"), json!({"line": line})),
    },
    Route {
        name: "alias",
        profile: "aliases",
        call: |_, tool, line| (format!("do_{tool}"), json!({"line": line})),
    },
    Route {
        name: "tools_call",
        profile: "",
        call: |_, tool, line| ("tools_call".to_owned(), json!({"name": tool, "arguments": {"line": line}})),
    },
    Route {
        name: "tools_call of server:tool",
        profile: "",
        call: |_, tool, line| {
            let name = format!("scripted:{tool}");
            ("tools_call".to_owned(), json!({"name": name, "arguments": {"line": line}}))
        },
    },
    Route {
        name: "tools_call of an alias",
        profile: "aliases",
        call: |_, tool, line| {
            let name = format!("do_{tool}");
            ("tools_call".to_owned(), json!({"name": name, "arguments": {"line": line}}))
        },
    },
    Route {
        name: "run_code",
        profile: "",
        call: |_, tool, line| ("run_code".to_owned(), program(tool, line)),
    },
    Route {
        name: "run_code of an alias",
        profile: "aliases",
        call: |_, tool, line| ("run_code".to_owned(), program(&format!("do_{tool}"), line)),
    },
    Route {
        name: "run_code by tools_call",
        profile: "",
        call: |_, tool, line| {
            ("tools_call".to_owned(), json!({"name": "run_code", "arguments": program(tool, line)}))
        },
    },
    Route {
        name: "workflow",
        profile: "",
        call: |hub, tool, line| workflow_of(hub, &format!("{{id: a, tool: {tool}, with: {{line: {line}}}}}")),
    },
    Route {
        name: "workflow with run_code",
        profile: "",
        call: |hub, tool, line| {
            workflow_of(hub, &format!("{{id: a, tool: run_code, with: {}}}", program(tool, line)))
        },
    },
];

#[tokio::test]
async fn no_route_bypasses_the_policy() {
    for route in &ROUTES {
        // The tool, its line, whether the call succeeds, and the outcome in the audit log.
        for (tool, line, succeeds, recorded) in [
            ("look", "x", true, Outcome::Ok),
            ("append", "x", false, Outcome::Error(Kind::Denied)),
            ("put", "denied", false, Outcome::Error(Kind::Denied)),
            ("put", "asked", false, Outcome::Error(Kind::Denied)),
        ] {
            let case = format!("{}: {tool} {line}", route.name);
            let hub = WorkflowHub::with_profiles(vec![aliases()]);
            hub.hub.set_policy(Some(Arc::new(Rules))).unwrap();
            let refuser = Arc::new(Refuser(Mutex::default()));
            hub.hub.set_approver(Arc::clone(&refuser) as Arc<dyn Approver>);
            let (name, arguments) = (route.call)(&hub, tool, line);
            let called =
                hub.call_tool("ada", route.profile, &name, arguments, CancellationToken::new()).await;
            let is_done = match &called {
                Ok(reply) => reply["status"].as_str().is_none_or(|status| status == "done"),
                Err(_) => false,
            };
            assert_eq!(is_done, succeeds, "{case}: {called:?}");
            assert!(hub.lines().is_empty(), "{case}: the tool ran");
            assert_eq!(*refuser.0.lock().unwrap() == ["put"], line == "asked", "{case}");
            let target = format!("scripted/{tool}");
            let closed = hub.stores.closed.lock().unwrap();
            let outcomes: Vec<Outcome> = closed
                .iter()
                .filter(|record| record.target.as_deref() == Some(&*target))
                .map(|record| record.outcome)
                .collect();
            // Programs and workflows are not offered what is denied by its name, so that there is no call.
            let is_offered = tool != "append" || !(name.contains("workflow") || case.contains("run_code"));
            assert_eq!(outcomes, vec![recorded; usize::from(is_offered)], "{case}");
            assert_eq!(closed.len(), hub.stores.opened.lock().unwrap().len(), "{case}");
        }
    }
}

/// A program has no way to run another one, whatever the profile calls the tool.
#[tokio::test]
async fn programs_cannot_run_programs() {
    let settings: ProfileSettings = serde_json::from_value(json!({
        "tools": ["look"], "as": {"code": {"tool": "run_code"}, "tools.look": {"tool": "look"}},
    }))
    .unwrap();
    let hub = WorkflowHub::with_profiles(vec![Profile::new("renamed", &settings).unwrap()]);
    let run = async |profile: &str, tool: &str, arguments: Value| {
        hub.call_tool("ada", profile, tool, arguments, CancellationToken::new()).await
    };
    for (profile, tool, arguments, expected) in [
        (
            "",
            "run_code",
            json!({"code": "return await tools.run_code({code: 'return 1'})"}),
            "There is no tool",
        ),
        (
            "renamed",
            "code",
            json!({"code": "return await tools.code({code: 'return 1'})"}),
            "There is no tool",
        ),
        (
            "renamed",
            "code",
            json!({"code": "return await call('code', {code: 'return 1'})"}),
            "There is no tool",
        ),
        ("", "run_code", json!({"types": ["run_code"]}), "Tool not found"),
        ("", "run_code", json!({"types": ["run_*"]}), "Tool not found"),
        ("renamed", "code", json!({"types": ["code"]}), "Tool not found"),
    ] {
        let error = run(profile, tool, arguments.clone()).await.unwrap_err();
        assert!(error.text().contains(expected), "{profile} {arguments}: {}", error.text());
    }
    let source = "return (await tools['tools.look']({line: 'x'})).line";
    for arguments in [json!({"code": source}), json!({"types": ["tools.look"]})] {
        assert!(run("renamed", "code", arguments.clone()).await.is_ok(), "{arguments}");
    }
}

/// Tools under other names.
fn aliases() -> Profile {
    let names: Value = ["append", "look", "put"]
        .into_iter()
        .map(|tool| (format!("do_{tool}"), json!({"tool": tool})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let settings: ProfileSettings =
        serde_json::from_value(json!({"tools": ["run_code"], "as": names})).unwrap();
    Profile::new("aliases", &settings).unwrap()
}
