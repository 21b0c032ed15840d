//! `result_read`: the rest of a reply that was cut.

use crate::jq::Jq;
use crate::ports::Spills;
use octo_grants::{Doors, Grant};
use octo_model::{Effect, Json, ToolError};
use octo_toolkit::{Cx, Example, Tool};
use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A page is at most this long, so that reading a cut reply is never cut itself.
const MAX_PAGE: usize = 40_000;
const DEFAULT_LINES: usize = 200;

/// The results that are kept, and what reads them.
#[derive(Clone)]
pub struct Kept {
    pub spills: Arc<dyn Spills>,
    pub jq: Arc<dyn Jq>,
}

impl Grant for Kept {
    fn open(doors: &Doors) -> Result<Self, ToolError> {
        doors.open()
    }
}

/// Reads more of a reply that was cut, by its handle: lines, a range of bytes, lines that match a pattern,
/// or what a jq expression selects. Prefer jq when the reply is structured.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The handle from the cut reply.
    handle: String,
    /// First line to read, counted from 1.
    #[serde(default)]
    from_line: Option<usize>,
    /// How many lines to read.
    #[serde(default)]
    lines: Option<usize>,
    /// First byte to read, counted from 0; instead of lines.
    #[serde(default)]
    from_byte: Option<usize>,
    /// How many bytes to read.
    #[serde(default)]
    bytes: Option<usize>,
    /// Only lines that match this regular expression.
    #[serde(default)]
    pattern: Option<String>,
    /// A jq expression over the structured reply, such as `.rows[] | .name`.
    #[serde(default)]
    jq: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What was asked for; lines found by a pattern begin with their number.
    text: String,
    /// Lines of the whole reply.
    total_lines: usize,
    /// Bytes of the whole reply.
    total_bytes: usize,
    /// Where to go on: the next line, byte or match; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

pub struct ResultRead;

impl Tool for ResultRead {
    const NAME: &'static str = "result_read";
    const TITLE: &'static str = "Read more of a result";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Kept;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "The next hundred lines",
            serde_json::json!({"handle": "r_example", "from_line": 101, "lines": 100}),
        )]
    }

    async fn run(&self, input: Input, kept: Kept, cx: &Cx) -> Result<Output, ToolError> {
        let whole = kept.spills.load(&cx.caller, &input.handle).await?;
        let (text, structure) = readable(&whole)?;
        let (total_lines, total_bytes) = (text.lines().count(), text.len());
        let (text, next) = match &input {
            Input { jq: Some(program), .. } => {
                let structure = structure.ok_or_else(|| {
                    ToolError::invalid("This reply is plain text.")
                        .hint("Read it by lines, bytes or a pattern.")
                })?;
                page(&kept.jq.run(program, structure).await?, input.from_byte.unwrap_or(0), MAX_PAGE)
            }
            Input { pattern: Some(pattern), .. } => matching(&text, pattern, &input)?,
            Input { from_byte: Some(from), bytes, .. } => {
                page(&text, *from, bytes.unwrap_or(MAX_PAGE).min(MAX_PAGE))
            }
            _ => lines(&text, &input),
        };
        Ok(Output { text, total_lines, total_bytes, next })
    }
}

/// The reply as text for people, and as structure when it has one.
fn readable(whole: &Json) -> Result<(String, Option<Json>), ToolError> {
    let result = whole.members().map_err(ToolError::internal)?;
    // A resource or a prompt is read as the structure that it is.
    let structure =
        result.get("structuredContent").or_else(|| result.get("content").is_none().then_some(whole));
    if let Some(structure) = structure {
        let value: serde_json::Value = structure.to().map_err(ToolError::internal)?;
        return Ok((
            serde_json::to_string_pretty(&value).map_err(ToolError::internal)?,
            Some(structure.clone()),
        ));
    }
    let texts: Vec<String> = result
        .list("content")
        .iter()
        .filter_map(|block| block.members().ok())
        .map(|block| block.text("text").unwrap_or_else(|| block.to_json().to_string()))
        .collect();
    let text = texts.join("\n");
    let structure =
        Json::parse(text.clone()).ok().filter(|json| json.is_object() || json.as_str().starts_with('['));
    Ok((text, structure))
}

/// A range of bytes, moved to where characters begin.
fn page(text: &str, from: usize, length: usize) -> (String, Option<usize>) {
    let start = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let want = start.saturating_add(length).min(text.len());
    let end = (start..=want).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    (text.get(start..end).unwrap_or_default().to_owned(), (end < text.len()).then_some(end))
}

fn lines(text: &str, input: &Input) -> (String, Option<usize>) {
    let from = input.from_line.unwrap_or(1).max(1);
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let mut shown = String::new();
    let mut all = text.lines().enumerate().skip(from - 1);
    for (at, line) in all.by_ref() {
        if at + 1 >= from + want || (shown.len() + line.len() > MAX_PAGE && !shown.is_empty()) {
            return (shown, Some(at + 1));
        }
        let (part, rest) = page(line, 0, MAX_PAGE);
        shown.push_str(&part);
        shown.push_str(if rest.is_some() { "… (long line: read it by bytes)\n" } else { "\n" });
    }
    (shown, None)
}

fn matching(text: &str, pattern: &str, input: &Input) -> Result<(String, Option<usize>), ToolError> {
    let pattern = RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| {
        ToolError::invalid(format!("The pattern cannot be read: {error}."))
            .hint("Escape special characters with \\.")
    })?;
    let from = input.from_line.unwrap_or(1).max(1);
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let mut shown = String::new();
    let found = text.lines().enumerate().skip(from - 1).filter(|(_, line)| pattern.is_match(line));
    for (count, (at, line)) in found.enumerate() {
        if count == want || shown.len() + line.len() > MAX_PAGE && count > 0 {
            return Ok((shown, Some(at + 1)));
        }
        let (part, _) = page(line, 0, MAX_PAGE);
        shown.push_str(&format!("{}: {part}\n", at + 1));
    }
    Ok((shown, None))
}
