//! `tools_find`: searches all tools that the caller may use.

use super::found_text::found_text;
use octo_model::{Effect, EffectClass, ToolError};
use octo_toolkit::{CallContext, Example, FoundTool, FoundTools, SiblingTool, Tool, ToolSearch};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name of the tool that finds tools.
pub const FIND_TOOL: &str = "tools_find";

const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 30;

/// Finds unlisted tools by what they do. Returns signatures for tools_call: `?` is optional, `~` nested. A tool name
/// returns its schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What it does, or its name.
    query: String,
    /// Maximum tools.
    #[serde(default, deserialize_with = "whole_number")]
    limit: Option<usize>,
    /// Of this server.
    #[serde(default)]
    server: Option<String>,
    /// No more than this.
    #[serde(default)]
    effect: Option<MaxEffect>,
}

/// Reads `2.0` as 2, which JSON does not tell apart.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let is_whole = number.fract() == 0.0 && number >= 0.0;
    is_whole
        .then_some(Some(number as usize))
        .ok_or_else(|| D::Error::custom("`limit` must be a whole number"))
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MaxEffect {
    Reads,
    Writes,
    Destroys,
}

impl From<MaxEffect> for EffectClass {
    fn from(effect: MaxEffect) -> Self {
        match effect {
            MaxEffect::Reads => Self::Reads,
            MaxEffect::Writes => Self::Writes,
            MaxEffect::Destroys => Self::Destroys,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The tools, best first.
    tools: Vec<Match>,
    /// Names of further tools on the servers of the best ones, and of those that match next best.
    also: BTreeMap<String, Vec<String>>,
    /// If nothing was found: servers with tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    servers: Vec<String>,
    #[serde(skip)]
    #[schemars(skip)]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// The name to call.
    name: String,
    /// The tool's server or toolbox.
    server: String,
    /// Its name there.
    tool: String,
    /// Its arguments and what it does.
    signature: String,
    /// The input schema, if the tool was searched by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    /// Other servers with the same tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    same_on: Vec<String>,
}

impl From<FoundTools> for Output {
    fn from(found: FoundTools) -> Self {
        let text = found_text(&found);
        let FoundTools { tools, siblings, servers } = found;
        let names = |tools: Vec<SiblingTool>| tools.into_iter().map(|sibling| sibling.tool).collect();
        let mut also: BTreeMap<String, Vec<String>> =
            siblings.into_iter().map(|siblings| (siblings.server, names(siblings.tools))).collect();
        for FoundTool { tool, same_on, .. } in &tools {
            for server in same_on {
                also.entry(server.clone()).or_default().push(tool.clone());
            }
        }
        let matched = |FoundTool { name, server, tool, signature, schema, same_on }| Match {
            name,
            server,
            tool,
            signature,
            schema: schema.and_then(|schema| schema.to().ok()),
            same_on,
        };
        Self { tools: tools.into_iter().map(matched).collect(), also, servers, text }
    }
}

pub struct ToolsFind;

impl Tool for ToolsFind {
    const NAME: &'static str = FIND_TOOL;
    const TITLE: &'static str = "Find tools";
    const EFFECT: Effect = Effect::reads_volatile();
    const SHOWS_STRUCTURE: bool = false;
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("Tools that convert a document", json!({"query": "convert a document to PDF"}))]
    }

    fn text(output: &Output) -> Option<String> {
        Some(output.text.clone())
    }

    async fn run(&self, input: Input, (): (), cx: &CallContext) -> Result<Output, ToolError> {
        if input.query.trim().is_empty() {
            return Err(ToolError::invalid("The query is empty.").hint("Say what the tool should do."));
        }
        let search = ToolSearch {
            query: input.query,
            limit: input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
            server: input.server,
            max_effect: input.effect.map(EffectClass::from),
        };
        Ok(cx.nested_calls()?.find_tools(cx, search).await?.into())
    }
}
