//! `octoprox call NAME --help`: help of a tool, from its schema.

use super::tool_arguments::param_types;
use crate::terminal::terminal_width::wrap_words;
use crate::terminal::text_table::{definition_list, sanitize_text};
use octo_model::JsonObject;
use octo_toolkit::Example;
use serde_json::Value;

/// Renders the help of a tool.
pub fn tool_help(name: &str, tool: &JsonObject, examples: &[Example], width: usize) -> String {
    let about = tool.text("description").or_else(|| tool.text("title")).unwrap_or_default();
    let schema: Value = tool.get("inputSchema").and_then(|schema| schema.to().ok()).unwrap_or_default();
    let parameters = parameters(&schema);
    let must: String =
        parameters.iter().filter(|it| it.required).map(|it| format!(" {}", it.usage())).collect();
    let may = if parameters.iter().all(|it| it.required) { "" } else { " [NAME=VALUE]..." };
    let mut text =
        format!("{}\n\nUsage: octoprox call {name}{must}{may}\n", wrap_words(&about, width).join("\n"));
    if !parameters.is_empty() {
        let rows: Vec<(String, String)> =
            parameters.iter().map(|it| (it.usage(), it.description())).collect();
        text.push_str(&format!("\nArguments:\n{}", definition_list(&rows, width)));
    }
    if !examples.is_empty() {
        text.push_str("\nExamples:\n");
    }
    for example in examples {
        let input: Value = example.input.to().unwrap_or_default();
        text.push_str(&format!("  {}:\n    octoprox call {name}{}\n", example.purpose, shell_pairs(&input)));
    }
    sanitize_text(&text)
}

struct Parameter<'a> {
    name: &'a str,
    kinds: Vec<String>,
    schema: &'a Value,
    required: bool,
}

/// Returns the parameters, required ones first.
fn parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let must = schema.get("required").and_then(Value::as_array);
    let must = |name: &str| must.is_some_and(|all| all.iter().any(|it| it == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut all: Vec<Parameter<'_>> = properties
        .into_iter()
        .flatten()
        .map(|(name, own)| Parameter {
            name,
            kinds: param_types(name, schema),
            schema: own,
            required: must(name),
        })
        .collect();
    all.sort_by_key(|parameter| !parameter.required);
    all
}

impl Parameter<'_> {
    fn usage(&self) -> String {
        let value = match self.kinds.first().map(String::as_str) {
            Some("string") => "TEXT",
            Some("integer" | "number") => "NUMBER",
            Some("boolean") => "true|false",
            Some("array") => "'[…]'",
            Some("object") => "'{…}'",
            _ => "VALUE",
        };
        format!("{}={value}", self.name)
    }

    fn description(&self) -> String {
        let about = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let choices = self.schema.get("enum").and_then(Value::as_array);
        let choices = choices.map(|all| all.iter().map(words).collect::<Vec<_>>().join(", "));
        let choices = choices.map(|all| format!(" [one of: {all}]")).unwrap_or_default();
        // Defaults of false and empty text are not shown.
        let told = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false)) && **value != "";
        let default = self.schema.get("default").filter(told).map(words);
        let default = default.map(|value| format!(" [default: {value}]"));
        format!("{about}{choices}{}", default.unwrap_or_default())
    }
}

/// Renders an object as shell arguments.
fn shell_pairs(input: &Value) -> String {
    let pairs = input.as_object().into_iter().flatten();
    pairs.map(|(name, value)| format!(" {name}={}", shell_quote(value))).collect()
}

fn shell_quote(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // A leading @ would name a file.
    let text = if text.starts_with('@') && value.is_string() { format!("@{text}") } else { text };
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_says_what_to_type() {
        let tool = json!({"description": "Fetches it.", "inputSchema": {"required": ["url"], "properties": {
            "form": {"type": "string", "enum": ["a", "b"], "default": "a", "description": "Shape."},
            "url": {"type": "string", "description": "Address."},
            "on": {"type": "boolean", "default": false, "description": "Switch."},
            "most": {"type": ["integer", "null"], "default": null, "description": "Bytes."},
        }}});
        let tool = JsonObject::parse(tool.to_string()).unwrap();
        let examples = [Example::new("One", json!({"url": "https://example.com/?a b", "most": 5}))];
        let wanted = "Fetches it.

Usage: octoprox call fetch url=TEXT [NAME=VALUE]...

Arguments:
  url=TEXT       Address.
  form=TEXT      Shape. [one of: a, b] [default: a]
  on=true|false  Switch.
  most=NUMBER    Bytes.

Examples:
  One:
    octoprox call fetch url='https://example.com/?a b' most=5
";
        assert_eq!(tool_help("fetch", &tool, &examples, 80), wanted);
    }

    #[test]
    fn values_survive_a_shell() {
        for (value, text) in [
            (json!("plain"), "plain"),
            (json!("it's"), r"'it'\''s'"),
            (json!("@home"), "@@home"),
            (json!(["a"]), "'[\"a\"]'"),
            (json!(""), "''"),
            (json!(true), "true"),
        ] {
            assert_eq!(shell_quote(&value), text);
        }
    }

    #[test]
    fn a_tool_that_takes_nothing_has_no_list_of_arguments() {
        let tool = JsonObject::parse(r#"{"title":"Rests"}"#.to_owned()).unwrap();
        assert_eq!(tool_help("rest", &tool, &[], 80), "Rests\n\nUsage: octoprox call rest\n");
    }
}
