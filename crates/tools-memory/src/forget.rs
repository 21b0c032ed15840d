//! `memory_forget`.

use crate::add_relations::Relation;
use crate::input_validation::{Sanitizer, caller};
use octo_toolkit::memory::{ForgetTarget, MemoryQuery, Removal};
use octo_toolkit::{CallContext, Effect, Example, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Forgets one observation of an entity, or one relation, for good, or keeps it for questions about the past; says when there
/// is no such thing. Prefer memory_delete for whole entities.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Entity of the observation.
    #[serde(default)]
    entity_name: Option<String>,
    /// The observation, letter by letter.
    #[serde(default)]
    observation: Option<String>,
    /// The relation, instead of an observation.
    #[serde(default)]
    relation: Option<Relation>,
    /// It was true until now: memory_query with as_of still finds it. Otherwise no trace stays.
    #[serde(default)]
    keep_history: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// How many were forgotten, past ones included.
    forgotten: u64,
    /// Why nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct ForgetTool;

impl Tool for ForgetTool {
    const NAME: &'static str = "memory_forget";
    const TITLE: &'static str = "Forget one thing";
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

/// Why nothing was forgotten: an entity that is not known, or something else of one that is.
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
                true => "Call memory_list to see which there are.".to_owned(),
                false => format!("Near are: {}.", answer.nearest.join(", ")),
            };
            return Ok(format!("There is no entity `{name}`. {suggestion}"));
        }
    }
    Ok("There is no such observation or relation. Call memory_query with entity_name and copy it letter by letter."
        .to_owned())
}

fn parse_target(input: &Input) -> Result<ForgetTarget, ToolError> {
    let mut sanitizer = Sanitizer::default();
    match (&input.entity_name, &input.observation, &input.relation) {
        (Some(entity), Some(text), None) => {
            let entity = sanitizer.name(entity)?;
            let text = sanitizer.fact(text)?.ok_or_else(|| {
                ToolError::invalid("The observation is empty.").hint("Give its text, letter by letter.")
            })?;
            Ok(ForgetTarget::Fact { entity, text })
        }
        (None, None, Some(link)) => {
            Ok(ForgetTarget::Link(sanitizer.link(&link.source, &link.relation, &link.target)?))
        }
        _ => Err(ToolError::invalid("It is not clear what to forget.")
            .hint("Give entity_name and observation together, or relation alone.")),
    }
}
