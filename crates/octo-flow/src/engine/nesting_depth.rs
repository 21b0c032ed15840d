//! Nesting depth of workflows that call workflows.

use octo_model::ToolError;

const MAX_NESTING: u8 = 4;

#[derive(Debug, Clone, Copy)]
pub struct NestingDepth(u8);

tokio::task_local! {
    /// A step's call runs in one task from the engine to the tool, so the tool sees the engine's value.
    static CURRENT_DEPTH: NestingDepth;
}

impl NestingDepth {
    /// The depth of a run that is started by the current call.
    pub fn current() -> Result<Self, ToolError> {
        let depth = CURRENT_DEPTH.try_with(|depth| depth.0).unwrap_or(0);
        if depth < MAX_NESTING {
            return Ok(Self(depth));
        }
        Err(ToolError::invalid(format!("Workflows are nested more than {MAX_NESTING} deep."))
            .hint("Put the steps into one workflow."))
    }

    /// Runs a call one level deeper.
    pub async fn run_nested<F: Future>(self, call: F) -> F::Output {
        CURRENT_DEPTH.scope(Self(self.0 + 1), call).await
    }
}
