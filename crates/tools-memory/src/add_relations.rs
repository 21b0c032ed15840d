//! `memory_add_relations`.

use crate::input_validation::{Sanitizer, caller, check_len};
use octo_toolkit::memory::NameMatch;
use octo_toolkit::{CallContext, Effect, Example, Memory, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Relates remembered entities to each other; counts relations added and those already known. Creates entities that do
/// not exist. Prefer memory_upsert_entities for facts about a single entity.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Relations to add, at most 1,000.
    relations: Vec<Relation>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Name of the entity where the relation starts.
    pub source: String,
    /// How they are related, as a verb: works_on, depends_on.
    pub relation: String,
    /// Name of the entity where the relation ends.
    pub target: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// New relations.
    added: u64,
    /// Relations that were already known.
    skipped: u64,
    /// Entities that did not exist and were created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    created_entities: Vec<String>,
    /// What was removed from the texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct AddRelations;

impl Tool for AddRelations {
    const NAME: &'static str = "memory_add_relations";
    const TITLE: &'static str = "Relate entities";
    const KEYWORDS: &'static str = "connect link associate graph edges people knows";
    const REQUESTS: &'static [&'static str] = &[
        "note that Ada works on the billing project",
        "remember that service A depends on service B",
        "link the person to the company in your notes",
        "keep in mind that Tom is the manager of Lisa",
        "connect two known things in the knowledge graph",
        "record which team owns which component",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Memory;

    fn examples() -> Vec<Example> {
        let one = json!({"source": "Ada", "relation": "works_on", "target": "Octoprox"});
        vec![Example::new("Who works on what", json!({"relations": [one]}))]
    }

    async fn run(&self, input: Input, memory: Memory, cx: &CallContext) -> Result<Output, ToolError> {
        check_len(&input.relations, "relations")?;
        let mut sanitizer = Sanitizer::default();
        let links = input.relations.iter().map(|one| sanitizer.link(&one.source, &one.relation, &one.target));
        let links = links.collect::<Result<_, _>>()?;
        let done = memory.link(caller(cx), links, NameMatch::Alike).await?;
        Ok(Output {
            added: done.added,
            skipped: done.skipped,
            created_entities: done.created,
            notice: sanitizer.notice(),
        })
    }
}
