//! `memory_list`.

use crate::input_validation::{caller, check_range};
use octo_toolkit::memory::PageRequest;
use octo_toolkit::{CallContext, Effect, Example, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists remembered entities by name, a page at a time, with the number of their observations, and counts their types.
/// Prefer memory_query to find something or to read observations.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only entities of this type.
    #[serde(default)]
    entity_type: Option<String>,
    /// Maximum entities to return, up to 500.
    #[serde(default = "default_limit")]
    limit: u64,
    /// How many entities to skip.
    #[serde(default)]
    offset: u64,
}

fn default_limit() -> u64 {
    50
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Entities, sorted by name.
    entities: Vec<Entity>,
    /// Total number of entities, of this type if given.
    total: u64,
    /// The most frequent types.
    types: Vec<TypeCount>,
    /// Pass it as offset to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Entity {
    /// Its name.
    name: String,
    /// What it is.
    #[serde(rename = "type")]
    kind: String,
    /// Number of observations.
    observation_count: u64,
    /// When it was last changed, RFC 3339.
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct TypeCount {
    /// The type.
    #[serde(rename = "type")]
    kind: String,
    /// Number of entities of this type.
    count: u64,
}

pub struct List;

impl Tool for List {
    const NAME: &'static str = "memory_list";
    const TITLE: &'static str = "List the memory";
    const KEYWORDS: &'static str = "what do you know remember everything notes people";
    const REQUESTS: &'static [&'static str] = &[
        "what do you have stored, page by page",
        "names of all people you know about",
        "how many projects are in your knowledge graph",
        "which kinds of things do you remember",
        "show an index of remembered entities",
        "go through the stored topics alphabetically",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Memory;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The first page", json!({})),
            Example::new("People", json!({"entity_type": "person", "limit": 10})),
        ]
    }

    async fn run(&self, input: Input, memory: Memory, cx: &CallContext) -> Result<Output, ToolError> {
        let kind = input.entity_type.filter(|kind| !kind.trim().is_empty());
        let limit = check_range(input.limit, "limit", 500)?;
        let listed = memory.list(caller(cx), PageRequest { kind, limit, offset: input.offset }).await?;
        let seen = input.offset.saturating_add(listed.entities.len() as u64);
        let next_offset = (!listed.entities.is_empty() && seen < listed.total).then_some(seen);
        let entities = listed.entities.into_iter().map(|brief| Entity {
            name: brief.name,
            kind: brief.kind,
            observation_count: brief.fact_count,
            updated_at: brief.updated.to_string(),
        });
        let types = listed.kinds.into_iter().map(|(kind, count)| TypeCount { kind, count });
        Ok(Output { entities: entities.collect(), total: listed.total, types: types.collect(), next_offset })
    }
}
