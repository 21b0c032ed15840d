//! `gitlab_openapi_operation`.

use super::Instance;
use octo_toolkit::{CallContext, Effect, Example, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Explains one operation of GitLab's API: parameters, body, responses, with references resolved; for an unknown one,
/// returns similar ones. Prefer gitlab_openapi_paths if the path is not known.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Path as in the document, with or without /api/v4: /projects/{id}/issues; one with values, such as
    /// projects/42/issues, is found as well.
    path: String,
    /// GET, POST, PUT, PATCH or DELETE.
    method: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The path as in the document.
    path: String,
    /// The method, in upper case.
    method: String,
    /// The operation as in the document. References are resolved, to a limited depth.
    operation: Value,
}

pub struct ExplainOperation(pub Arc<Instance>);

impl Tool for ExplainOperation {
    const NAME: &'static str = "gitlab_openapi_operation";
    const TITLE: &'static str = "Explain an operation of GitLab's API";
    const KEYWORDS: &'static str = "endpoint parameters documentation";
    const REQUESTS: &'static [&'static str] = &[
        "which parameters does creating an issue on gitlab take",
        "what body does the gitlab call for a new merge request need",
        "what does gitlab's pipeline endpoint return",
        "explain POST /projects/{id}/issues of gitlab",
        "required fields for adding a project member through gitlab's api",
        "before sending, look up the arguments of a gitlab endpoint",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Net;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "What creating an issue takes",
            json!({"path": "/projects/{id}/issues", "method": "POST"}),
        )]
    }

    async fn run(&self, input: Input, net: Net, cx: &CallContext) -> Result<Output, ToolError> {
        let document = self.0.document(&net, cx).await?;
        let (path, method, operation) = document.index.operation(&input.path, &input.method)?;
        Ok(Output { path, method, operation })
    }
}
