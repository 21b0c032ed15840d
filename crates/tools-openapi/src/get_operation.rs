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

/// Values of all schemas together, and references within references.
const MAX_NODES: usize = 1_500;
const MAX_REF_DEPTH: usize = 4;
const MAX_TEXT_LEN: usize = 4_000;

/// Describes one operation of a loaded API: parameters and body with their schemas, references unfolded as far as that stays
/// small; schemas of answers when asked for. Fails with the nearest paths when there is no such operation. Prefer openapi_list_endpoints to find it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name that the API was loaded under.
    name: String,
    /// Path as the document writes it (/users/{id}) or with values (/users/7), or the operation_id.
    path: String,
    /// Method, such as GET.
    method: String,
    /// With the schemas of answers, too.
    #[serde(default)]
    include_responses: bool,
    /// A `$ref` of an earlier answer that is to be unfolded as well, such as #/components/schemas/User.
    #[serde(default)]
    pointer: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Path template.
    path: String,
    /// Method, in capital letters.
    method: String,
    /// What it does, in short.
    summary: String,
    /// What it does, at length.
    description: String,
    /// The document's name of it.
    operation_id: String,
    /// Values that go into path, query, headers and cookies.
    parameters: Vec<Parameter>,
    /// What it takes as a body; absent when it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    /// What it answers, by status; schemas are folded unless include_responses was given.
    responses: BTreeMap<String, Response>,
    /// What the given pointer leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    schema: Option<Value>,
    /// True when it should no longer be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    /// What was left folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Parameter {
    /// Its name.
    name: String,
    /// Where it goes: path, query, header or cookie.
    r#in: &'static str,
    /// Whether it must be given.
    required: bool,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// Schema of its value.
    schema: Value,
    /// A value that the document gives as an example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    example: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
struct RequestBody {
    /// Whether it must be given.
    required: bool,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// Its schema, by media type.
    content: BTreeMap<String, Value>,
    /// A body that the document gives as an example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    example: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
struct Response {
    /// What it means.
    description: String,
    /// Its schema, by media type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    content: BTreeMap<String, Value>,
}

pub struct GetOperation(pub Arc<DocumentCache>);

impl Tool for GetOperation {
    const NAME: &'static str = "openapi_get_operation";
    const TITLE: &'static str = "Describe an operation";
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
                    ToolError::not_found("The pointer leads nowhere.")
                        .hint("Give a `$ref` as it stands in an answer, such as #/components/schemas/User.")
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
    // Answers that went well come first, so that they are the ones that are unfolded.
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
            format!(
                "References left folded: {}. Give one as pointer to see what it leads to.",
                unfold.refs_left
            )
        }),
    }
}

fn content(media: &[MediaType], unfold: &mut RefInliner) -> BTreeMap<String, Value> {
    media.iter().map(|media| (media.content_type.clone(), unfold.inline(&media.schema))).collect()
}

/// Only what the schemas are called, or what kind of value they are.
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

/// Text of the document, without what a person would not see in it, and not without end.
fn short(text: String) -> String {
    let text = strip_hidden_owned(text, &mut 0);
    if text.len() <= MAX_TEXT_LEN {
        text
    } else {
        text.chars().take(MAX_TEXT_LEN).chain(" …".chars()).collect()
    }
}
