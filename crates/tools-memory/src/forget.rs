//! `memory_forget`.

use crate::add_relations::Relation;
use crate::input_validation::{Sanitizer, caller};
use octo_toolkit::memory::{ForgetTarget, MemoryQuery, Removal};
use octo_toolkit::{CallContext, Effect, Example, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Forgets one observation of an entity, or one relation, permanently, or keeps it for queries about the past; reports
/// if it does not exist. Prefer memory_delete for whole entities.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Entity of the observation.
    #[serde(default)]
    entity_name: Option<String>,
    /// The exact text of the observation.
    #[serde(default)]
    observation: Option<String>,
    /// The relation, instead of an observation.
    #[serde(default)]
    relation: Option<Relation>,
    /// It was true until now: memory_query with as_of still finds it. Otherwise it is erased.
    #[serde(default)]
    keep_history: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Number forgotten, past ones included.
    forgotten: u64,
    /// Why nothing was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct ForgetTool;

impl Tool for ForgetTool {
    const NAME: &'static str = "memory_forget";
    const TITLE: &'static str = "Forget one thing";
    const KEYWORDS: &'static str = "erase remove fact correct wrong note";
    const REQUESTS: &'static [&'static str] = &[
        "that fact is wrong, she does not like coffee, drop it",
        "take back one single statement about Ada",
        "she no longer works there, remove just that link",
        "remove an outdated remark but keep the person",
        "correct a mistaken note by striking it",
        "end a relationship in the past but keep its history",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Memory;

    fn examples() -> Vec<Example> {
        let relation = json!({"source": "Ada", "relation": "works_on", "target": "Octoprox"});
        vec![
            Example::new("A mistake", json!({"entity_name": "Ada", "observation": "Prefers coffee"})),
            Example::new("No longer so", json!({"relation": relation, "keep_history": true})),
        ]
    }

    async fn run(&self, input: Input, memory: Memory, cx: &CallContext) -> Result<Output, ToolError> {
        let removal = if input.keep_history { Removal::Ended } else { Removal::Erased };
        let target = parse_target(&input)?;
        let forgotten = memory.forget(caller(cx), target.clone(), removal).await?;
        let notice = match forgotten {
            0 => Some(explain_not_found(&memory, &target, cx).await?),
            _ => None,
        };
        Ok(Output { forgotten, notice })
    }
}

/// Why nothing was forgotten: the entity is unknown, or it has no such observation or relation.
async fn explain_not_found(
    memory: &Memory,
    target: &ForgetTarget,
    cx: &CallContext,
) -> Result<String, ToolError> {
    let names = match target {
        ForgetTarget::Fact { entity, .. } => vec![entity],
        ForgetTarget::Link(link) => vec![&link.source, &link.target],
    };
    for name in names {
        let question = MemoryQuery { name: Some(name.clone()), limit: 1, ..MemoryQuery::default() };
        let answer = memory.query(caller(cx), question).await?;
        if answer.entities.is_empty() {
            let suggestion = match answer.nearest.is_empty() {
                true => "Call memory_list to list all entities.".to_owned(),
                false => format!("Similar: {}.", answer.nearest.join(", ")),
            };
            return Ok(format!("Entity not found: `{name}`. {suggestion}"));
        }
    }
    Ok("Observation or relation not found. Call memory_query with entity_name and copy the exact text."
        .to_owned())
}

fn parse_target(input: &Input) -> Result<ForgetTarget, ToolError> {
    let mut sanitizer = Sanitizer::default();
    match (&input.entity_name, &input.observation, &input.relation) {
        (Some(entity), Some(text), None) => {
            let entity = sanitizer.name(entity)?;
            let text = sanitizer.fact(text)?.ok_or_else(|| {
                ToolError::invalid("The observation is empty.").hint("Pass its exact text.")
            })?;
            Ok(ForgetTarget::Fact { entity, text })
        }
        (None, None, Some(link)) => {
            Ok(ForgetTarget::Link(sanitizer.link(&link.source, &link.relation, &link.target)?))
        }
        _ => Err(ToolError::invalid("Nothing to forget was named.")
            .hint("Pass entity_name and observation together, or relation alone.")),
    }
}
