//! Parts of the document that do not depend on the catalogue.

use crate::error_response::http_status;
use octo_model::Kind;
use serde_json::{Map, Value, json};

pub fn info() -> Value {
    json!({
        "title": "Octoprox",
        "version": env!("CARGO_PKG_VERSION"),
        "license": license(),
        "description": "Every tool and prompt that this caller may use, as plain HTTP. Errors of every kind have the \
            same shape. An error of the hub or of a native tool has its own status; a server's tool that ran and reported \
            a failure returns status 200 and `success` false."
    })
}

pub fn license() -> Value {
    json!({"name": "Apache License 2.0", "identifier": "Apache-2.0"})
}

/// Security requirement of each request, unless its operation overrides it.
pub fn security(secured: bool) -> Value {
    if secured { json!([{"token": []}]) } else { json!([]) }
}

pub fn schemas() -> Map<String, Value> {
    let parts = json!({
        "Reply": {
            "type": "object",
            "required": ["success", "result", "error", "metadata", "execution_time_ms"],
            "properties": {
                "success": {"type": "boolean"},
                "result": {"description": "The result; null if there is none."},
                "error": {"anyOf": [{"$ref": "#/components/schemas/Error"}, {"type": "null"}]},
                "metadata": {"$ref": "#/components/schemas/Metadata"},
                "execution_time_ms": {"type": "number", "minimum": 0}
            }
        },
        "Failure": {
            "type": "object",
            "required": ["success", "error"],
            "properties": {
                "success": {"const": false},
                "result": {"type": "null"},
                "error": {"$ref": "#/components/schemas/Error"},
                "metadata": {"$ref": "#/components/schemas/Metadata"},
                "execution_time_ms": {"type": "number", "minimum": 0}
            }
        },
        "Error": {
            "type": "object",
            "required": ["kind", "message", "hint"],
            "properties": {
                "kind": {"type": "string", "enum": kinds(), "description": "`failed`: the tool ran and reported a failure."},
                "message": {"type": "string", "description": "What happened."},
                "hint": {"type": ["string", "null"], "description": "What to do next."},
                "retry_after_s": {"type": "integer", "minimum": 0},
                "outcome_unknown": {"type": "boolean", "description": "The call may have taken effect: check before you repeat it."}
            }
        },
        "Metadata": {
            "type": "object",
            "required": ["call_id", "server"],
            "properties": {
                "call_id": {"type": "string", "description": "The id of the call in the audit log; also in X-Request-Id."},
                "tool": {"type": "string"},
                "prompt": {"type": "string"},
                "server": {"type": ["string", "null"], "description": "The toolbox or server that answered."},
                "truncated": {"type": "boolean", "description": "True if the reply was truncated; see result_handle."},
                "cached": {"type": "boolean", "description": "True if the reply came from the cache."},
                "result_handle": {"type": "string", "description": "Pass it to the tool result_read for the rest."},
                "coerced": {"type": "array", "items": {"type": "string"},
                    "description": "How arguments were coerced to the schema."},
                "content": {"type": "array", "items": {"type": "object"},
                    "description": "Images, audio and links beside the result, as MCP content blocks."}
            }
        },
        "Content": {
            "type": "object",
            "required": ["content"],
            "properties": {"content": {"type": "array", "items": {"type": "object", "required": ["type"],
                "properties": {"type": {"type": "string"}}},
                "description": "MCP content blocks."}}
        },
        "Prompt": {
            "type": "object",
            "required": ["messages"],
            "properties": {
                "description": {"type": "string"},
                "messages": {"type": "array", "items": {"type": "object", "required": ["role", "content"],
                    "properties": {"role": {"type": "string"}, "content": {"type": "object"}}}}
            }
        },
        "Definition": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
            "description": "As in MCP's tools/list and prompts/list."
        }
    });
    match parts {
        Value::Object(parts) => parts,
        _ => Map::new(),
    }
}

fn kinds() -> Vec<&'static str> {
    Kind::ALL.iter().map(|kind| kind.as_str()).chain(["failed"]).collect()
}

