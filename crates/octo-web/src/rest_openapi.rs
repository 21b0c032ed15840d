//! OpenAPI 3.1 document of the REST frontend, built from the listing of the caller's profile.

pub(crate) mod embed_schema;
pub(crate) mod static_parts;

use embed_schema::{component_key, embed_schema};
use octo_model::{Json, JsonObject};
use serde_json::{Map, Value, json};

/// Document for a list of tools and prompts. `secured` if the edge requires tokens.
pub fn openapi_document(tools: &[Json], prompts: &[Json], secured: bool) -> Value {
    let mut schemas = static_parts::schemas();
    let mut paths = static_parts::paths();
    for tool in tools.iter().filter_map(|json| json.members().ok()) {
        add_tool(&tool, &mut schemas, &mut paths);
    }
    for prompt in prompts.iter().filter_map(|json| json.members().ok()) {
        add_prompt(&prompt, &mut schemas, &mut paths);
    }
    let mut components = json!({
        "schemas": schemas,
        "responses": static_parts::responses(),
        "parameters": static_parts::parameters(),
        "headers": static_parts::headers(),
    });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": static_parts::info(),
        "servers": [{"url": "/"}],
        "paths": paths,
    });
    if secured {
        put(&mut components, "securitySchemes", json!({"token": {"type": "http", "scheme": "bearer"}}));
    }
    put(&mut document, "security", static_parts::security(secured));
    put(&mut document, "components", components);
    document
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(key.to_owned(), value);
    }
}

fn add_tool(tool: &JsonObject, schemas: &mut Map<String, Value>, paths: &mut Map<String, Value>) {
    let Some(name) = tool.text("name") else { return };
    let id = component_key(&name);
    let (input, output) = (format!("{id}.input"), format!("{id}.output"));
    embed_schema(tool.get("inputSchema"), &input, schemas);
    let result = match tool.get("outputSchema") {
        Some(schema) => {
            embed_schema(Some(schema), &output, schemas);
            reference(&output)
        }
        None => reference("Content"),
    };
    let about = OperationSpec {
        id: &id,
        tag: "tools",
        title: tool.text("title").unwrap_or_else(|| name.clone()),
        description: tool.text("description"),
        input: reference(&input),
        body_required: needs_input(schemas.get(&input)),
        result,
    };
    let item =
        json!({"get": static_parts::definition(&format!("{id}.definition")), "post": about.operation()});
    paths.insert(format!("/tools/{}", path_segment(&name)), item);
}

fn add_prompt(prompt: &JsonObject, schemas: &mut Map<String, Value>, paths: &mut Map<String, Value>) {
    let Some(name) = prompt.text("name") else { return };
    let id = format!("prompt.{}", component_key(&name));
    let input = format!("{id}.input");
    schemas.insert(input.clone(), prompt_input(&prompt.list("arguments")));
    let about = OperationSpec {
        id: &id,
        tag: "prompts",
        title: prompt.text("title").unwrap_or_else(|| name.clone()),
        description: prompt.text("description"),
        input: reference(&input),
        body_required: needs_input(schemas.get(&input)),
        result: reference("Prompt"),
    };
    paths.insert(format!("/prompts/{}", path_segment(&name)), json!({"post": about.operation()}));
}

/// One operation of the document.
struct OperationSpec<'a> {
    id: &'a str,
    tag: &'a str,
    title: String,
    description: Option<String>,
    input: Value,
    body_required: bool,
    result: Value,
}

impl OperationSpec<'_> {
    fn operation(self) -> Value {
        let mut operation = json!({"operationId": self.id, "tags": [self.tag], "summary": self.title});
        if let Some(description) = self.description {
            put(&mut operation, "description", description.into());
        }
        put(&mut operation, "parameters", static_parts::call_parameters());
        let content = json!({"application/json": {"schema": self.input}});
        put(&mut operation, "requestBody", json!({"required": self.body_required, "content": content}));
        put(&mut operation, "responses", static_parts::call_responses(&self.result));
        operation
    }
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// The body is optional if nothing in it is required.
fn needs_input(schema: Option<&Value>) -> bool {
    schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array)
        .is_some_and(|names| !names.is_empty())
}

/// Arguments of a prompt are strings.
fn prompt_input(arguments: &[Json]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments.iter().filter_map(|json| json.members().ok()) {
        let Some(name) = argument.text("name") else {
            continue;
        };
        let mut schema = json!({"type": "string"});
        if let Some(description) = argument.text("description") {
            put(&mut schema, "description", description.into());
        }
        if argument.is_true("required") {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name, schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Name as one path segment, including names with a colon or slash.
fn path_segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte))
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(path_segment("time_now"), "time_now");
        assert_eq!(path_segment("a/b {x}é"), "a%2Fb%20%7Bx%7D%C3%A9");
    }
}
