//! Text of a document, JSON or YAML, converted to JSON within limits.

use octo_toolkit::{Kind, ToolError};
use serde_json::Value;

/// Maximum size of a document: more than twice the largest published one.
pub const MAX_DOCUMENT_BYTES: usize = 32 << 20;
/// Maximum nesting in YAML; the JSON parser has the same limit.
const MAX_YAML_DEPTH: usize = 127;
/// Maximum nodes of a YAML document, including those repeated by aliases.
const MAX_YAML_EVENTS: usize = 3_000_000;

/// Returns JSON unchanged; converts YAML to JSON.
pub(crate) fn to_json_text(text: String) -> Result<String, ToolError> {
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(ToolError::new(Kind::TooLarge, "The document is larger than 32 MB.")
            .hint("Load the part that you need as a separate document."));
    }
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.is_empty() {
        return Err(
            ToolError::invalid("The document is empty.").hint("Pass the OpenAPI document as JSON or YAML.")
        );
    }
    if start.starts_with('{') {
        return if start.len() == text.len() { Ok(text) } else { Ok(start.to_owned()) };
    }
    if start.starts_with('<') {
        return Err(ToolError::invalid("This is a web page, not an OpenAPI document.").hint(
            "Find the URL of the JSON or YAML document on the page, often openapi.json or swagger.json.",
        ));
    }
    let value = yaml(start)?;
    serde_json::to_string(&value).map_err(ToolError::internal)
}

fn yaml(text: &str) -> Result<Value, ToolError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_YAML_DEPTH,
            max_events: MAX_YAML_EVENTS,
            max_nodes: MAX_YAML_EVENTS,
            max_total_scalar_bytes: MAX_DOCUMENT_BYTES,
            max_aliases: 10_000,
            max_buffered_comment_events: 10_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 500_000 },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let said: String = error.to_string().chars().take(300).collect();
        ToolError::invalid(format!("The document is not valid YAML: {said}"))
            .hint("Fix it at that position, or pass it as JSON.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_becomes_json_with_its_numbers_as_keys() {
        let text = "openapi: 3.0.0\nx: &a {q: 1}\ny: *a\nresponses:\n  200:\n    description: fine\n  '404': {}\nd: 2020-01-01\n";
        let value: Value = serde_json::from_str(&to_json_text(text.to_owned()).unwrap()).unwrap();
        assert_eq!(value["responses"]["200"]["description"], "fine");
        assert_eq!(value["y"]["q"], 1);
        assert_eq!((&value["openapi"], &value["d"]), (&"3.0.0".into(), &"2020-01-01".into()));
    }

    #[test]
    fn bombs_pages_and_nothing_are_refused() {
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..9 {
            let line = vec![format!("*a{}", n - 1); 10].join(", ");
            laughs.push_str(&format!("a{n}: &a{n} [{line}]\n"));
        }
        let deep = format!("x: {}{}", "[".repeat(5_000), "]".repeat(5_000));
        for text in [laughs.as_str(), deep.as_str(), " \n", "<!doctype html>", "a: [1", "- 1\n - 2\n: ["] {
            let error = to_json_text(text.to_owned()).unwrap_err();
            assert!(error.hint.is_some(), "{error}");
        }
        assert_eq!(to_json_text(" ".repeat(MAX_DOCUMENT_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
    }
}
