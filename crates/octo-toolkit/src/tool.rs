//! One tool, one file: this trait is what the file implements.

use crate::{Cx, Example};
use octo_grants::Grant;
use octo_model::{Effect, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The doc comment of `Input` is the description that models read.
pub trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    const EFFECT: Effect;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema + Send;
    /// All that it may touch.
    type Grants: Grant;

    fn examples() -> Vec<Example>;

    fn run(
        &self,
        input: Self::Input,
        grants: Self::Grants,
        cx: &Cx,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}
