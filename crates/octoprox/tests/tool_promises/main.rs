//! Contract of native tools, checked for every tool of the binary.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests read their own files and fail where a promise is broken"
)]

mod example_hub;
mod example_workspace;
mod path_escapes;
mod schema_walk;

use example_hub::{ListedTool, MemoryStores, call, hub, listed_tools, tools_json};
use example_workspace::ExampleWorkspace;
use octo_model::{Caller, ItemKind, Json, JsonObject, Kind, MAX_NAME_LEN, is_valid_name};
use octo_toolkit::{CallContext, ErasedTool, Toolbox};
use octoprox::settings::Settings;
use octoprox::toolboxes;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Tools whose examples need a result, session or API of an earlier call, or a hub. Their own tests run them.
const WITHOUT_EXAMPLES: [&str; 13] = [
    "fs_read_media",
    "openapi_call",
    "openapi_get_operation",
    "openapi_list_endpoints",
    "openapi_unload",
    "result_read",
    "shell_read",
    "shell_resize",
    "shell_stop",
    "shell_write",
    "workflow_run",
    "workflow_runs",
    "workflow_validate",
];

/// Tools whose examples need a network, a database or a browser. Their own tests run them, against local servers.
const EXTERNAL_TOOLBOXES: [&str; 10] = [
    "browser",
    "database",
    "fetch",
    "github",
    "gitlab",
    "readability",
    "search",
    "servers",
    "summary",
    "weather",
];

/// Several clients drop images beside structured content.
const IMAGE_TOOLS: [&str; 2] = ["browser_screenshot", "fs_read_media"];

/// Every surface lists them, whatever else it lists, so that they must be short.
const TOOLS_OF_EVERY_SURFACE: [&str; 2] = ["result_read", "tools_call"];

#[tokio::test]
async fn names_are_plain_and_short() {
    for ListedTool { name, .. } in listed_tools().await {
        assert!(is_valid_name(&name) && name.len() <= MAX_NAME_LEN, "{name}");
        assert!(!name.contains("__"), "{name} looks like a tool of a server");
    }
}

#[tokio::test]
async fn descriptions_are_said_in_10_to_60_words() {
    for ListedTool { name, definition, .. } in listed_tools().await {
        let words = definition["description"].as_str().unwrap_or_default().split_whitespace().count();
        let least = if TOOLS_OF_EVERY_SURFACE.contains(&&*name) { 4 } else { 10 };
        assert!((least..=60).contains(&words), "{name} is described in {words} words");
        assert!(definition["title"].as_str().is_some_and(|title| title.len() > 3), "{name} has no title");
    }
}

#[tokio::test]
async fn every_field_of_every_schema_is_documented() {
    for ListedTool { name, definition, .. } in listed_tools().await {
        for schema in schemas_of(&name) {
            assert_eq!(definition[schema]["type"], "object", "{name} {schema}");
            let bare = schema_walk::undocumented(&definition[schema]);
            assert!(bare.is_empty(), "{name} {schema}: nothing is said of {bare:?}");
        }
    }
}

#[tokio::test]
async fn schemas_are_what_all_clients_accept() {
    for ListedTool { name, definition, .. } in listed_tools().await {
        for schema in schemas_of(&name) {
            let strange = schema_walk::unsupported_keywords(&definition[schema]);
            assert!(strange.is_empty(), "{name} {schema}: {strange:?}");
        }
        assert_eq!(definition["inputSchema"]["additionalProperties"], json!(false), "{name} takes any field");
    }
}

#[tokio::test]
async fn annotations_say_what_the_effect_is() {
    for ListedTool { name, definition, effect } in listed_tools().await {
        let title = definition["title"].as_str().unwrap_or_default();
        let expected = effect.annotations(title).to_json().to::<Value>().unwrap();
        assert_eq!(definition["annotations"], expected, "{name}");
        assert!(!(effect.read_only && effect.destructive), "{name} reads and destroys");
    }
}

