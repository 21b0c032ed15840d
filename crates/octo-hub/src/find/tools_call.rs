//! `tools_call`: calls a tool by its name. The hub replaces such a call by that of the tool before it decides anything
//! (`hub/call_wrapper.rs`), so this tool itself never runs.

use super::tools_find::FIND_TOOL;
use crate::catalogue::item::Entry;
use octo_model::{Effect, Json, ToolError};
use octo_toolkit::{CallContext, Example, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Name of the tool that calls other tools.
pub const CALL_TOOL: &str = "tools_call";

/// Calls an unlisted tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name, or server:tool.
    #[expect(dead_code, reason = "the hub reads it")]
    name: String,
    /// Its arguments.
    #[serde(default)]
    #[expect(dead_code, reason = "the hub reads it")]
    arguments: Option<Map<String, Value>>,
}

/// The reply is that of the tool.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    #[serde(flatten)]
    reply: Map<String, Value>,
}

pub struct ToolsCall;

impl Tool for ToolsCall {
    const NAME: &'static str = CALL_TOOL;
    const TITLE: &'static str = "Call a tool";
    const EFFECT: Effect = Effect::unknown();
    const SHOWS_STRUCTURE: bool = false;
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("The time", json!({"name": "time_now", "arguments": {"timezone": "Europe/Paris"}}))]
    }

    async fn run(&self, _: Input, (): (), _: &CallContext) -> Result<Output, ToolError> {
        Err(ToolError::internal("the call was not replaced by that of its tool"))
    }
}

/// Whether the entry is the tool that calls others.
pub fn is_call_wrapper(entry: &Entry) -> bool {
    entry.item.source.is_native() && entry.item.key == CALL_TOOL
}

/// Whether the entry is one of the two tools through which others are found and called.
pub fn is_find_or_call_tool(entry: &Entry) -> bool {
    is_call_wrapper(entry) || (entry.item.source.is_native() && entry.item.key == FIND_TOOL)
}

/// The tool that such a call names, and its arguments.
pub struct WrappedCall {
    pub name: String,
    pub arguments: Json,
}

impl WrappedCall {
    /// Reads the arguments of a call. Models also write the arguments as a string.
    pub fn parse(arguments: Option<&Json>) -> Result<Self, ToolError> {
        let members = arguments.map(|json| json.members().map_err(|_| not_an_object())).transpose()?;
        let members = members.unwrap_or_default();
        if let Some((unknown, _)) = members.iter().find(|(key, _)| !["name", "arguments"].contains(key)) {
            return Err(ToolError::invalid(format!("Unknown parameter `{}`.", shortened(unknown)))
                .hint("Put the arguments of the tool into `arguments`: {\"name\": …, \"arguments\": {…}}."));
        }
        let name = members.text("name").filter(|name| !name.is_empty()).ok_or_else(|| {
            ToolError::invalid("The name of the tool is missing.")
                .hint("Give {\"name\": …, \"arguments\": {…}}. Find names with tools_find.")
        })?;
        let arguments = match members.get("arguments") {
            None => Json::empty_object(),
            Some(json) if json.as_str() == "null" => Json::empty_object(),
            Some(json) if json.is_object() => json.clone(),
            Some(json) => {
                let text = json.to_text().ok_or_else(not_an_object)?;
                Json::parse(text).ok().filter(Json::is_object).ok_or_else(not_an_object)?
            }
        };
        Ok(Self { name, arguments })
    }
}

fn not_an_object() -> ToolError {
    ToolError::invalid("`arguments` must be a JSON object.")
        .hint("Give {\"name\": …, \"arguments\": {…}} with the arguments of the tool.")
}

fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_wrapped_call() {
        for (given, expected) in [
            (json!({"name": "t"}), Ok(("t", "{}"))),
            (json!({"name": "t", "arguments": null}), Ok(("t", "{}"))),
            (json!({"name": "a:t", "arguments": {"x": 1}}), Ok(("a:t", r#"{"x":1}"#))),
            (json!({"name": "t", "arguments": r#"{"x":1}"#}), Ok(("t", r#"{"x":1}"#))),
            (json!({"name": "t", "arguments": "x"}), Err("`arguments` must be a JSON object.")),
            (json!({"name": "t", "arguments": [1]}), Err("`arguments` must be a JSON object.")),
            (json!({"name": "t", "x": 1}), Err("Unknown parameter `x`.")),
            (json!({"name": 5}), Err("The name of the tool is missing.")),
            (json!({}), Err("The name of the tool is missing.")),
            (json!([]), Err("`arguments` must be a JSON object.")),
        ] {
            let call = WrappedCall::parse(Some(&Json::from(given.clone())));
            let call = call.map(|call| (call.name, call.arguments.as_str().to_owned()));
            let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
            assert_eq!(
                call.map_err(|error| error.message.into_owned()),
                expected.map_err(str::to_owned),
                "{given}"
            );
        }
        assert!(WrappedCall::parse(None).is_err());
    }
}
