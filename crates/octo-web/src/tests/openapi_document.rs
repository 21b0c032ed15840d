//! The OpenAPI document against its own rules and against real replies.

use super::web_fixture::{TOKEN, WebFixture, get, post, request, send};
use axum::body::Body;
use serde_json::{Map, Value, json};

/// All `$ref`s under a value that is not data.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("$ref", Value::String(text)) => found.push(text),
                    ("default" | "const" | "enum" | "examples", _) => {}
                    _ => references(value, found),
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, found)),
        _ => {}
    }
}

fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(move |(method, operation)| (path, method, operation))
        })
        .collect()
}

fn check_document(document: &Value) {
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(found.len() > 50);
    for reference in found {
        assert!(
            document.pointer(reference.strip_prefix('#').unwrap()).is_some(),
            "{reference} leads nowhere"
        );
    }
    for (section, parts) in document["components"].as_object().unwrap() {
        for key in parts.as_object().unwrap().keys() {
            let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            assert!(plain, "{section} {key}");
        }
    }
    let mut ids = std::collections::HashSet::new();
    for (path, method, operation) in operations(document) {
        assert!(path.starts_with('/') && ["get", "post"].contains(&method.as_str()));
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{} twice", operation["operationId"]);
        let responses: &Map<String, Value> = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200") && responses.contains_key("401"));
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name} is no schema");
    }
}

/// The schema at a pointer, with the rest of the document for its references.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    jsonschema::options().build(&whole).unwrap()
}

#[tokio::test]
async fn the_document_keeps_its_rules() {
    let router = WebFixture::new().local();
    for path in ["/openapi.json", "/openapi.json?profile=small", "/openapi.json?profile=bare"] {
        check_document(&get(&router, path).await.json());
    }
    let document = get(&router, "/openapi.json").await.json();
    assert_eq!(document["security"], json!([]));
    assert!(document["components"].get("securitySchemes").is_none());
    let small = get(&router, "/openapi.json?profile=small").await.json();
    let tools = |document: &Value| {
        operations(document)
            .iter()
            .filter(|(path, method, _)| path.starts_with("/tools/") && *method == "post")
            .count()
    };
    assert_eq!((tools(&small), tools(&document)), (1, 13));
}

#[tokio::test]
async fn tokens_are_in_the_document_when_there_are_some() {
    let known = request("GET", "/openapi.json").header("authorization", format!("Bearer {TOKEN}"));
    let document = send(&WebFixture::new().secured(), known.body(Body::empty()).unwrap()).await.json();
    check_document(&document);
    assert_eq!(document["security"], json!([{"token": []}]));
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(document["paths"]["/health"]["get"]["security"], json!([]));
    assert!(document["paths"]["/tools"]["get"].get("security").is_none());
}

#[tokio::test]
async fn schemas_are_those_of_the_tools() {
    let document = get(&WebFixture::new().local(), "/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["echo.input"]["properties"]["text"]["type"], "string");
    assert_eq!(schemas["echo.output"]["properties"]["lines"]["type"], "array");
    assert_eq!(schemas["up__deep.input"]["properties"]["a"]["$ref"], "#/components/schemas/up__deep.input-A");
    assert!(schemas["up__lost.input"]["description"].as_str().unwrap().contains("cannot be shown"));
    assert_eq!(schemas["prompt.up__greet.input"]["required"], json!(["who"]));
    let echo = &document["paths"]["/tools/echo"]["post"];
    assert_eq!((&echo["operationId"], &echo["requestBody"]["required"]), (&json!("echo"), &json!(true)));
    assert_eq!(document["paths"]["/tools/up__both"]["post"]["requestBody"]["required"], false);
}

#[tokio::test]
async fn replies_are_what_the_document_says() {
    let router = WebFixture::new().local();
    let document = get(&router, "/openapi.json").await.json();
    let long = json!({"text": "word ".repeat(100), "times": 50}).to_string();
    for (path, body) in [
        ("/tools/echo", r#"{"text":"a"}"#),
        ("/tools/echo", &long),
        ("/tools/echo", "{}"),
        ("/tools/echo", "["),
        ("/tools/up__fail", ""),
        ("/tools/up__picture", ""),
        ("/tools/up__ask", ""),
        ("/tools/up__panic", ""),
        ("/tools/up__error", r#"{"kind":"unavailable"}"#),
        ("/tools/up__error", r#"{"kind":"cancelled"}"#),
        ("/prompts/up__greet", r#"{"who":"a"}"#),
    ] {
        let answer = post(&router, path, body.to_owned()).await;
        let mut response = &document["paths"][path]["post"]["responses"][answer.status.as_str()];
        if let Some(reference) = response["$ref"].as_str() {
            response = document.pointer(&reference[1..]).unwrap();
        }
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} {} is not in the document", answer.status);
        let reply = answer.json();
        let wrong: Vec<String> =
            validator(&document, schema).iter_errors(&reply).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{path} {body}: {wrong:?} in {reply}");
    }
}

#[tokio::test]
async fn lists_are_what_the_document_says() {
    let router = WebFixture::new().local();
    let document = get(&router, "/openapi.json").await.json();
    for path in ["/tools", "/prompts", "/health", "/ready", "/openapi.json"] {
        let schema =
            &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(validator(&document, schema).is_valid(&get(&router, path).await.json()), "{path}");
    }
    for (path, _, _) in operations(&document).into_iter().filter(|(_, method, _)| *method == "get") {
        let values = [("{name}", "echo"), ("{serverName}", "octoprox%2Fnotion"), ("{version}", "latest")];
        let path = values.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
        assert_eq!(get(&router, &path).await.status, 200, "{path}");
    }
}
