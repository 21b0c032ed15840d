//! `gitlab_openapi_paths`.

use super::Instance;
use super::operation_index::OperationRow;
use octo_toolkit::{CallContext, Effect, Example, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

const MAX_LIMIT: u64 = 500;

/// Lists operations of GitLab's API with method, path and summary, best matches of a filter first; empty if none
/// match. Prefer gitlab_openapi_operation for the parameters of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Words to find in paths, summaries and names, such as "merge request approve" or /issues; default all operations.
    #[serde(default)]
    filter: Option<String>,
    /// Maximum number to return, 1 to 500.
    #[serde(default = "default_limit")]
    limit: u64,
    /// Number to skip.
    #[serde(default)]
    offset: u64,
}

fn default_limit() -> u64 {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The operations, best first with a filter.
    paths: Vec<OperationRow>,
    /// Total number of matches.
    total: usize,
    /// Pass as offset for the rest; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

pub struct Paths(pub Arc<Instance>);

impl Tool for Paths {
    const NAME: &'static str = "gitlab_openapi_paths";
    const TITLE: &'static str = "Find operations of GitLab's API";
    const KEYWORDS: &'static str = "endpoints list API routes";
    const REQUESTS: &'static [&'static str] = &[
        "which gitlab endpoint approves a merge request",
        "find the api path for gitlab pipelines",
        "what can gitlab's api do about labels",
        "how would i cancel a job through gitlab's rest interface",
        "search gitlab's endpoints for protected branches",
        "list the gitlab routes that deal with runners",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Net;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "How to approve a merge request",
            json!({"filter": "approve merge request", "limit": 5}),
        )]
    }

    async fn run(&self, input: Input, net: Net, cx: &CallContext) -> Result<Output, ToolError> {
        if !(1..=MAX_LIMIT).contains(&input.limit) {
            return Err(ToolError::invalid("limit must be 1 to 500.").hint("The default is 50."));
        }
        let document = self.0.document(&net, cx).await?;
        let found = document.index.list(input.filter.as_deref().unwrap_or_default());
        let total = found.len();
        let offset = usize::try_from(input.offset).unwrap_or(usize::MAX);
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
        let paths: Vec<OperationRow> = found.into_iter().skip(offset).take(limit).collect();
        let next = offset.saturating_add(paths.len());
        Ok(Output { paths, total, next_offset: (next < total).then_some(next) })
    }
}
