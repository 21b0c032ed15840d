//! What a program can call, and who answers.

use crate::program_run::MAX_RESULT_BYTES;
use octo_model::Json;
use serde::{Deserialize, Serialize};
use std::future::Future;

/// A tool that a program can call: `tools.server.tool(…)`, or `call("name", …)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolBinding {
    /// Name that [`ToolCalls`] receives.
    pub name: String,
    /// Members of `tools` that lead to it, such as `["server", "tool"]`.
    pub path: Vec<String>,
}

/// Answers the calls of a program.
pub trait ToolCalls {
    /// Calls a tool. The name is that of a [`ToolBinding`], the arguments are an object. Dropping the future cancels the
    /// call.
    fn call(&self, name: &str, arguments: Json) -> impl Future<Output = Result<Json, CallError>> + Send;
}

/// Failure of a call; the program sees an `Error` with these members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    pub code: String,
    pub message: String,
    /// Details for the program, if there are any.
    pub data: Option<Json>,
}

impl CallError {
    /// Of a result that is longer than [`MAX_RESULT_BYTES`].
    pub fn result_too_large() -> Self {
        Self::too_large(format!("The result is longer than {MAX_RESULT_BYTES} bytes; ask the tool for less."))
    }

    pub(crate) fn too_large(message: String) -> Self {
        Self { code: "result_too_large".to_owned(), message, data: None }
    }
}
