//! Execution of jq expressions and scheduling between callers. Expressions may loop forever, so they run where they
//! can be killed.

mod jq_queue;

use crate::{Capabilities, Grant};
use jq_queue::{JqQueue, QueueSlot};
use octo_model::{Caller, Json, Kind, ToolError};
use std::pin::Pin;
use std::sync::Arc;

/// Maximum input size. Parsed values need many times as much memory.
pub const MAX_INPUT_BYTES: usize = 16 << 20;
/// Maximum output size; a larger output is an error.
pub const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// Maximum number of top-level keys listed in a message.
const MAX_NAMED_KEYS: usize = 20;
const MAX_KEY_CHARS: usize = 30;
/// Maximum characters shown of a value that is not JSON.
const MAX_SHOWN_CHARS: usize = 80;

/// Runs a jq expression in a place where it can be killed at any time. Returns one value per line.
pub trait Jq: Send + Sync {
    fn run<'a>(
        &'a self,
        program: &'a str,
        input: Json,
    ) -> Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send + 'a>>;
}

/// Runs expressions of all callers with limited concurrency, each caller in turn. Clones share the queue.
#[derive(Clone)]
pub struct JqRunner {
    jq: Arc<dyn Jq>,
    queue: Arc<JqQueue>,
}

impl JqRunner {
    pub fn new(jq: Arc<dyn Jq>) -> Self {
        Self { jq, queue: Arc::default() }
    }

    /// Waits until an expression of this caller may run.
    pub async fn acquire(&self, caller: &Caller) -> Result<JqSlot, ToolError> {
        Ok(JqSlot { jq: Arc::clone(&self.jq), _turn: self.queue.acquire(caller).await? })
    }

    /// Returns what an expression selects.
    pub async fn select(&self, caller: &Caller, program: &str, input: Json) -> Result<Selection, ToolError> {
        if input.bytes().len() > MAX_INPUT_BYTES {
            return Err(too_large("The JSON", input.bytes().len()).hint("Request less data."));
        }
        let turn = self.acquire(caller).await?;
        let text = turn.run(program, input.clone()).await?;
        let selection = tokio::task::spawn_blocking(move || Selection::of(&text, &input)).await;
        selection.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

impl Grant for JqRunner {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

/// Execution slot of one caller, held until it is dropped.
pub struct JqSlot {
    jq: Arc<dyn Jq>,
    _turn: QueueSlot,
}

impl JqSlot {
    /// Runs an expression; returns one value per line.
    pub async fn run(&self, program: &str, input: Json) -> Result<String, ToolError> {
        self.jq.run(program, input).await
    }
}

/// Result of an expression.
#[derive(Debug)]
pub struct Selection {
    /// The value, or a list unless there is exactly one.
    pub json: Json,
    /// Explains an empty selection.
    pub notice: Option<String>,
}

impl Selection {
    fn of(text: &str, input: &Json) -> Result<Self, ToolError> {
        if text.len() > MAX_OUTPUT_BYTES {
            let error = format!("The output of the jq expression exceeds {MAX_OUTPUT_BYTES} bytes.");
            return Err(ToolError::new(Kind::TooLarge, error).hint("Select less, such as `.items[:100]`."));
        }
        let values: Result<Vec<Json>, ToolError> = text.lines().map(value).collect();
        let json = match values?.as_slice() {
            [one] => one.clone(),
            several => Json::array(several),
        };
        let is_nothing = json.is_null() || json.as_str() == "[]";
        let notice = is_nothing.then(|| {
            let members = input.members().unwrap_or_default();
            let keys = top_level_keys(members.iter().map(|(name, _)| name), members.len());
            format!(
                "The jq expression selected nothing.{}",
                keys.map(|keys| format!(" {keys}.")).unwrap_or_default()
            )
        });
        Ok(Self { json, notice })
    }
}

fn value(line: &str) -> Result<Json, ToolError> {
    Json::parse(line.to_owned()).map_err(|_| {
        let shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
        ToolError::invalid(format!("The jq expression returned a value that is not JSON: {shown}."))
            .hint("Numbers must be finite and keys must be text; use `tostring` to convert a value to text.")
    })
}

/// Lists the keys of an input for a message: most expressions fail because a key is somewhere else.
pub fn top_level_keys(keys: impl Iterator<Item = impl AsRef<str>>, total: usize) -> Option<String> {
    let name = |key: &str| format!("`{}`", key.chars().take(MAX_KEY_CHARS).collect::<String>());
    let mut names: Vec<String> = keys.take(MAX_NAMED_KEYS).map(|key| name(key.as_ref())).collect();
    if total > MAX_NAMED_KEYS {
        names.push("…".to_owned());
    }
    (!names.is_empty()).then(|| format!("The top-level keys are {}", names.join(", ")))
}

/// Error for an input that is too large for an expression.
pub fn too_large(what: &str, size: impl std::fmt::Display) -> ToolError {
    let error = format!("{what} has {size} bytes; the limit for jq is {MAX_INPUT_BYTES}.");
    ToolError::new(Kind::TooLarge, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_stays_one_and_others_are_a_list() {
        let input = Json::parse(r#"{"a": 1, "b": 2}"#).unwrap();
        let none = "The jq expression selected nothing. The top-level keys are `a`, `b`.";
        for (text, json, notice) in [
            ("12345678901234567890.10\n", "12345678901234567890.10", None),
            ("[1,2]\n", "[1,2]", None),
            ("1\n\"\\n\"\n", r#"[1,"\n"]"#, None),
            ("false\n", "false", None),
            ("null\n", "null", Some(none)),
            ("", "[]", Some(none)),
        ] {
            let selection = Selection::of(text, &input).unwrap();
            assert_eq!((selection.json.as_str(), selection.notice.as_deref()), (json, notice), "{text:?}");
        }
        let list = Json::parse("[1]").unwrap();
        assert_eq!(
            Selection::of("null\n", &list).unwrap().notice.as_deref(),
            Some("The jq expression selected nothing.")
        );
        for text in ["NaN\n", "{1:2}\n", "1\nb\"x\"\n"] {
            assert_eq!(Selection::of(text, &input).unwrap_err().kind, Kind::Invalid, "{text:?}");
        }
        let much = format!("\"{}\"\n", "x".repeat(MAX_OUTPUT_BYTES));
        assert_eq!(Selection::of(&much, &input).unwrap_err().kind, Kind::TooLarge);
    }

    #[test]
    fn few_keys_are_named_and_short() {
        let keys: Vec<String> = (0..30).map(|n| format!("{n}{}", "k".repeat(100))).collect();
        let text = top_level_keys(keys.iter(), keys.len()).unwrap();
        assert!(text.ends_with(", …") && text.len() < 800, "{text}");
        assert_eq!(top_level_keys([""; 0].iter(), 0), None);
    }
}
