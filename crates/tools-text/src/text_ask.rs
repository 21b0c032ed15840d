//! `text_ask`.

use octo_toolkit::{CallContext, Effect, Example, Llm, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Upper limit of the timeout of one question.
const ASK_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks the operator's language model one question and returns its answer as text; fails if the model does not
/// respond. Prefer text_summarize to shorten a text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The question, with all necessary context.
    prompt: String,
    /// Instructions for the answer, such as a role or format.
    #[serde(default)]
    system: String,
    /// Maximum length of the answer in tokens.
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
    const KEYWORDS: &'static str = "LLM question language model reason prompt";
    const REQUESTS: &'static [&'static str] = &[
        "get a second opinion from another language model",
        "let the llm come up with a name for the product",
        "have a model translate this sentence",
        "ask an ai to rewrite the paragraph politely",
        "put a question to the operator's model",
        "let a language model classify this feedback as positive or negative",
    ];
    const EFFECT: Effect = Effect::reads_volatile().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Llm;

    fn examples() -> Vec<Example> {
        vec![Example::new("A name for a thing", json!({"prompt": "A name for a tool that counts words."}))]
    }

    async fn run(&self, input: Input, llm: Llm, cx: &CallContext) -> Result<Output, ToolError> {
        if input.prompt.trim().is_empty() {
            return Err(ToolError::invalid("The prompt is empty.").hint("Pass a question for the model."));
        }
        let timeout = ASK_TIMEOUT.min(cx.time_left());
        Ok(Output { text: llm.ask(&input.system, &input.prompt, input.max_tokens, timeout).await? })
    }
}
