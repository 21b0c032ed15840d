//! `memory_import`.

use crate::document::{self, Format, Graph};
use crate::given::asker;
use octo_toolkit::fs::Read;
use octo_toolkit::memory::{MAX_FACTS, NameMatch};
use octo_toolkit::{CallContext, Effect, Example, Fs, Memory, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Largest file that is read.
const MOST: u64 = 64 << 20;
/// Entities or relations that are written at once.
const PART: usize = 200;
/// Troubles that are told.
const TOLD: usize = 20;

/// Reads entities and relations from a file into the memory: a memory.json document, or the lines of server-memory. What is known
/// already stays as it is; what cannot be read is told. Prefer memory_upsert_entities for a few.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to read, relative to the workspace.
    path: WorkPath,
    /// Form of the file: json, jsonl, or auto to find out.
    #[serde(default = "document::auto")]
    format: Format,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Entities that are new.
    created: u64,
    /// Entities that were known already.
    updated: u64,
    /// Observations that are new.
    observations_added: u64,
    /// Relations that are new.
    relations_added: u64,
    /// Relations that were known already.
    relations_skipped: u64,
    /// How many parts of the file could not be read.
    unreadable: u64,
    /// The first of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<Trouble>,
    /// What was taken out of the texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Trouble {
    /// Line of the file, or number of the entity or relation in a document, counted from 1.
    at: u64,
    /// What is wrong with it.
    why: String,
}

pub struct Import;

impl Tool for Import {
    const NAME: &'static str = "memory_import";
    const TITLE: &'static str = "Import memories";
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = (Memory, Fs<Read>);

    fn examples() -> Vec<Example> {
        vec![Example::new("From the reference server", json!({"path": "memory.jsonl"}))]
    }

    async fn run(
        &self,
        input: Input,
        (memory, fs): (Memory, Fs<Read>),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let mut graph = fs
            .run(move |fs| {
                let place = fs.place(&input.path)?;
                let (bytes, _) = fs.read(&place, MOST)?;
                let text = String::from_utf8(bytes).map_err(|_| {
                    ToolError::invalid(format!("`{}` is no text in UTF-8.", place.display()))
                        .hint("Give a file that memory_export or server-memory has written.")
                })?;
                document::read(&text, input.format, &place.display())
            })
            .await?;
        let mut output = outline(&mut graph);
        let total = (graph.entities.len() + graph.links.len()) as u64;
        let mut done = 0;
        for part in graph.entities.chunks_mut(PART) {
            cx.check()?;
            part.iter_mut().for_each(|entity| entity.facts.truncate(MAX_FACTS));
            for one in memory.upsert(asker(cx), part.to_vec(), NameMatch::Exact).await? {
                output.created += u64::from(one.created);
                output.updated += u64::from(!one.created);
                output.observations_added += one.added;
            }
            done += part.len() as u64;
            cx.progress(done, Some(total), "entities");
        }
        for part in graph.links.chunks(PART) {
            cx.check()?;
            let linked = memory.link(asker(cx), part.to_vec(), NameMatch::Exact).await?;
            output.created += linked.created.len() as u64;
            output.relations_added += linked.added;
            output.relations_skipped += linked.skipped;
            done += part.len() as u64;
            cx.progress(done, Some(total), "relations");
        }
        Ok(output)
    }
}

/// What can be said before anything is written.
fn outline(graph: &mut Graph) -> Output {
    let troubles = std::mem::take(&mut graph.troubles);
    let notice = format!("{} hidden characters were taken out of the texts.", graph.removed);
    Output {
        created: 0,
        updated: 0,
        observations_added: 0,
        relations_added: 0,
        relations_skipped: 0,
        unreadable: troubles.len() as u64,
        troubles: troubles
            .into_iter()
            .take(TOLD)
            .map(|trouble| Trouble { at: trouble.at, why: trouble.why })
            .collect(),
        notice: (graph.removed > 0).then_some(notice),
    }
}
