//! Examples: documentation, test and search text in one.

use octo_model::Json;

/// A call that works, and what it is for.
#[derive(Debug, Clone)]
pub struct Example {
    pub purpose: &'static str,
    pub input: Json,
    /// The answer, when it is always the same.
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
