//! `gitlab_tool_help`.

use super::Instance;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Lists the GitLab tools, when and how to use each, and which instance they use. Prefer gitlab_openapi_paths for the
/// operations of the API itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The tools, in the order in which a task needs them.
    tools: Vec<ToolHelp>,
    /// Root of the API.
    api: String,
    /// Whether requests are sent with a token; without one only public data can be read.
    has_token: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct ToolHelp {
    /// Name of the tool.
    name: &'static str,
    /// When to use it.
    when: &'static str,
    /// Arguments of a valid call.
    example: Value,
}

pub struct Help(pub Arc<Instance>);

impl Tool for Help {
    const NAME: &'static str = "gitlab_tool_help";
    const TITLE: &'static str = "Explain the GitLab tools";
    const KEYWORDS: &'static str = "guide documentation usage";
    const REQUESTS: &'static [&'static str] = &[
        "how do i work with gitlab here",
        "which gitlab instance are we connected to",
        "is there a token for gitlab or only public access",
        "what gitlab functions are at hand and when to use which",
        "give me examples of calls for gitlab",
        "getting started with the gitlab integration",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("What there is", json!({}))]
    }

    async fn run(&self, _: Input, (): (), _: &CallContext) -> Result<Output, ToolError> {
        Ok(Output {
            tools: entries(),
            api: self.0.api()?.to_string(),
            has_token: self.0.settings.token.is_some(),
        })
    }
}

fn entries() -> Vec<ToolHelp> {
    vec![
        ToolHelp {
            name: "gitlab_openapi_paths",
            when: "You do not know the path: a filter finds operations by words, with method and summary.",
            example: json!({"filter": "merge request approve"}),
        },
        ToolHelp {
            name: "gitlab_openapi_operation",
            when: "You know the path but not its parameters or body: one operation, with references resolved.",
            example: json!({"path": "/projects/{id}/merge_requests", "method": "POST"}),
        },
        ToolHelp {
            name: "gitlab_request",
            when: "You know the request: it is sent, and the reply has the next page. Lists have pages of 20; \
                   use per_page=100 and continue with `next`.",
            example: json!({
                "method": "GET",
                "path": "projects/{id}/merge_requests/{iid}/diffs",
                "path_params": {"id": "group/sub/project", "iid": 7},
            }),
        },
        ToolHelp {
            name: "gitlab_openapi_spec",
            when: "You need the text of the OpenAPI document itself; it is long and paged.",
            example: json!({"offset": 0, "limit": 50_000}),
        },
    ]
}
