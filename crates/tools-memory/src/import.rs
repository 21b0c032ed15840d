//! `memory_import`.

use crate::input_validation::caller;
use crate::memory_file::{self, Format, Graph};
use octo_toolkit::fs::Read;
use octo_toolkit::memory::{MAX_FACTS, NameMatch};
use octo_toolkit::{CallContext, Effect, Example, Fs, Memory, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Entities or relations per batch.
const BATCH_SIZE: usize = 200;
/// Maximum reported issues.
const MAX_REPORTED_ISSUES: usize = 20;

/// Reads entities and relations from a file into the memory: a memory.json document, or the lines of server-memory.
/// Known entries are unchanged; unreadable parts are reported. Prefer memory_upsert_entities for a few.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to read, relative to the workspace.
    path: WorkPath,
    /// Format of the file: json, jsonl, or auto to detect it.
    #[serde(default = "memory_file::default_format")]
    format: Format,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// New entities.
    created: u64,
    /// Entities that were already known.
    updated: u64,
    /// New observations.
    observations_added: u64,
    /// New relations.
    relations_added: u64,
    /// Relations that were already known.
    relations_skipped: u64,
    /// Number of parts of the file that could not be read.
    unreadable: u64,
    /// The first of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<ReportedIssue>,
    /// What was removed from the texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ReportedIssue {
    /// Line of the file, or number of the entity or relation in a document, counted from 1.
    at: u64,
    /// What is wrong with it.
    reason: String,
}

pub struct Import;

impl Tool for Import {
    const NAME: &'static str = "memory_import";
    const TITLE: &'static str = "Import memories";
    const KEYWORDS: &'static str = "restore load knowledge backup";
    const REQUESTS: &'static [&'static str] = &[
        "load the knowledge from memory.json",
        "restore remembered facts from a backup file",
        "take over the notes of another assistant from a jsonl file",
        "bring an old knowledge graph in from disk",
        "read entities from a file to remember them all",
        "migrate the long-term notes from server-memory",
    ];
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
                let (bytes, _) = fs.read(&place, MAX_FILE_BYTES)?;
                let text = String::from_utf8(bytes).map_err(|_| {
                    ToolError::invalid(format!("`{}` is not UTF-8 text.", place.display()))
                        .hint("Use a file written by memory_export or server-memory.")
                })?;
                memory_file::read(&text, input.format, &place.display())
            })
            .await?;
        let mut output = initial_output(&mut graph);
        let total = (graph.entities.len() + graph.links.len()) as u64;
        let mut done = 0;
        for part in graph.entities.chunks_mut(BATCH_SIZE) {
            cx.check()?;
            part.iter_mut().for_each(|entity| entity.facts.truncate(MAX_FACTS));
            for one in memory.upsert(caller(cx), part.to_vec(), NameMatch::Exact).await? {
                output.created += u64::from(one.created);
                output.updated += u64::from(!one.created);
                output.observations_added += one.added;
            }
            done += part.len() as u64;
            cx.progress(done, Some(total), "entities");
        }
        for part in graph.links.chunks(BATCH_SIZE) {
            cx.check()?;
            let linked = memory.link(caller(cx), part.to_vec(), NameMatch::Exact).await?;
            output.created += linked.created.len() as u64;
            output.relations_added += linked.added;
            output.relations_skipped += linked.skipped;
            done += part.len() as u64;
            cx.progress(done, Some(total), "relations");
        }
        Ok(output)
    }
}

/// Output before anything is written.
fn initial_output(graph: &mut Graph) -> Output {
    let issues = std::mem::take(&mut graph.issues);
    let notice = format!("Removed {} hidden characters from the texts.", graph.removed_chars);
    Output {
        created: 0,
        updated: 0,
        observations_added: 0,
        relations_added: 0,
        relations_skipped: 0,
        unreadable: issues.len() as u64,
        troubles: issues
            .into_iter()
            .take(MAX_REPORTED_ISSUES)
            .map(|trouble| ReportedIssue { at: trouble.position, reason: trouble.reason })
            .collect(),
        notice: (graph.removed_chars > 0).then_some(notice),
    }
}
