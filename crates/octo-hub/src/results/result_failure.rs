//! Results that are failures: the call ran, and its target reported an error or needs more input.

use octo_model::{Json, JsonObject};

const NO_MESSAGE: &str = "The tool failed without a message.";
const INPUT_REQUIRED_MESSAGE: &str = "The call needs more input, which cannot be provided here.";
const INPUT_REQUIRED_HINT: &str = "Call it over MCP, with a client that can answer questions.";

/// Failure that a target reported, for frontends that cannot pass the result on as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFailure {
    pub message: String,
    pub hint: Option<&'static str>,
}

impl ResultFailure {
    /// Returns `None` for a success.
    pub fn of(result: &JsonObject) -> Option<Self> {
        if result.text("resultType").as_deref() == Some("input_required") {
            return Some(Self {
                message: INPUT_REQUIRED_MESSAGE.to_owned(),
                hint: Some(INPUT_REQUIRED_HINT),
            });
        }
        result.is_true("isError").then(|| {
            let texts: Vec<String> = result.list("content").iter().filter_map(block_text).collect();
            let message = if texts.is_empty() { NO_MESSAGE.to_owned() } else { texts.join("\n") };
            Self { message, hint: None }
        })
    }
}

/// Text of a text block.
pub fn block_text(block: &Json) -> Option<String> {
    let members = block.members().ok()?;
    members.text("text").filter(|_| members.text("type").as_deref() == Some("text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures() {
        for (result, message) in [
            (r#"{"content":[{"type":"text","text":"fine"}]}"#, None),
            (
                r#"{"isError":true,"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#,
                Some("a\nb"),
            ),
            (r#"{"isError":true,"content":[]}"#, Some(NO_MESSAGE)),
            (r#"{"resultType":"input_required"}"#, Some(INPUT_REQUIRED_MESSAGE)),
        ] {
            let result = JsonObject::parse(result.to_owned()).unwrap();
            assert_eq!(ResultFailure::of(&result).map(|failure| failure.message).as_deref(), message);
        }
    }
}
