//! Maps an operation to a tool: its parameters as arguments, and its body as `body`.

use crate::compat_schema::CompatSchemaBuilder;
use crate::document::request::ROUTING_HEADERS;
use crate::document::request::request_body::MULTIPART_FORM;
use crate::operation::{ApiOperation, Body, Param, ParamLocation, essence, is_json};
use crate::{Document, RequestValues, markup, signature};
use octo_toolkit::ToolError;
use serde_json::{Map, Value, json};

const BODY_ARGUMENT: &str = "body";
const MAX_NAME_LEN: usize = 64;
const MAX_TITLE_LEN: usize = 80;
const MAX_DESCRIPTION_LEN: usize = 500;
const MAX_PARAM_DESCRIPTION_LEN: usize = 240;

/// An operation as listed in the tools.
#[derive(Debug, Clone)]
pub struct OperationTool {
    pub title: String,
    pub description: String,
    /// An object at the root, without combinators there and without references anywhere.
    pub input_schema: Value,
}

impl Document {
    /// The operation as a tool. Its schema has at most `nodes` subschemas.
    pub fn to_tool(&self, operation: &ApiOperation, nodes: usize) -> OperationTool {
        let mut schemas = CompatSchemaBuilder::new(self, nodes);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (name, param) in argument_names(operation) {
            let mut schema = schemas.parameter(&param.schema);
            let about = markup::to_plain_text(&param.description, MAX_PARAM_DESCRIPTION_LEN);
            if let (Value::Object(members), false) = (&mut schema, about.is_empty()) {
                members.insert("description".to_owned(), about.into());
            }
            if param.required {
                required.push(json!(name));
            }
            properties.insert(name, schema);
        }
        if let Some(body) = &operation.body {
            properties.insert(BODY_ARGUMENT.to_owned(), body_schema(&mut schemas, body));
            if body.required {
                required.push(json!(BODY_ARGUMENT));
            }
        }
        let mut input = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let (Value::Object(members), false) = (&mut input, required.is_empty()) {
            members.insert("required".to_owned(), required.into());
        }
        OperationTool { title: title(operation), description: description(operation), input_schema: input }
    }
}

impl ApiOperation {
    /// Removes parameters that the caller cannot set, and adds path parameters that are not declared.
    pub fn retain_caller_params(&mut self, is_taken: impl Fn(&Param) -> bool) {
        let steers = |param: &Param| {
            param.location == ParamLocation::Header
                && ROUTING_HEADERS.contains(&param.name.trim().to_ascii_lowercase().as_str())
        };
        let path = self.path.clone();
        self.params.retain(|param| match param.location {
            // A path parameter that is not in the path cannot be sent.
            ParamLocation::Path => path.contains(&format!("{{{}}}", param.name)),
            _ => !steers(param) && !is_taken(param),
        });
        for open in path.split('{').skip(1) {
            let name = open.split('}').next().unwrap_or_default();
            let is_known = |param: &Param| param.location == ParamLocation::Path && param.name == name;
            if !self.params.iter().any(is_known) {
                self.params.push(Param::undeclared_path_param(name));
            }
        }
    }

    /// Assigns the arguments of a tool to the locations of their parameters.
    pub fn to_request_values(&self, mut arguments: Map<String, Value>) -> Result<RequestValues, ToolError> {
        let mut given = RequestValues::default();
        for (name, param) in argument_names(self) {
            let Some(value) = arguments.remove(&name) else { continue };
            let place = match param.location {
                ParamLocation::Path => &mut given.path,
                ParamLocation::Query => &mut given.query,
                ParamLocation::Header => &mut given.headers,
                ParamLocation::Cookie => &mut given.cookies,
            };
            place.insert(param.name.clone(), value);
        }
        if self.body.is_some() {
            given.body = arguments.remove(BODY_ARGUMENT);
        }
        match arguments.keys().next() {
            None => Ok(given),
            Some(odd) => Err(ToolError::invalid(format!("Unknown parameter `{odd}`."))
                .hint("Compare the arguments with the tool's schema.")),
        }
    }
}

/// Every parameter under a unique name that all clients accept. Deterministic.
fn argument_names(operation: &ApiOperation) -> Vec<(String, &Param)> {
    let mut taken: Vec<String> = operation.body.iter().map(|_| BODY_ARGUMENT.to_owned()).collect();
    let mut all = Vec::new();
    for param in &operation.params {
        let plain = sanitize_name(&param.name);
        let place = format!("{plain}_{}", param.location.as_str());
        let mut names = [plain, place.clone()].into_iter().chain((2..).map(|n| format!("{place}_{n}")));
        let Some(name) = names.find(|name| !taken.contains(name)) else { continue };
        taken.push(name.clone());
        all.push((name, param));
    }
    all
}

fn sanitize_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let plain: String = name.chars().map(fits).take(MAX_NAME_LEN - 12).collect();
    match plain.trim_matches('_') {
        "" => "value".to_owned(),
        _ if plain == name => plain,
        trimmed => trimmed.to_owned(),
    }
}

