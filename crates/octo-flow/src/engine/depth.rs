//! How deeply workflows call workflows.

use octo_model::ToolError;

const DEEPEST: u8 = 4;

#[derive(Debug, Clone, Copy)]
pub struct Depth(u8);

tokio::task_local! {
    /// A step's call runs in one task from the engine to the tool, so the tool sees what the engine has set.
    static HERE: Depth;
}

impl Depth {
    /// The depth of a run that is begun by the present call.
    pub fn here() -> Result<Self, ToolError> {
        let depth = HERE.try_with(|depth| depth.0).unwrap_or(0);
        if depth < DEEPEST {
            return Ok(Self(depth));
        }
        Err(ToolError::invalid(format!("Workflows call each other more than {DEEPEST} deep."))
            .hint("Put the steps into one workflow."))
    }

    /// Calls one deeper.
    pub async fn within<F: Future>(self, call: F) -> F::Output {
        HERE.scope(Self(self.0 + 1), call).await
    }
}
