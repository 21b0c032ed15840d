//! Examples: documentation, tests and search text in one.

use octo_model::Json;

/// A working call and its purpose.
#[derive(Debug, Clone)]
pub struct Example {
    pub purpose: &'static str,
    pub input: Json,
    /// The output, if it is always the same.
    pub output: Option<Json>,
}

impl Example {
    pub fn new(what: &'static str, input: serde_json::Value) -> Self {
        Self { purpose: what, input: input.into(), output: None }
    }

    #[must_use]
    pub fn with_output(mut self, output: serde_json::Value) -> Self {
        self.output = Some(output.into());
        self
    }
}
