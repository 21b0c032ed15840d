//! `openapi_list_endpoints`.

use crate::document_cache::DocumentCache;
use octo_openapi::OperationSummary;
use octo_toolkit::{Apis, CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

const MAX_LIMIT: usize = 500;

/// Lists or searches the operations of a loaded API, each with a one-line signature; with filter the best matches come
/// first. Empty if nothing matches. Prefer openapi_get_operation for the schemas of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name that the API was loaded under.
    name: String,
    /// What you want to do, in words ("open a pull request"), or a part of a path, method or operation id.
    #[serde(default)]
    filter: Option<String>,
    /// Only operations with this tag.
    #[serde(default)]
    tag: Option<String>,
    /// Maximum operations to return, up to 500.
    #[serde(default = "default_limit")]
    limit: usize,
    /// How many to skip from the start.
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The operations, in the document's order or best first.
    endpoints: Vec<Item>,
    /// Total number of matches.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct Item {
    /// Method, in upper case.
    method: String,
    /// Path template, for openapi_call.
    path: String,
    /// Operation id, or a name made of method and path.
    operation_id: String,
    /// What it does.
    summary: String,
    /// Its parameters, body and response on one line.
    signature: String,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// True if it should no longer be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
}

pub struct ListEndpoints(pub Arc<DocumentCache>);

impl Tool for ListEndpoints {
    const NAME: &'static str = "openapi_list_endpoints";
    const TITLE: &'static str = "Find operations of an API";
    const KEYWORDS: &'static str = "routes methods search operations swagger";
    const REQUESTS: &'static [&'static str] = &[
        "what operations does the loaded pets api offer",
        "find the endpoint of the registered api that cancels an order",
        "all routes of the billing service tagged invoices",
        "which method of the imported api creates a user",
        "browse the functions of a swagger service",
        "search an api's paths for refunds",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Apis;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "Which operation does it",
            json!({"name": "pets", "filter": "find a pet", "limit": 5}),
        )]
    }

    async fn run(&self, input: Input, apis: Apis, cx: &CallContext) -> Result<Output, ToolError> {
        let api = self.0.api(&input.name, &apis, cx).await?;
        let filter = input.filter.as_deref().map(str::trim).filter(|filter| !filter.is_empty());
        let all: Vec<&OperationSummary> = match filter {
            Some(question) => api.document.search(question),
            None => api.document.operations().iter().collect(),
        };
        let tagged = |listed: &&&OperationSummary| match &input.tag {
            Some(tag) => listed.tags.iter().any(|one| one.eq_ignore_ascii_case(tag.trim())),
            None => true,
        };
        let fit: Vec<&&OperationSummary> = all.iter().filter(tagged).collect();
        let shown = fit.iter().skip(input.offset).take(input.limit.min(MAX_LIMIT));
        Ok(Output { endpoints: shown.map(|listed| item(listed)).collect(), total: fit.len() })
    }
}

fn item(listed: &OperationSummary) -> Item {
    Item {
        method: listed.method.clone(),
        path: listed.path.clone(),
        operation_id: listed.id.clone(),
        summary: listed.summary.clone(),
        signature: listed.signature.clone(),
        tags: listed.tags.clone(),
        deprecated: listed.deprecated,
    }
}
