//! `gitlab_openapi_spec`.

use super::Instance;
use octo_toolkit::{CallContext, Effect, Example, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

const MAX_LIMIT_BYTES: u64 = 500_000;

/// Reads GitLab's OpenAPI document as text, part by part; fails with what to configure if none is available. Prefer
/// gitlab_openapi_paths and gitlab_openapi_operation, which need far less text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Byte of the document to start at; from next_offset.
    #[serde(default)]
    offset: u64,
    /// Maximum bytes to return, 1 to 500,000.
    #[serde(default = "default_limit")]
    limit: u64,
}

fn default_limit() -> u64 {
    50_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The text starting at offset, truncated at the end of a line.
    content: String,
    /// Pass as offset for the rest; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    /// Bytes of the whole document.
    total: usize,
    /// Source of the document.
    source: String,
}

pub struct Spec(pub Arc<Instance>);

impl Tool for Spec {
    const NAME: &'static str = "gitlab_openapi_spec";
    const TITLE: &'static str = "Read GitLab's OpenAPI document";
    const KEYWORDS: &'static str = "swagger definition";
    const REQUESTS: &'static [&'static str] = &[
        "give me gitlab's complete api document",
        "raw yaml of the gitlab api description",
        "read the whole gitlab specification piece by piece",
        "download gitlab's swagger file as text",
        "continue the gitlab api definition from byte 50000",
        "where does our gitlab api document come from",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Net;

    fn examples() -> Vec<Example> {
        vec![Example::new("The beginning", json!({"limit": 2000}))]
    }

    async fn run(&self, input: Input, net: Net, cx: &CallContext) -> Result<Output, ToolError> {
        if !(1..=MAX_LIMIT_BYTES).contains(&input.limit) {
            return Err(ToolError::invalid("limit must be 1 to 500,000.").hint("The default is 50,000."));
        }
        let document = self.0.document(&net, cx).await?;
        let offset = usize::try_from(input.offset).unwrap_or(usize::MAX);
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
        let (content, next_offset) = part(&document.text, offset, limit);
        Ok(Output {
            content: content.to_owned(),
            next_offset,
            total: document.text.len(),
            source: document.source.clone(),
        })
    }
}

/// At most `limit` bytes, up to the end of a line unless a single line is longer.
fn part(text: &str, offset: usize, limit: usize) -> (&str, Option<usize>) {
    let start = text.floor_char_boundary(offset);
    let rest = text.get(start..).unwrap_or_default();
    let most = rest.floor_char_boundary(limit).max(rest.chars().next().map_or(0, char::len_utf8));
    let head = rest.get(..most).unwrap_or_default();
    let end = if most == rest.len() { most } else { head.rfind('\n').map_or(most, |at| at + 1) };
    (rest.get(..end).unwrap_or_default(), (end < rest.len()).then_some(start + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_a_gap() {
        let text = "openapi: 3.0.0\ninfo:\n  title: Ünïcödé\npaths: {}\n".repeat(7);
        for limit in [1, 2, 7, 40, 1_000] {
            let (mut whole, mut next) = (String::new(), Some(0));
            while let Some(at) = next {
                let (content, after) = part(&text, at, limit);
                assert!(content.len() <= limit.max(2), "{limit}");
                whole.push_str(content);
                next = after;
            }
            assert_eq!(whole, text, "{limit}");
        }
        assert_eq!(part("a\nb", 99, 5), ("", None));
        assert_eq!(part("a\nbb", 0, 3), ("a\n", Some(2)));
    }
}
