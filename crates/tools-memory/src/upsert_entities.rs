//! `memory_upsert_entities`.

use crate::input_validation::{Sanitizer, caller, check_len};
use octo_toolkit::memory::{
    Fact, FactOrigin, ForgetTarget, KnownFact, MAX_FACTS, MemoryQuery, NameMatch, NewEntity, Removal,
    UpsertResult,
};
use octo_toolkit::{CallContext, Effect, Example, Kind, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// Observations that an error names, and characters of each.
const MAX_SHOWN_FACTS: usize = 10;
const MAX_SHOWN_CHARS: usize = 100;

/// Remembers entities and what is known of them: creates new ones, adds new observations to known ones, ends outdated
/// ones, and reports which. The reply means stored and searchable. Prefer memory_query first, to use existing names.
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
    /// Observations that are no longer true, as memory_query shows them; they stay in the history.
    #[serde(default)]
    outdated: Vec<String>,
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
    /// Number of outdated observations that were ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    observations_ended: u64,
    /// Its previous type, if changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    type_was: Option<String>,
}

pub struct UpsertEntities;

impl Tool for UpsertEntities {
    const NAME: &'static str = "memory_upsert_entities";
    const TITLE: &'static str = "Remember entities";
    const KEYWORDS: &'static str = "save note store fact preference learn keep in mind for later";
    const REQUESTS: &'static [&'static str] = &[
        "remember that i prefer short answers",
        "keep in mind that our office in Lisbon closes at six",
        "note for next time: the server listens on port 7000",
        "store a fact about the customer",
        "save what i told you about my sister",
        "learn this for future conversations",
        "add a new person with her birthday and role to your notes",
    ];
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
            .collect::<Result<Vec<_>, _>>()?;
        let mut outdated = Vec::with_capacity(entities.len());
        for (entity, new) in input.entities.iter().zip(&entities) {
            outdated.push(outdated_facts(&memory, cx, &new.name, &entity.outdated).await?);
        }
        let done = memory.upsert(caller(cx), entities, NameMatch::Alike).await?;
        let created = done.iter().filter(|one| one.created).count() as u64;
        let mut changes: Vec<Change> = done.into_iter().map(change).collect();
        // After the new ones are stored: an interruption leaves too much rather than too little.
        for (change, outdated) in changes.iter_mut().zip(outdated) {
            for fact in outdated {
                change.observations_ended += memory.forget(caller(cx), fact, Removal::Ended).await?;
            }
        }
        let updated = changes.len() as u64 - created;
        Ok(Output { created, updated, entities: changes, notice: sanitizer.notice() })
    }
}

/// The observations of an entity that these texts mean; they may differ from the stored ones in case.
async fn outdated_facts(
    memory: &Memory,
    cx: &CallContext,
    name: &str,
    texts: &[String],
) -> Result<Vec<ForgetTarget>, ToolError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    if texts.len() > MAX_FACTS {
        let many = format!("`{name}` has {} outdated observations; the maximum is {MAX_FACTS}.", texts.len());
        return Err(ToolError::new(Kind::TooLarge, many).hint("End them in several calls."));
    }
    let question =
        MemoryQuery { name: Some(name.to_owned()), limit: 2, facts: MAX_FACTS, ..MemoryQuery::default() };
    let known = memory.query(caller(cx), question).await?.entities;
    let known = known.iter().find(|entity| entity.name == name).or(known.first());
    let facts = known.map(|entity| entity.facts.as_slice()).unwrap_or_default();
    let exact: HashSet<&str> = facts.iter().map(|fact| fact.text.as_str()).collect();
    let any_case: HashMap<String, &str> =
        facts.iter().rev().map(|fact| (fact.text.to_lowercase(), fact.text.as_str())).collect();
    let mut named = HashSet::new();
    let mut targets = Vec::new();
    for text in texts {
        let found = exact.get(text.as_str()).or_else(|| any_case.get(&text.trim().to_lowercase()));
        let (entity, fact) = known.zip(found).ok_or_else(|| unknown_fact(name, text, facts))?;
        if named.insert(*fact) {
            targets.push(ForgetTarget::Fact { entity: entity.name.clone(), text: (*fact).to_owned() });
        }
    }
    Ok(targets)
}

fn unknown_fact(name: &str, text: &str, facts: &[KnownFact]) -> ToolError {
    let shown = |text: &str| text.chars().take(MAX_SHOWN_CHARS).collect::<String>();
    let known: Vec<String> = facts.iter().rev().take(MAX_SHOWN_FACTS).map(|fact| shown(&fact.text)).collect();
    let hint = match known.is_empty() {
        true => format!("`{name}` has no observations."),
        false => format!("`{name}` has, among others: {}. Nothing was changed.", known.join("; ")),
    };
    ToolError::not_found(format!("Observation not found: `{}`.", shown(text))).hint(hint)
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
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
    Change {
        name: done.name,
        created: done.created,
        observations_added: done.added,
        observations_ended: 0,
        type_was: done.kind_was,
    }
}
