//! A tool. Each is one file that implements this trait.

use crate::{CallContext, Example, Image};
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
    /// False for a tool that returns an image: it has no output schema, since several clients drop images
    /// beside structured content.
    const HAS_OUTPUT_SCHEMA: bool = true;
    /// True for a tool whose calls may take minutes: a client that supports tasks gets one early instead of
    /// waiting.
    const LONG_RUNNING: bool = false;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema + Send;
    /// The capabilities that it needs.
    type Grants: Grant;

    fn examples() -> Vec<Example>;

    /// The images of a reply.
    fn images(_output: &Self::Output) -> Vec<Image> {
        Vec::new()
    }

    fn run(
        &self,
        input: Self::Input,
        grants: Self::Grants,
        cx: &CallContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}