/// Meaning of each error status.
const STATUSES: &[(u16, &str, &str)] = &[
    (400, "Invalid", "The arguments or the request are invalid."),
    (401, "Unauthorized", "The token is missing or unknown, or the upstream server needs a login."),
    (403, "Denied", "Policy or the origin of the request does not allow it."),
    (404, "NotFound", "Tool, prompt or profile not found."),
    (405, "WrongMethod", "The path does not support the method."),
    (408, "Stalled", "The body of the request did not arrive."),
    (409, "Conflict", "The current state does not allow it."),
    (413, "TooLarge", "The request or the result is too large."),
    (415, "WrongType", "The body is not application/json."),
    (421, "WrongHost", "The host name is not allowed."),
    (429, "RateLimited", "A rate limit of the hub or of an upstream is exhausted; see Retry-After."),
    (499, "Cancelled", "The call was cancelled."),
    (500, "Internal", "Internal error."),
    (503, "Unavailable", "The target is unavailable; see Retry-After."),
    (504, "Timeout", "The call timed out."),
];

pub fn responses() -> Value {
    let mut all = Map::new();
    for (code, name, about) in STATUSES {
        let mut response = json!({
            "description": about,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
        });
        let header = match *code {
            401 => Some("WWW-Authenticate"),
            429 | 503 => Some("Retry-After"),
            _ => None,
        };
        if let (Some(header), Value::Object(members)) = (header, &mut response) {
            members.insert("headers".to_owned(), json!({header: {"schema": {"type": "string"}}}));
        }
        all.insert((*name).to_owned(), response);
    }
    Value::Object(all)
}

pub fn headers() -> Value {
    json!({"RequestId": {"description": "The id of the call.", "schema": {"type": "string"}}})
}

pub fn parameters() -> Value {
    json!({
        "Profile": {"name": "profile", "in": "query", "schema": {"type": "string"},
            "description": "The profile to use; the whole catalogue if absent."},
        "ProfileHeader": {"name": "X-Octoprox-Profile", "in": "header", "schema": {"type": "string"},
            "description": "The same as the query parameter `profile`."},
        "Timeout": {"name": "X-Octoprox-Timeout-Ms", "in": "header", "schema": {"type": "integer", "minimum": 1},
            "description": "Timeout of the call, up to the limit in the settings."},
        "Trace": {"name": "traceparent", "in": "header", "schema": {"type": "string"},
            "description": "W3C trace context to join."}
    })
}

pub fn call_parameters() -> Value {
    json!([parameter("Profile"), parameter("ProfileHeader"), parameter("Timeout"), parameter("Trace")])
}

fn parameter(name: &str) -> Value {
    json!({"$ref": format!("#/components/parameters/{name}")})
}

/// All possible responses to a call.
pub fn call_responses(result: &Value) -> Value {
    let schema = json!({"allOf": [
        {"$ref": "#/components/schemas/Reply"},
        {"properties": {"result": {"anyOf": [result, {"type": "null"}]}}}
    ]});
    let mut all = Map::new();
    all.insert(
        "200".to_owned(),
        json!({
            "description": "The call ran; `success` tells whether it succeeded.",
            "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
            "content": {"application/json": {"schema": schema}}
        }),
    );
    add_failures(&mut all, |_| true);
    Value::Object(all)
}