#[tokio::test]
async fn examples_run_and_fit_their_schemas() {
    for tool in tools() {
        assert!(!tool.examples.is_empty(), "{} has no examples", tool.name);
        let definition: Value = tool.definition.to_json().to().unwrap();
        let input = jsonschema::validator_for(&definition["inputSchema"]).unwrap();
        let output = definition.get("outputSchema").cloned().unwrap_or(json!(true));
        let output = jsonschema::validator_for(&output).unwrap();
        let (ground, memory) = (ExampleWorkspace::new(), Arc::new(MemoryStores::default()));
        let doors = ground.capabilities(&memory);
        for example in &tool.examples {
            let what = format!("{}: {}", tool.name, example.purpose);
            let given: Value = example.input.to().unwrap();
            assert!(input.is_valid(&given), "{what}: the input does not fit");
            if !runs_here(tool.name) {
                continue;
            }
            let deadline = Instant::now() + Duration::from_secs(10);
            let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
            let answer = tool
                .run(example.input.clone(), &doors, &cx)
                .await
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let answer: Value = answer.to().unwrap();
            let wrong: Vec<String> = output.iter_errors(&answer).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{what}: {wrong:?}");
            if let Some(expected) = &example.output {
                assert_eq!(answer, expected.to::<Value>().unwrap(), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_field_is_refused_with_a_hint() {
    let hub = hub(&ExampleWorkspace::new(), 100_000);
    for ListedTool { name, .. } in listed_tools().await {
        let called = call(&hub, &name, json!({"no_such_field": 1}), CancellationToken::new()).await;
        let error = called.outcome.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{name}");
        assert!(error.message.contains("no_such_field"), "{name}: {}", error.message);
        assert!(error.hint.as_deref().is_some_and(|hint| hint.len() > 10), "{name} gives no hint");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_within_a_second() {
    for (name, input) in example_inputs() {
        let ground = ExampleWorkspace::new();
        let hub = hub(&ground, 100_000);
        let cancel = CancellationToken::new();
        let late = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            late.cancel();
        });
        let called = tokio::time::timeout(Duration::from_secs(1), call(&hub, name, input, cancel)).await;
        let outcome = called.unwrap_or_else(|_| panic!("{name} went on after it was cancelled")).outcome;
        assert!(
            outcome.as_ref().err().is_none_or(|error| error.kind == Kind::Cancelled),
            "{name}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn replies_obey_the_cap() {
    /// Notice and resource link of a truncated reply.
    const NOTICE: usize = 1_000;
    for cap in [2_000, 10_000] {
        for (name, input) in example_inputs() {
            let ground = ExampleWorkspace::new();
            let hub = hub(&ground, cap);
            let called = call(&hub, name, input, CancellationToken::new()).await;
            let Ok(result) = called.outcome else { continue };
            let size: usize = result.iter().map(|(_, value)| value.bytes().len()).sum();
            assert!(size <= cap + NOTICE, "{name}: {size} bytes with a cap of {cap}");
            check_structure(&hub, name, &result);
        }
    }
}

/// A truncated reply still matches its output schema.
fn check_structure(hub: &octo_hub::Hub, name: &str, result: &JsonObject) {
    let view = hub.view("").unwrap();
    let entry = view.by_name(ItemKind::Tool, name).unwrap();
    let schema: Value = entry.item.members.get("outputSchema").unwrap().to().unwrap();
    let structure: Value = result.get("structuredContent").unwrap().to().unwrap();
    assert!(jsonschema::is_valid(&schema, &structure), "{name}: {structure}");
}

/// Every listed tool costs the model tokens. If this number changes, check that it is worth it and update the file.
#[tokio::test]
async fn the_size_of_the_list_is_known() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tool_promises/list_bytes.txt");
    let known: usize = std::fs::read_to_string(path).unwrap().trim().parse().unwrap();
    let size = tools_json(&hub(&ExampleWorkspace::new(), 100_000)).await.bytes().len();
    assert_eq!(size, known, "tools/list has {size} bytes, {path} says {known}");
}

fn tools() -> impl Iterator<Item = ErasedTool> {
    toolboxes(&Settings::default()).into_iter().flat_map(|toolbox: Toolbox| toolbox.tools)
}

/// Returns whether the examples of a tool run here.
fn runs_here(tool: &str) -> bool {
    static EXTERNAL_TOOLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let outward =
            toolboxes(&Settings::default()).into_iter().filter(|one| EXTERNAL_TOOLBOXES.contains(&one.name));
        outward.flat_map(|toolbox| toolbox.tools).map(|tool| tool.name).collect()
    });
    !WITHOUT_EXAMPLES.contains(&tool) && !EXTERNAL_TOOLS.contains(&tool)
}

/// Schemas of a tool.
fn schemas_of(name: &str) -> impl Iterator<Item = &'static str> {
    ["inputSchema", "outputSchema"]
        .into_iter()
        .filter(move |schema| *schema == "inputSchema" || !IMAGE_TOOLS.contains(&name))
}

/// Examples of all tools.
fn example_inputs() -> Vec<(&'static str, Value)> {
    tools()
        .filter(|tool| runs_here(tool.name))
        .flat_map(|tool| {
            let inputs = tool.examples.iter().map(|example| (tool.name, Json::to(&example.input).unwrap()));
            inputs.collect::<Vec<_>>()
        })
        .collect()
}
