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
    /// False for a tool whose structured output is for programs only: over MCP, its replies are text.
    const SHOWS_STRUCTURE: bool = true;
    /// Other words for what it does, as people ask for it. The search for tools reads them.
    const KEYWORDS: &'static str = "";
    /// Requests that it fulfils, in words of people that are not in its description. The search by meaning compares with
    /// each of them.
    const REQUESTS: &'static [&'static str] = &[];
    /// True for a tool that returns a text which its caller asked for, such as a file. Its replies may be longer than others.
    const IS_READER: bool = false;
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

    /// The text for models. By default the structure is written as plain text.
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }

    fn run(
        &self,
        input: Self::Input,
        grants: Self::Grants,
        cx: &CallContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}
