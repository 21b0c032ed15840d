//! `openapi_get_operation`.

use crate::document_cache::DocumentCache;
use crate::operation_match::OperationMatch;
use octo_openapi::{ApiOperation, MediaType, RefInliner};
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::{Apis, CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum values of all schemas together, and depth of nested references.
const MAX_NODES: usize = 1_500;
const MAX_REF_DEPTH: usize = 4;
const MAX_TEXT_LEN: usize = 4_000;

/// Describes one operation of a loaded API: parameters and body with their schemas, references inlined within limits;
/// response schemas on request. Fails with similar paths if there is no such operation. Prefer openapi_list_endpoints
/// to find it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name that the API was loaded under.
    name: String,
    /// Path as written in the document (/users/{id}) or with values (/users/7), or the operation_id.
    path: String,
    /// Method, such as GET.
    method: String,
    /// Include the schemas of responses.
    #[serde(default)]
    include_responses: bool,
    /// A `$ref` of an earlier reply to inline as well, such as #/components/schemas/User.
    #[serde(default)]
    pointer: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Path template.
    path: String,
    /// Method, in upper case.
    method: String,
    /// Short summary.
    summary: String,
    /// Long description.
    description: String,
    /// Operation id.
    operation_id: String,
    /// Path, query, header and cookie parameters.
    parameters: Vec<Parameter>,
    /// Request body; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    /// Responses, by status; schemas are not inlined without include_responses.
    responses: BTreeMap<String, Response>,
    /// Target of the given pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    schema: Option<Value>,
    /// True if it should no longer be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    /// What was not inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Parameter {
    /// Its name.
    name: String,
    /// Location: path, query, header or cookie.
    r#in: &'static str,
    /// Whether it is required.
    required: bool,
    /// Description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// Schema of its value.
    schema: Value,
    /// Example from the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    example: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
struct RequestBody {
    /// Whether it is required.
    required: bool,
    /// Description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// Its schema, by media type.
    content: BTreeMap<String, Value>,
    /// Example from the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    example: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
struct Response {
    /// Description.
    description: String,
    /// Its schema, by media type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    content: BTreeMap<String, Value>,
}

pub struct GetOperation(pub Arc<DocumentCache>);

impl Tool for GetOperation {
    const NAME: &'static str = "openapi_get_operation";
    const TITLE: &'static str = "Describe an operation";
    const KEYWORDS: &'static str = "endpoint details parameters body documentation swagger";
    const REQUESTS: &'static [&'static str] = &[
        "which parameters does the endpoint of the loaded api take",
        "show the request body schema of createOrder",
        "what does GET /users/{id} of the registered api return",
        "details of an operation before invoking it",
        "which fields are mandatory in the imported api's method",
        "resolve the User schema of the api description",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Apis;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "Its parameters and schemas",
            json!({"name": "pets", "path": "/pets/{id}", "method": "GET"}),
        )]
    }

    async fn run(&self, input: Input, apis: Apis, cx: &CallContext) -> Result<Output, ToolError> {
        let api = self.0.api(&input.name, &apis, cx).await?;
        let wanted = OperationMatch::find(&api.document, &input.path, &input.method)?;
        let mut unfold = RefInliner::new(&api.document, MAX_NODES, MAX_REF_DEPTH);
        let schema = match &input.pointer {
            Some(pointer) => {
                let target = api.document.lookup_ref(pointer.trim()).ok_or_else(|| {
                    ToolError::not_found("The pointer does not resolve.")
                        .hint("Use a `$ref` of a reply, such as #/components/schemas/User.")
                })?;
                Some(unfold.inline(&target))
            }
            None => None,
        };
        Ok(describe(wanted.operation, schema, unfold, input.include_responses))
    }
}

fn describe(
    operation: ApiOperation,
    schema: Option<Value>,
    mut unfold: RefInliner,
    with_responses: bool,
) -> Output {
    let parameters = operation.params.into_iter().map(|param| Parameter {
        r#in: param.location.as_str(),
        schema: unfold.inline(&param.schema),
        name: param.name,
        required: param.required,
        description: short(param.description),
        example: param.example,
    });
    let parameters = parameters.collect();
    let request_body = operation.body.map(|body| RequestBody {
        required: body.required,
        description: short(body.description),
        content: content(&body.media, &mut unfold),
        example: body.media.iter().find_map(|media| media.example.clone()),
    });
    // Successful responses first, so that they are the ones that are inlined.
    let mut answers = operation.responses;
    answers.sort_by_key(|answer| !answer.status.starts_with('2'));
    let responses = answers.into_iter().map(|answer| {
        let content = match with_responses {
            true => content(&answer.media, &mut unfold),
            false => schema_names(&answer.media),
        };
        (answer.status, Response { description: short(answer.description), content })
    });
    let responses = responses.collect();
    Output {
        path: operation.path,
        method: operation.method,
        summary: short(operation.summary),
        description: short(operation.description),
        operation_id: operation.id,
        parameters,
        request_body,
        responses,
        schema,
        deprecated: operation.deprecated,
        notice: (unfold.refs_left > 0).then(|| {
            format!("References not inlined: {}. Pass one as pointer to inline it.", unfold.refs_left)
        }),
    }
}

fn content(media: &[MediaType], unfold: &mut RefInliner) -> BTreeMap<String, Value> {
    media.iter().map(|media| (media.content_type.clone(), unfold.inline(&media.schema))).collect()
}

/// Only the names or types of the schemas.
fn schema_names(media: &[MediaType]) -> BTreeMap<String, Value> {
    let name = |schema: &Value| match (schema.get("$ref"), schema.get("type")) {
        (Some(reference), _) => json!({ "$ref": reference }),
        (None, Some(kind)) => json!({ "type": kind }),
        (None, None) => json!({}),
    };
    let outer = |schema: &Value| match schema.get("items") {
        Some(items) if schema.get("$ref").is_none() => json!({"type": "array", "items": name(items)}),
        _ => name(schema),
    };
    media.iter().map(|media| (media.content_type.clone(), outer(&media.schema))).collect()
}

/// Text of the document, without hidden characters and limited in length.
fn short(text: String) -> String {
    let text = strip_hidden_owned(text, &mut 0);
    if text.len() <= MAX_TEXT_LEN {
        text
    } else {
        text.chars().take(MAX_TEXT_LEN).chain(" …".chars()).collect()
    }
}