fn body_schema(schemas: &mut CompatSchemaBuilder, body: &Body) -> Value {
    let media = signature::preferred_media_type(&body.media);
    let kind = media.map(|media| essence(&media.content_type)).unwrap_or_default();
    let about = markup::to_plain_text(&body.description, MAX_PARAM_DESCRIPTION_LEN);
    let is_form = kind == MULTIPART_FORM || kind.ends_with("form-urlencoded");
    let mut schema = match media {
        Some(media) if is_json(&kind) || is_form => schemas.body(&media.schema, kind == MULTIPART_FORM),
        Some(_) if kind.contains('*') => json!({}),
        Some(_) => json!({"anyOf": [{"type": "string"}, {"type": "object"}],
            "description": format!("{kind}: text, or bytes as {{\"base64\": …}}.")}),
        None => json!({}),
    };
    if let (Value::Object(members), false) = (&mut schema, about.is_empty()) {
        members.insert("description".to_owned(), about.into());
    }
    schema
}

fn title(operation: &ApiOperation) -> String {
    match markup::to_plain_text(&operation.summary, MAX_TITLE_LEN) {
        summary if summary.is_empty() => format!("{} {}", operation.method, operation.path),
        summary => summary,
    }
}

fn description(operation: &ApiOperation) -> String {
    let summary = markup::to_plain_text(&operation.summary, MAX_DESCRIPTION_LEN);
    let more = markup::to_plain_text(&operation.description, MAX_DESCRIPTION_LEN);
    let text = match (summary.as_str(), more.as_str()) {
        ("", "") => format!("{} {}", operation.method, operation.path),
        ("", more) => more.to_owned(),
        (summary, "") => summary.to_owned(),
        (summary, more) if more.starts_with(summary) => more.to_owned(),
        (summary, more) => format!("{}. {more}", summary.trim_end_matches('.')),
    };
    let text = markup::to_plain_text(&text, MAX_DESCRIPTION_LEN);
    if operation.deprecated { format!("Deprecated. {text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(said: Value) -> (Document, ApiOperation) {
        let text = json!({"openapi": "3.0.0", "info": {}, "paths": {"/pets/{id}/{part}": {"post": said}}});
        let document = Document::parse(text.to_string()).unwrap();
        let operation = document.operation("/pets/{id}/{part}", "post").unwrap();
        (document, operation)
    }

    fn clashing() -> (Document, ApiOperation) {
        let (document, mut operation) = operation(json!({
            "summary": "Changes a pet.", "description": "Changes a pet. All of it.", "deprecated": true,
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
                {"name": "gone", "in": "path", "required": true, "schema": {"type": "integer"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}},
                {"name": "filter[a b]", "in": "query", "required": true, "description": "What to keep."},
                {"name": "body", "in": "query", "schema": {"type": "string"}},
                {"name": "X-Key", "in": "header", "required": true, "schema": {"type": "string"}},
                {"name": "Host", "in": "header", "schema": {"type": "string"}},
                {"name": "c", "in": "cookie", "schema": {"type": "string"}}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object"}}}},
        }));
        operation.retain_caller_params(|param| param.name == "X-Key");
        (document, operation)
    }

    #[test]
    fn parameters_stand_side_by_side_under_names_of_their_own() {
        let (document, operation) = clashing();
        let shape = document.to_tool(&operation, 100);
        assert_eq!(shape.description, "Deprecated. Changes a pet. All of it.");
        assert_eq!(
            shape.input_schema,
            json!({"type": "object", "additionalProperties": false, "required": ["id", "filter_a_b", "part", "body"], "properties": {
                "id": {"type": "integer"}, "id_query": {"type": "string"},
                "filter_a_b": {"description": "What to keep."}, "body_query": {"type": "string"},
                "c": {"type": "string"}, "part": {"type": "string"}, "body": {"type": "object"}}})
        );
    }

    #[test]
    fn arguments_go_to_their_places_and_nowhere_else() {
        let (document, operation) = clashing();
        let arguments = json!({"id": 7, "id_query": "q", "filter_a_b": 1, "body_query": "b", "c": "k",
            "part": "x/y", "body": {"host": "evil.example"}});
        let given = operation.to_request_values(arguments.as_object().unwrap().clone()).unwrap();
        let base = "https://api.example/v1".parse().unwrap();
        let request = document.request(&operation, &base, &given, "b").unwrap();
        assert_eq!(
            request.url.as_str(),
            "https://api.example/v1/pets/7/x%2Fy?id=q&filter%5Ba%20b%5D=1&body=b"
        );
        assert_eq!(request.headers["cookie"], "c=k");
        assert!(operation.to_request_values(json!({"Host": "x"}).as_object().unwrap().clone()).is_err());
        let away = json!({"id": 7, "filter_a_b": 1, "part": "..", "body": {}});
        let given = operation.to_request_values(away.as_object().unwrap().clone()).unwrap();
        assert!(document.request(&operation, &base, &given, "b").is_err());
    }

    #[test]
    fn bodies_of_every_kind_have_a_schema() {
        for (kind, schema, made) in [
            ("text/csv", json!({"type": "string"}), json!([{"type": "string"}, {"type": "object"}])),
            ("*/*", json!({"type": "string"}), json!(null)),
        ] {
            let content = json!({kind: {"schema": schema}});
            let (document, operation) = operation(json!({"requestBody": {"content": content}}));
            let shape = document.to_tool(&operation, 100);
            assert_eq!(shape.input_schema["properties"]["body"]["anyOf"], made, "{kind}");
            assert_eq!(shape.description, "POST /pets/{id}/{part}");
        }
    }
}