fn add_failures(all: &mut Map<String, Value>, wanted: impl Fn(u16) -> bool) {
    for (code, name, _) in STATUSES.iter().filter(|(code, ..)| wanted(*code)) {
        all.insert(code.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
}

/// Responses to a request that only reads.
fn read_responses(about: &str, media: &str, schema: &Value) -> Value {
    let mut all = Map::new();
    all.insert("200".to_owned(), json!({"description": about, "content": {media: {"schema": schema}}}));
    add_failures(&mut all, |code| {
        let kinds = [Kind::Invalid, Kind::Unauthorized, Kind::Denied, Kind::NotFound, Kind::Internal];
        code == 421 || kinds.iter().any(|kind| http_status(*kind).as_u16() == code)
    });
    Value::Object(all)
}

/// `GET` of a tool. It is repeated on each path, because a concrete path hides the one with a parameter.
pub fn definition(id: &str) -> Value {
    let schema = json!({"$ref": "#/components/schemas/Definition"});
    json!({"operationId": id, "tags": ["hub"], "summary": "Its definition",
        "parameters": [parameter("Profile"), parameter("ProfileHeader")],
        "responses": read_responses("The definition", "application/json", &schema)})
}

/// Routes that are independent of the catalogue.
/// The registry API over the catalogue of servers.
fn registry_paths() -> Map<String, Value> {
    let text = |place: &str, name: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}});
    let limit = json!({"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}});
    let query = |name: &str| text("query", name);
    let page = json!([query("cursor"), limit, query("search"), query("version"), query("updated_since")]);
    let (name, version) = (text("path", "serverName"), text("path", "version"));
    let object = json!({"type": "object"});
    [
        ("/v0.1/servers", "registry.servers", "Servers that could be added", page),
        ("/v0.1/servers/{serverName}/versions", "registry.versions", "Versions of a server", json!([name])),
        (
            "/v0.1/servers/{serverName}/versions/{version}",
            "registry.version",
            "One version of a server, or `latest`",
            json!([name, version]),
        ),
    ]
    .into_iter()
    .map(|(path, id, about, parameters)| {
        let responses = read_responses(about, "application/json", &object);
        let operation = json!({"operationId": id, "tags": ["registry"], "summary": about, "parameters": parameters,
            "responses": responses});
        (path.to_owned(), json!({"get": operation}))
    })
    .collect()
}

pub fn paths() -> Map<String, Value> {
    let list = |member: &str| {
        json!({"type": "object", "required": [member],
            "properties": {member: {"type": "array", "items": {"$ref": "#/components/schemas/Definition"}}}})
    };
    let views = json!([parameter("Profile"), parameter("ProfileHeader")]);
    let one = json!([{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}},
        parameter("Profile"), parameter("ProfileHeader")]);
    let definition = json!({"$ref": "#/components/schemas/Definition"});
    let state = json!({"type": "object", "required": ["status"], "properties": {
        "status": {"type": "string"},
        "version": {"type": "string", "description": "For callers."},
        "checks": {"type": "array", "items": {"type": "object"}, "description": "For callers: disk, audit and logins."},
        "sources": {"type": "array", "items": {"type": "object"}, "description": "For callers: toolboxes and servers."}
    }});
    let text = json!({"type": "string"});
    let entry = |id: &str, about: &str, parameters: &Value, media: &str, schema: &Value| {
        json!({"get": {"operationId": id, "tags": ["hub"], "summary": about, "parameters": parameters,
            "responses": read_responses(about, media, schema)}})
    };
    let none = json!([]);
    let json_type = "application/json";
    let mut all = registry_paths();
    let mut add = |path: &str, item: Value| all.insert(path.to_owned(), item);
    add("/tools", entry("hub.tools", "All tools", &views, json_type, &list("tools")));
    add("/tools/{name}", entry("hub.tool", "One tool", &one, json_type, &definition));
    add("/prompts", entry("hub.prompts", "All prompts", &views, json_type, &list("prompts")));
    add(
        "/openapi.json",
        entry("hub.openapi", "This document", &views, json_type, &json!({"type": "object"})),
    );
    add("/metrics", entry("hub.metrics", "Metrics for Prometheus", &none, "text/plain", &text));
    for (path, id, about) in [
        ("/health", "hub.health", "Whether the process is up"),
        (
            "/ready",
            "hub.ready",
            "Whether calls can be made; for callers also the state of all checks and sources",
        ),
    ] {
        let mut item = entry(id, about, &none, json_type, &state);
        if let Some(Value::Object(operation)) = item.get_mut("get") {
            operation.insert("security".to_owned(), json!([]));
            if path == "/ready" {
                let not_ready = json!({"description": "No call can be made.",
                    "content": {json_type: {"schema": state}}});
                operation
                    .get_mut("responses")
                    .and_then(Value::as_object_mut)
                    .map(|all| all.insert("503".to_owned(), not_ready));
            }
        }
        add(path, item);
    }
    all
}
