use super::*;
use serde_json::json;

fn shown(path: &[&str], description: &str, input: &Value, output: Option<&Value>) -> String {
    let binding =
        ToolBinding { name: path.join("__"), path: path.iter().map(|part| (*part).to_owned()).collect() };
    let tool = ToolDeclaration { binding: &binding, description, input_schema: input, output_schema: output };
    declarations(&[tool], 10_000)
}

#[test]
fn a_tool_with_arguments_and_a_result() {
    let input = json!({
        "type": "object",
        "required": ["owner"],
        "properties": {
            "page": { "type": "integer" },
            "owner": { "type": "string" },
            "state": { "enum": ["open", "closed"] },
            "labels": { "type": "array", "items": { "type": ["string", "null"] } },
            "x-y": { "const": 3 },
        },
    });
    let output = json!({ "type": "array", "items": { "$ref": "#/$defs/issue" },
        "$defs": { "issue": { "type": "object", "properties": { "id": { "type": "number" } } } } });
    let text = shown(&["github", "list_issues"], "Lists issues. Further words.", &input, Some(&output));
    assert_eq!(
        text,
        "declare const tools: {\n  github: {\n    /** Lists issues. */\n    list_issues(args: { owner: string; page?: \
         number; state?: \"open\" | \"closed\"; labels?: (string | null)[]; \"x-y\"?: 3 }): Promise<{ id?: number }[]>;\n  \
         };\n};\n"
    );
}

fn assert_declared<const N: usize>(rows: [(Value, &str); N]) {
    for (schema, argument) in rows {
        let text = shown(&["t"], "", &schema, None);
        assert!(text.contains(argument), "{schema}: {text}");
    }
}

#[test]
fn arguments_outside_of_the_properties_of_the_root() {
    assert_declared([
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object", "required": ["q"],
                "properties": { "q": { "type": "string" } } } } }),
            "(args: { q: string }): ",
        ),
        (
            json!({ "type": "object", "oneOf": [
                { "required": ["id"], "properties": { "id": { "type": "number" } } },
                { "required": ["name"], "properties": { "name": { "type": "string" } } },
            ] }),
            "(args: { id: number } | { name: string }): ",
        ),
        (
            json!({ "allOf": [{ "properties": { "a": { "type": "string" } } },
                { "required": ["b"], "properties": { "b": { "type": "string" } } }] }),
            "(args: { a?: string } & { b: string }): ",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "(args?: Record<string, string>): ",
        ),
        (json!({ "additionalProperties": { "type": "string" } }), "(args?: Record<string, string>): "),
        (json!({ "type": "object", "additionalProperties": true }), "(args?: Record<string, unknown>): "),
        (json!({ "$ref": "https://example.com/x" }), "(args?: object): "),
        // Alternatives that only tell what is required.
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
                "anyOf": [{ "required": ["a"] }, { "type": "object", "required": ["b"] }] }),
            "(args: { a?: string; b?: string }): ",
        ),
        (
            json!({ "properties": { "a": { "type": "string" } },
                "oneOf": [{ "properties": { "b": { "const": 1 } } }, { "properties": { "c": { "const": 2 } } }] }),
            "(args?: { a?: string } & ({ b?: 1 } | { c?: 2 })): ",
        ),
    ]);
}

