//! Test fixture for a tool.

use crate::{BoxFuture, CallContext, ErasedTool, Toolbox};
use octo_grants::jq::Jq;
use octo_grants::{Capabilities, Clock};
use octo_model::{Caller, Json, ToolError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A stub for jq: an expression is a JSON pointer.
pub struct PointerJq;

impl Jq for PointerJq {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let input: serde_json::Value = input.to().map_err(ToolError::internal)?;
            let found = input.pointer(program).map(|found| format!("{found}\n"));
            found.ok_or_else(|| ToolError::invalid("jq: the expression failed."))
        })
    }
}

/// A toolbox with its capabilities, to call tools by name.
pub struct ToolFixture {
    toolbox: Toolbox,
    doors: Capabilities,
}

impl ToolFixture {
    pub fn new(toolbox: Toolbox, doors: Capabilities) -> Self {
        Self { toolbox, doors }
    }

    /// A fixture with a fixed clock.
    pub fn with_fixed_clock(toolbox: Toolbox, now: &str) -> Self {
        let now = now.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        Self::new(toolbox, Capabilities::default().with(Clock::fixed(now)))
    }

    pub fn tools(&self) -> &[ErasedTool] {
        &self.toolbox.tools
    }

    pub async fn call(&self, name: &str, input: serde_json::Value) -> Result<serde_json::Value, ToolError> {
        let tool = self.toolbox.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| ToolError::not_found(format!("no tool {name}")))?;
        let deadline = Instant::now() + Duration::from_secs(10);
        let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
        let answer = tool.run(Json::from(input), &self.doors, &cx).await?;
        answer.to().map_err(ToolError::internal)
    }
}
