use super::*;

fn document() -> Document {
    let schemas = json!({
        "Pet": {"type": "object", "required": ["name", "id"], "description": "A <b>pet</b>.", "properties": {
            "id": {"type": "integer", "format": "int64", "readOnly": true},
            "name": {"type": "string", "x-odd": 1, "example": "Rex", "pattern": "^(?!x)"},
            "mother": {"$ref": "#/components/schemas/Pet"}}},
        "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"required": ["barks"], "properties": {"barks": {"type": "boolean"}}}]},
        "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}], "type": "object"},
        "Pair": {"oneOf": [{"$ref": "#/components/schemas/Pair"}, {"type": "array", "items": {"$ref": "#/components/schemas/Pair"}}]},
    });
    let text =
        json!({"openapi": "3.1.0", "info": {}, "paths": {}, "components": {"schemas": schemas}}).to_string();
    Document::parse(text).unwrap()
}

#[test]
fn schemas_are_said_in_words_that_all_clients_take() {
    let document = document();
    for (schema, made) in [
        (json!(null), json!({})),
        (json!(true), json!({})),
        (
            json!({"type": "integer", "format": "int64", "minimum": 0, "exclusiveMinimum": true, "title": "N"}),
            json!({"type": "integer", "exclusiveMinimum": 0}),
        ),
        (
            json!({"type": "number", "exclusiveMaximum": 5, "maximum": "x"}),
            json!({"type": "number", "exclusiveMaximum": 5}),
        ),
        (
            json!({"type": "string", "nullable": true, "enum": ["a", null], "description": "d"}),
            json!({"description": "d", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ),
        (json!({"type": ["string", "null"]}), json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        (json!({"type": ["string", "integer"]}), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        (json!({"const": 3}), json!({"enum": [3]})),
        (json!({"type": "array"}), json!({"type": "array", "items": {}})),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ),
        (json!({"anyOf": [{}, {"type": "string"}]}), json!({})),
        (
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
        (
            json!({"$ref": "#/components/schemas/Pet"}),
            json!({"type": "object", "description": "A pet.", "required": ["name"],
                "properties": {"name": {"type": "string"}, "mother": {"type": "object", "description": "A pet."}}}),
        ),
        (json!({"$ref": "#/components/schemas/None"}), json!({})),
        (json!({"$ref": "other.yaml#/X"}), json!({})),
        (json!({"$ref": "#/components/schemas/Loop"}), json!({"type": "object"})),
    ] {
        assert_eq!(CompatSchemaBuilder::new(&document, 500).body(&schema, false), made, "{schema}");
    }
    let dog =
        CompatSchemaBuilder::new(&document, 500).body(&json!({"$ref": "#/components/schemas/Dog"}), false);
    assert_eq!(dog["required"], json!(["name", "barks"]));
    assert!(dog["properties"]["mother"]["properties"]["name"].is_object(), "{dog}");
    let either = json!({"properties": {"a": {}}, "oneOf": [{"required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]});
    let either = CompatSchemaBuilder::new(&document, 500).body(&either, false);
    assert!(either.get("required").is_none() && either.get("anyOf").is_none(), "{either}");
}

#[test]
fn a_parameter_is_there_or_not_and_a_file_has_a_name() {
    let document = document();
    let null = json!({"type": ["string", "null"], "description": "d"});
    let made = CompatSchemaBuilder::new(&document, 9).parameter(&null);
    assert_eq!(made, json!({"type": "string", "description": "d"}));
    let form = json!({"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}});
    let made = CompatSchemaBuilder::new(&document, 9).body(&form, true);
    assert!(made["properties"]["f"]["properties"]["base64"].is_object(), "{made}");
}

#[test]
fn what_leads_back_or_has_no_end_stays_small() {
    let document = document();
    let deep = (0..60).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let members: Map<String, Value> =
        (0..5_000).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
    let wide = json!({"type": "object", "properties": members, "required": ["m4999"]});
    for schema in [json!({"$ref": "#/components/schemas/Pair"}), deep, wide.clone()] {
        let made = CompatSchemaBuilder::new(&document, 300).body(&schema, false).to_string();
        assert!(made.len() < 20_000 && !made.contains("$ref"), "{} bytes", made.len());
    }
    let made = CompatSchemaBuilder::new(&document, 300).body(&wide, false);
    assert_eq!(made["required"], json!(["m4999"]));
}