#[test]
fn odd_schemas() {
    assert_declared([
        (json!(true), "(): "),
        (json!({}), "(): "),
        (json!({ "type": "object", "properties": { "a": {} } }), "(args?: { a?: unknown }): "),
        (json!({ "type": "object", "additionalProperties": false, "properties": {} }), "(): "),
        (json!({ "type": "object", "title": "x", "$schema": "y" }), "(): "),
        (json!({ "required": ["a"] }), "(args: object): "),
        // Lists of unions.
        (
            json!({ "properties": { "a": { "type": "array",
                "items": { "anyOf": [{ "properties": { "b": { "type": "string" } } }, { "type": "null" }] } } } }),
            "a?: ({ b?: string } | null)[]",
        ),
        (
            json!({ "properties": { "a": { "type": "array",
                "items": { "properties": { "b": { "enum": ["x", "}\"|"] } } } } } }),
            r#"a?: { b?: "x" | "}\"|" }[]"#,
        ),
        (
            json!({ "properties": { "a": { "type": "array", "items": { "enum": ["a | b"] } } } }),
            r#"a?: "a | b"[]"#,
        ),
        (
            json!({ "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } }),
            "a?: string | null",
        ),
        (json!({ "properties": { "a": { "oneOf": [{ "type": "string" }, {}] } } }), "a?: unknown"),
        (json!({ "properties": { "a": { "type": "strange" } } }), "a?: unknown"),
        (json!({ "properties": { "a": { "$ref": "https://example.com/x" } } }), "a?: unknown"),
        (
            json!({ "properties": { "a": { "type": "object", "additionalProperties": { "type": "number" } } } }),
            "Record<string, number>",
        ),
        (json!({ "properties": { "*/ evil()": {} } }), "\"*/ evil()\"?: unknown"),
        (json!({ "properties": { "a\"\n": { "enum": ["*/", "\n"] } } }), r#""a\"\n"?: "*/" | "\n""#),
        (
            json!({ "properties": { "a": { "enum": (0..1000).collect::<Vec<_>>(), "type": "integer" } } }),
            "a?: number",
        ),
        (json!({ "properties": { "a": { "$ref": "#/properties/a" } } }), "a?: unknown"),
        (json!({ "properties": { "a": { "$ref": "#" } } }), "a?: unknown"),
    ]);
}

#[test]
fn descriptions_cannot_end_their_comment() {
    let text = shown(&["a-b", "c.d"], "Ends */ here\nand `x`. More.", &json!({}), None);
    assert_eq!(text.matches("*/").count(), 1, "{text}");
    assert!(text.contains("\"a-b\": {") && text.contains("\"c.d\"(): Promise<unknown>"), "{text}");
}

#[test]
fn hostile_schemas_stay_small() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep.clone(), "b": deep } });
        if deep.to_string().len() > 1 << 18 {
            break;
        }
    }
    let wide: Map = (0..100_000).map(|index| (format!("p{index}"), json!({ "type": "string" }))).collect();
    let branching = json!({ "$defs": { "n": { "properties": {
        "a": { "$ref": "#/$defs/n" }, "b": { "$ref": "#/$defs/n" }, "c": { "$ref": "#/$defs/n" } } } }, "$ref": "#/$defs/n" });
    for schema in [deep, json!({ "properties": wide }), branching] {
        let text = shown(&["t"], &"x".repeat(100_000), &schema, Some(&schema));
        assert!(text.len() < 12_000, "{}", text.len());
    }
}

type Map = serde_json::Map<String, Value>;

#[test]
fn a_budget_leaves_out_details_then_tools() {
    let input = json!({ "type": "object", "required": ["a"],
        "properties": (0..30).map(|index| (format!("name{index}"), json!({ "type": "string" }))).collect::<Map>() });
    let bindings: Vec<_> = (0..200)
        .map(|index| ToolBinding {
            name: format!("t{index}"),
            path: vec!["s".to_owned(), format!("t{index}")],
        })
        .collect();
    let tools: Vec<_> = bindings
        .iter()
        .map(|binding| ToolDeclaration {
            binding,
            description: "Does it.",
            input_schema: &input,
            output_schema: Some(&input),
        })
        .collect();
    let mut last = usize::MAX;
    for budget in [1_000_000, 150_000, 60_000, 20_000, 5_000, 500] {
        let text = declarations(&tools, budget);
        assert!(text.len() <= budget && text.len() <= last, "{budget}: {}", text.len());
        last = text.len();
    }
    assert!(declarations(&tools, 500).contains("more tools"));
    assert!(declarations(&tools, 60_000).contains("t199(args: "));
}
