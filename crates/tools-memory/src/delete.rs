//! `memory_delete`.

use crate::input_validation::{Sanitizer, caller, check_len};
use octo_toolkit::memory::Removal;
use octo_toolkit::{CallContext, Effect, Example, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;

/// Deletes entities with their observations and relations; reports unknown names. A memory_query with as_of still finds
/// them, unless erase is set. Prefer memory_forget for one observation or one relation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Names of the entities to delete, at most 1,000.
    entity_names: Vec<String>,
    /// Leave no trace, neither in the past nor in the index. Also erases earlier deleted entities of the same name.
    #[serde(default)]
    erase: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Number of deleted entities.
    deleted: u64,
    /// Unknown names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_found: Vec<String>,
}

pub struct Delete;

impl Tool for Delete {
    const NAME: &'static str = "memory_delete";
    const TITLE: &'static str = "Delete entities";
    const KEYWORDS: &'static str = "erase remove forget person entity";
    const REQUESTS: &'static [&'static str] = &[
        "remove everything you know about the old project",
        "erase the person Ada from your memory without a trace",
        "that customer is gone, drop the whole record from the knowledge graph",
        "wipe several remembered entities",
        "purge all stored data about a user for privacy",
        "delete the complete node with its links",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Memory;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("What is over", json!({"entity_names": ["Old project"]}))
                .with_output(json!({"deleted": 0, "not_found": ["Old project"]})),
            Example::new("Without a trace", json!({"entity_names": ["Ada"], "erase": true}))
                .with_output(json!({"deleted": 0, "not_found": ["Ada"]})),
        ]
    }

    async fn run(&self, input: Input, memory: Memory, cx: &CallContext) -> Result<Output, ToolError> {
        check_len(&input.entity_names, "entity_names")?;
        let mut sanitizer = Sanitizer::default();
        let mut names = Vec::new();
        for name in &input.entity_names {
            let name = sanitizer.name(name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let removal = if input.erase { Removal::Erased } else { Removal::Ended };
        let deleted = memory.delete(caller(cx), names.clone(), removal).await?;
        let found: HashSet<String> = deleted.iter().map(|name| name.to_lowercase()).collect();
        let not_found = names.into_iter().filter(|name| !found.contains(&name.to_lowercase())).collect();
        Ok(Output { deleted: deleted.len() as u64, not_found })
    }
}
