//! Properties that other crates rely on.

use super::shell_fixture::ShellFixture;
use serde_json::Value;

/// They need a session that only a real start provides; the session tests run them.
const SESSION_TOOLS: &[&str] = &["shell_read", "shell_write", "shell_resize", "shell_stop"];

#[tokio::test]
async fn examples_give_what_they_say() {
    let bench = ShellFixture::new();
    for tool in bench.tools().iter().filter(|tool| !SESSION_TOOLS.contains(&tool.name)) {
        for example in &tool.examples {
            let found = bench.fine(tool.name, example.input.to().unwrap()).await;
            if let Some(expected) = &example.output {
                assert_eq!(found, expected.to::<Value>().unwrap(), "{}", example.purpose);
            }
        }
    }
}

#[test]
fn the_tools_are_these_with_these_effects() {
    let bench = ShellFixture::new();
    let found: Vec<(&str, [bool; 4])> = bench
        .tools()
        .iter()
        .map(|tool| {
            let effect = tool.effect;
            (tool.name, [effect.read_only, effect.destructive, effect.idempotent, effect.open_world])
        })
        .collect();
    let runs = [false, true, false, true];
    let expected = [
        ("shell_exec", runs),
        ("shell_which", [true, false, true, false]),
        ("run_tests", runs),
        ("run_build", runs),
        ("check_process", [true, false, true, false]),
        ("shell_start", runs),
        ("shell_read", [true, false, false, false]),
        ("shell_write", runs),
        ("shell_resize", [false, false, true, false]),
        ("shell_stop", runs),
        ("shell_sessions", [true, false, false, false]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn descriptions_and_fields_are_what_clients_can_use() {
    for tool in ShellFixture::new().tools() {
        let definition: Value = tool.definition.to_json().to().unwrap();
        let words = definition["description"].as_str().unwrap().split_whitespace().count();
        assert!((10..=60).contains(&words), "{}: {words} words", tool.name);
        for schema in ["inputSchema", "outputSchema"] {
            let schema = &definition[schema];
            assert_eq!(schema["type"], "object", "{}", tool.name);
            documented(tool.name, schema);
            let text = schema.to_string();
            for strange in ["anyOf", "oneOf", "allOf", "$ref", "\"null\""] {
                assert!(!text.contains(strange), "{} has {strange}: {text}", tool.name);
            }
        }
        assert_eq!(definition["inputSchema"]["additionalProperties"], false, "{}", tool.name);
    }
}

fn documented(tool: &str, schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let said = field["description"].as_str().unwrap_or_default();
        assert!(said.len() > 3, "{tool}: {name} says nothing of itself");
        documented(tool, field);
        documented(tool, &field["items"]);
    }
}
