//! Calls of the workflow tools, with progress on standard error.

use crate::app::App;
use crate::app_error::AppError;
use crate::terminal::console;
use octo_hub::Request;
use octo_model::{Frontend, Json, JsonObject, Kind, Operation, ToolError};
use octo_toolkit::{AskError, BoxFuture, NoPeer, Peer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Timeout for the first listing of the servers.
const LISTING_TIMEOUT: Duration = Duration::from_secs(15);

pub struct WorkflowClient<'a> {
    assembly: &'a App,
    profile: &'a str,
    caller: Arc<octo_model::Caller>,
}

impl<'a> WorkflowClient<'a> {
    /// Waits for the servers' listings, since a workflow may call any of them.
    pub async fn new(assembly: &'a App, profile: &'a str) -> Self {
        assembly.hub.wait_until_listed(profile, LISTING_TIMEOUT).await;
        Self { assembly, profile, caller: Arc::new(octo_model::Caller::local()) }
    }

    /// Calls a tool and returns its structured result.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Value, ToolError> {
        let mut op = Operation::tool(name, Json::from(arguments));
        op.params.set("_meta", JsonObject::new().with("progressToken", "flow"));
        let cancel = CancellationToken::new();
        let request = Request {
            profile: self.profile.to_owned(),
            peer: Arc::new(ProgressPeer(NoPeer)),
            cancel: cancel.clone(),
            ..Request::new(op, Arc::clone(&self.caller), Frontend::Cli)
        };
        let mut call = std::pin::pin!(self.assembly.hub.call(request));
        let called = tokio::select! {
            called = &mut call => called,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                call.await
            }
        };
        let whole = self.assembly.hub.untruncated(&self.caller, called.outcome?).await?;
        whole.get("structuredContent").map_or(Ok(Value::Null), |json| json.to().map_err(ToolError::internal))
    }

    /// Runs a workflow to its end, with further calls if it takes longer than the timeout of one call.
    pub async fn run_to_end(&self, asked: Value) -> Result<Value, AppError> {
        let path = asked.get("path").cloned().unwrap_or_default();
        let mut asked = asked;
        loop {
            let answer = match self.call_tool("workflow_run", asked).await {
                Err(error) if error.kind == Kind::Cancelled => {
                    return Err(self.with_resume_hint(error, &path).await);
                }
                answer => answer?,
            };
            if answer.get("status") != Some(&json!("running")) {
                return Ok(answer);
            }
            asked = json!({"path": path, "run_id": answer.get("run_id")});
        }
    }

    /// Adds the run id to the hint, so that the user can resume the run.
    async fn with_resume_hint(&self, error: ToolError, path: &Value) -> AppError {
        let newest = match &self.assembly.workflows {
            Some(flows) => flows.runs().list(&self.caller, 20).await.unwrap_or_default(),
            None => Vec::new(),
        };
        match newest.iter().find(|run| Some(run.path.as_str()) == path.as_str()) {
            Some(run) => error.hint(format!("Resume it with: octoprox workflow resume {}", run.id)).into(),
            None => error.into(),
        }
    }

    /// Returns the workflow file of a run.
    pub async fn path_of(&self, run: &str) -> Result<String, ToolError> {
        match &self.assembly.workflows {
            Some(flows) => Ok(flows.runs().get(&self.caller, run).await?.path),
            None => Err(ToolError::internal("the run store is not open")),
        }
    }
}

/// Prints progress to standard error; answers no requests.
struct ProgressPeer(NoPeer);

impl Peer for ProgressPeer {
    fn capabilities(&self) -> &JsonObject {
        self.0.capabilities()
    }

    fn notify(&self, method: &str, params: JsonObject) {
        if let Some(message) = params.text("message").filter(|_| method == "notifications/progress") {
            console::print_err(&crate::terminal::text_table::sanitize_text(&message));
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        self.0.ask(method, params)
    }
}
