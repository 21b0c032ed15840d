//! `fs_append`.

use crate::content::encoding::EncodingChoice;
use crate::destination;
use crate::fs_write_text::AppendedText;
use octo_toolkit::fs::{Write, WriteOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Appends text to a file, in the file's own encoding; a missing file is created. Prefer fs_edit to insert elsewhere,
/// fs_write_text to replace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to append to, relative to the workspace.
    path: WorkPath,
    /// Text to append, exactly as given.
    text: String,
    /// Start the text on a new line.
    #[serde(default)]
    newline: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// Number of bytes appended.
    bytes_written: u64,
    /// Size of the whole file.
    size_bytes: u64,
    /// True if the file is new.
    created: bool,
    /// SHA-256 of the whole file, for if_hash of a later change.
    hash: String,
    /// True if fs_undo can revert the change.
    undo: bool,
}

pub struct Append;

impl Tool for Append {
    const NAME: &'static str = "fs_append";
    const TITLE: &'static str = "Append to a file";
    const KEYWORDS: &'static str = "add line end log journal concatenate";
    const REQUESTS: &'static [&'static str] = &[
        "add one more line at the end of notes.txt",
        "log another entry below the existing ones in diary.md",
        "put this row under the last one of the csv file",
        "extend the changelog file at the bottom",
        "tack a sentence on to the file without touching the rest",
        "add .env to the end of .gitignore",
    ];
    const EFFECT: Effect = Effect::writes();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![Example::new("One more line", json!({"path": "notes.txt", "text": "delta\n", "newline": true}))]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            let added =
                AppendedText::prepare(fs, &place, &input.text, EncodingChoice::Detect, input.newline)?;
            let written = fs.append(&place, &added.bytes, &WriteOptions::default());
            let written = written.map_err(|error| destination::missing_parent_error(error, &place))?;
            Ok(Output {
                path: place.display(),
                bytes_written: added.bytes.len() as u64,
                size_bytes: written.stat.size,
                created: written.created,
                hash: written.hash,
                undo: written.undo,
            })
        })
        .await
    }
}
