//! `text_ask`.

use octo_toolkit::{CallContext, Effect, Example, Llm, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// One question takes no longer than this, whatever the call would allow.
const ASK_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks the operator's language model one question and gives its answer as text; fails when the model does not answer. Prefer
/// text_summarize for a text that is to become shorter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What the model is asked, with all that it needs to know.
    prompt: String,
    /// What holds for its answer, such as its role or its form.
    #[serde(default)]
    system: String,
    /// How long the answer may be, in tokens.
    #[serde(default = "default_max_tokens")]
    max_tokens: u64,
}

fn default_max_tokens() -> u64 {
    1_024
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The model's answer.
    text: String,
}

pub struct Ask;

impl Tool for Ask {
    const NAME: &'static str = "text_ask";
    const TITLE: &'static str = "Ask a language model";
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Llm;

    fn examples() -> Vec<Example> {
        vec![Example::new("A name for a thing", json!({"prompt": "A name for a tool that counts words."}))]
    }

    async fn run(&self, input: Input, llm: Llm, cx: &CallContext) -> Result<Output, ToolError> {
        if input.prompt.trim().is_empty() {
            return Err(ToolError::invalid("The prompt is empty.").hint("Say what the model is asked."));
        }
        let timeout = ASK_TIMEOUT.min(cx.time_left());
        Ok(Output { text: llm.ask(&input.system, &input.prompt, input.max_tokens, timeout).await? })
    }
}
