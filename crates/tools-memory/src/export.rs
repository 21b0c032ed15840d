//! `memory_export`.

use crate::input_validation::caller;
use crate::memory_file::{self, Format, GraphWriter};
use octo_toolkit::fs::{Write, WriteOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, Memory, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 64 << 20;
/// Entities per batch.
const BATCH_SIZE: usize = 500;

/// Writes everything in the memory to a file: a memory.json document, or lines that server-memory reads; an existing
/// file is replaced. Prefer memory_query to look something up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to write, relative to the workspace.
    path: WorkPath,
    /// Format of the file: json, jsonl, or auto to go by its extension.
    #[serde(default = "memory_file::default_format")]
    format: Format,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file that was written.
    path: String,
    /// Number of entities.
    entities: u64,
    /// Number of relations.
    relations: u64,
    /// Size of the file.
    size_bytes: u64,
    /// True if the file is new.
    created: bool,
    /// True if fs_undo can restore the replaced file.
    undo: bool,
}

pub struct Export;

impl Tool for Export {
    const NAME: &'static str = "memory_export";
    const TITLE: &'static str = "Export the memory";
    const KEYWORDS: &'static str = "backup dump save knowledge";
    const REQUESTS: &'static [&'static str] = &[
        "back up all that you remember into a file",
        "save the knowledge graph as memory.json",
        "dump the stored facts to disk",
        "i want to take your memory to another machine",
        "write all entities and links out as jsonl",
        "make an archive of the long-term notes",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = (Memory, Fs<Write>);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("One document", json!({"path": "memory.json"})),
            Example::new("For the reference server", json!({"path": "memory.jsonl"})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (memory, fs): (Memory, Fs<Write>),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let lines = match input.format {
            Format::Auto => input.path.as_str().ends_with(".jsonl"),
            format => format == Format::Jsonl,
        };
        let mut writer = GraphWriter::new(lines, MAX_FILE_BYTES);
        let (mut entities, mut after) = (0, Some(0));
        while let Some(from) = after {
            cx.check()?;
            let dump = memory.dump(caller(cx), from, BATCH_SIZE).await?;
            for known in &dump.entities {
                writer.add(known)?;
            }
            entities += dump.entities.len() as u64;
            cx.progress(entities, None, "entities");
            after = dump.next;
        }
        let relations = writer.relations;
        let text = writer.finish()?;
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            let written = fs.write(&place, text.as_bytes(), &WriteOptions::default())?;
            Ok(Output {
                path: place.display(),
                entities,
                relations,
                size_bytes: written.stat.size,
                created: written.created,
                undo: written.undo,
            })
        })
        .await
    }
}
