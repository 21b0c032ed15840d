//! Documents with recursive, deep and unresolvable references.

#![allow(clippy::indexing_slicing, reason = "a test makes its own documents")]

use octo_openapi::{Document, RefInliner, SampleMembers, sample};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

const SCHEMA_COUNT: usize = 2_000;

/// Schemas that each contain the next three times over, and the last the first.
fn schemas(prefix: &str) -> Value {
    let named = |at: usize| json!({"$ref": format!("{prefix}N{}", at % SCHEMA_COUNT)});
    let schemas: Map<String, Value> = (0..SCHEMA_COUNT)
        .map(|at| {
            let schema = json!({"type": "object", "required": ["next"], "properties": {
                "next": named(at + 1), "list": {"type": "array", "items": named(at + 1)}, "self": named(at)},
                "allOf": [named(at + 1)]});
            (format!("N{at}"), schema)
        })
        .collect();
    let mut schemas = Value::Object(schemas);
    schemas["Loop"] = json!({"$ref": format!("{prefix}Pool")});
    schemas["Pool"] = json!({"$ref": format!("{prefix}Loop")});
    schemas["Lost"] = json!({"$ref": format!("{prefix}Nowhere")});
    schemas
}

fn documents() -> [Value; 3] {
    let three = |version: &str| {
        let prefix = "#/components/schemas/";
        let body = |name: &str| json!({"content": {"application/json": {"schema": {"$ref": format!("{prefix}{name}")}}}});
        json!({"openapi": version, "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://x.example"}], "paths": {
            "/deep": {"post": {"requestBody": body("N0"), "responses": {"200": body("N1")}}},
            "/loop": {"post": {"requestBody": body("Loop"), "responses": {"200": body("Lost")}}},
            "/round": {"$ref": "#/paths/~1trip"}, "/trip": {"$ref": "#/paths/~1round"},
            "/bad": {"get": {"parameters": [{"$ref": "#/components/parameters/a"}], "responses": {}}}},
            "components": {"schemas": schemas(prefix), "parameters": {
                "a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}}})
    };
    let prefix = "#/definitions/";
    let two = json!({"swagger": "2.0", "info": {"title": "t", "version": "1"}, "host": "x.example", "paths": {
        "/deep": {"post": {"parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/definitions/N0"}}],
            "responses": {"200": {"schema": {"$ref": "#/definitions/N1"}}}}},
        "/loop": {"post": {"parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/definitions/Loop"}}],
            "responses": {"200": {"schema": {"$ref": "#/definitions/Lost"}}}}},
        "/round": {"$ref": "#/paths/~1trip"}, "/trip": {"$ref": "#/paths/~1round"},
        "/bad": {"get": {"parameters": [{"$ref": "#/parameters/a"}], "responses": {}}}},
        "parameters": {"a": {"$ref": "#/parameters/b"}, "b": {"$ref": "#/parameters/a"}},
        "definitions": schemas(prefix)});
    [two, three("3.0.3"), three("3.1.0")]
}

#[test]
fn circles_of_two_thousand_schemas_load_at_once_and_unfold_within_bounds() {
    for document in documents() {
        let start = Instant::now();
        let document = Document::parse(document.to_string()).unwrap();
        assert_eq!(document.operations().len(), 2);
        assert_eq!(document.skipped.len(), 3, "{:?}", document.skipped);
        assert!(document.skipped.iter().all(|why| why.contains("circle")), "{:?}", document.skipped);
        for path in ["/deep", "/loop"] {
            let operation = document.operation(path, "POST").unwrap();
            let schema = &operation.body.as_ref().unwrap().media[0].schema;
            let mut unfold = RefInliner::new(&document, 1_000, 30);
            let unfolded = unfold.inline(schema).to_string();
            assert!(unfold.refs_left > 0 && unfolded.len() < 1_000_000, "{path} {}", unfolded.len());
            let value = sample(&document, schema, SampleMembers::Required);
            assert!(value.to_string().len() < 1_000_000, "{path}");
        }
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

#[test]
fn nesting_without_end_is_refused_or_left_out() {
    let deep = format!("{}{}", "{\"a\":".repeat(100_000), "1".to_owned() + &"}".repeat(100_000));
    let text =
        format!("{{\"openapi\": \"3.0.0\", \"paths\": {{\"/x\": {deep}, \"/y\": {{\"get\": {{}}}}}}}}");
    let document = Document::parse(text).unwrap();
    assert_eq!((document.operations().len(), document.skipped.len()), (1, 1));
}
