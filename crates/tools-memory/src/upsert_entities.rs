//! `memory_upsert_entities`.

use crate::input_validation::{Sanitizer, caller, check_len};
use octo_toolkit::memory::{Fact, FactOrigin, MAX_FACTS, NameMatch, NewEntity, UpsertResult};
use octo_toolkit::{CallContext, Effect, Example, Kind, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Remembers entities and what is known of them: creates new ones, adds new observations to known ones, and reports
/// which. The reply means stored and searchable. Prefer memory_query first, to use existing names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Entities to create or extend, at most 1,000.
    entities: Vec<Entity>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entity {
    /// Name of the entity, case-insensitive.
    name: String,
    /// Its type: person, project, concept, task. Without one a known entity keeps its type.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// Facts about it, one sentence each; known ones are not added again.
    #[serde(default)]
    observations: Vec<String>,
    /// Where the observations come from if you did not conclude them yourself: a URL, a file, a person.
    #[serde(default)]
    source: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// New entities.
    created: u64,
    /// Entities that were already known.
    updated: u64,
    /// Result for each entity.
    entities: Vec<Change>,
    /// What was removed from the texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    /// The name it is stored under.
    name: String,
    /// True if it is new.
    created: bool,
    /// Number of observations added.
    observations_added: u64,
    /// Its previous type, if changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    type_was: Option<String>,
}

pub struct UpsertEntities;

impl Tool for UpsertEntities {
    const NAME: &'static str = "memory_upsert_entities";
    const TITLE: &'static str = "Remember entities";
    const EFFECT: Effect = Effect::writes();
    type Input = Input;
    type Output = Output;
    type Grants = Memory;

    fn examples() -> Vec<Example> {
        let ada =
            json!({"name": "Ada", "type": "person", "observations": ["Prefers tea", "Works on Octoprox"]});
        let page = json!({
            "name": "Octoprox", "type": "project", "observations": ["Listens on port 7000"], "source": "https://example.org/docs"
        });
        vec![
            Example::new("A person", json!({"entities": [ada]})),
            Example::new("What a page says", json!({"entities": [page]})),
        ]
    }

    async fn run(&self, input: Input, memory: Memory, cx: &CallContext) -> Result<Output, ToolError> {
        check_len(&input.entities, "entities")?;
        let mut sanitizer = Sanitizer::default();
        let entities = input
            .entities
            .iter()
            .map(|entity| new_entity(entity, &mut sanitizer))
            .collect::<Result<_, _>>()?;
        let done = memory.upsert(caller(cx), entities, NameMatch::Alike).await?;
        let created = done.iter().filter(|one| one.created).count() as u64;
        Ok(Output {
            created,
            updated: done.len() as u64 - created,
            entities: done.into_iter().map(change).collect(),
            notice: sanitizer.notice(),
        })
    }
}

fn new_entity(entity: &Entity, sanitizer: &mut Sanitizer) -> Result<NewEntity, ToolError> {
    let name = sanitizer.name(&entity.name)?;
    if entity.observations.len() > MAX_FACTS {
        let many =
            format!("`{name}` has {} observations; the maximum is {MAX_FACTS}.", entity.observations.len());
        return Err(
            ToolError::new(Kind::TooLarge, many).hint("Spread them over several entities and relate those.")
        );
    }
    let source = entity.source.as_deref().map(|source| sanitizer.source(source)).transpose()?;
    let origin = if source.is_some() { FactOrigin::Sourced } else { FactOrigin::Stated };
    let mut facts = Vec::with_capacity(entity.observations.len());
    for text in &entity.observations {
        if let Some(text) = sanitizer.fact(text)? {
            facts.push(Fact { text, origin, source: source.clone() });
        }
    }
    let kind = entity.kind.as_deref().map(|kind| sanitizer.kind(kind)).transpose()?;
    Ok(NewEntity { name, kind, facts })
}

fn change(done: UpsertResult) -> Change {
    Change { name: done.name, created: done.created, observations_added: done.added, type_was: done.kind_was }
}
