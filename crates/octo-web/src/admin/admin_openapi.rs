//! OpenAPI 3.1 document of the admin API, built from its route table and the tools behind it.

use super::{CONNECT, DISCONNECT, LIST, LOGIN, LOGOUT, STATUS};
use crate::rest_openapi::{embed_schema, static_parts};
use crate::route_access::{ADMIN_ROUTES, Access, Route};
use octo_hub::Hub;
use octo_model::ItemKind;
use serde_json::{Map, Value, json};

/// Tool behind a path, if any.
fn tool(path: &str) -> Option<&'static str> {
    let tool = match path {
        "/servers" | "/servers/{id}" => LIST,
        "/servers/{id}/connect" => CONNECT,
        "/servers/{id}/disconnect" => DISCONNECT,
        "/servers/{id}/auth/start" | "/servers/{id}/auth/complete" => LOGIN,
        "/servers/{id}/auth/status" => STATUS,
        "/servers/{id}/auth/logout" => LOGOUT,
        _ => return None,
    };
    Some(tool)
}

pub fn document(hub: &Hub, secured: bool) -> Value {
    let mut schemas = static_parts::schemas();
    let mut paths: Map<String, Value> = Map::new();
    for route in ADMIN_ROUTES {
        let result = tool(route.path).map(|tool| schema(hub, tool, &mut schemas));
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(item) = item {
            item.insert(route.method.to_lowercase(), operation(route, result.as_ref()));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Octoprox admin API", "version": env!("CARGO_PKG_VERSION"), "license": static_parts::license(),
            "description": "The upstream servers and their logins."},
        "servers": [{"url": "/"}],
        "security": static_parts::security(secured),
        "paths": paths,
        "components": {"schemas": schemas, "responses": static_parts::responses(),
            "headers": static_parts::headers()},
    });
    if secured && let Some(Value::Object(components)) = document.get_mut("components") {
        components
            .insert("securitySchemes".to_owned(), json!({"token": {"type": "http", "scheme": "bearer"}}));
    }
    document
}

fn html(description: &str) -> Value {
    json!({"description": description, "content": {"text/html": {"schema": {"type": "string"}}}})
}

/// Output schema of a tool, as a component.
fn schema(hub: &Hub, tool: &str, schemas: &mut Map<String, Value>) -> Value {
    let id = format!("{tool}.output");
    if !schemas.contains_key(&id) {
        let view = hub.view("").ok();
        let entry = view.as_ref().and_then(|view| view.by_name(ItemKind::Tool, tool));
        let output = entry.and_then(|entry| entry.item.members.get("outputSchema").cloned());
        embed_schema::embed_schema(output.as_ref(), &id, schemas);
    }
    json!({"$ref": format!("#/components/schemas/{id}")})
}

fn operation(route: &Route, result: Option<&Value>) -> Value {
    let words: Vec<&str> =
        route.path.split('/').filter(|word| !word.is_empty() && !word.starts_with('{')).collect();
    let id = match (words.as_slice(), route.method) {
        ([_], _) if route.path.contains("{id}") => "server".to_owned(),
        (["auth", "start"], "POST") => "auth.begin".to_owned(),
        _ => words.join("."),
    };
    let mut operation = json!({"operationId": id, "summary": route.about});
    let Value::Object(members) = &mut operation else { return operation };
    let mut put = |key: &str, value: Value| drop(members.insert(key.to_owned(), value));
    if route.access == Access::Open {
        put("security", json!([]));
    }
    if route.access == Access::Admin {
        put("description", "For administrators: callers whose token has the scope `admin`.".into());
    }
    if route.path.contains("{id}") {
        let about = match route.access {
            Access::Open => "Last path segment of the login's URL.",
            Access::Caller | Access::Admin => "Name of the server in the settings.",
        };
        put(
            "parameters",
            json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}, "description": about}]),
        );
    }
    if route.path.ends_with("/complete") {
        let about = "The last URL of the browser, the code that it shows, or an API key.";
        let schema = json!({"type": "object", "required": ["answer"], "additionalProperties": false,
            "properties": {"answer": {"type": "string", "description": about}}});
        put("requestBody", json!({"required": true, "content": {"application/json": {"schema": schema}}}));
    }
    match result {
        Some(result) => put("responses", static_parts::call_responses(result)),
        None if route.path.starts_with("/auth/") && route.method == "POST" => put(
            "responses",
            json!({"303": {"description": "Redirect to the authorization server, with a cookie."}, "4XX": html("A page with the reason.")}),
        ),
        None if route.path.starts_with("/auth/") => put(
            "responses",
            json!({"200": html("A page for a person."), "4XX": html("A page with the reason.")}),
        ),
        None => put(
            "responses",
            json!({"200": {"description": "See the summary.", "content": {"application/json": {"schema": {"type": "object"}}}}}),
        ),
    }
    operation
}
