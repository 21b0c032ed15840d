//! `fs_move`.

use crate::destination;
use octo_toolkit::fs::Write;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Moves or renames a file or folder; an existing destination is refused unless overwrite is set. Prefer fs_copy to
/// keep the original.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File or folder to move, relative to the workspace.
    source: WorkPath,
    /// New path, including the name.
    destination: WorkPath,
    /// Replace an existing file.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Old path.
    source: String,
    /// New path.
    destination: String,
    /// True if fs_undo can revert the move.
    undo: bool,
    /// What was overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct Move;

impl Tool for Move {
    const NAME: &'static str = "fs_move";
    const TITLE: &'static str = "Move or rename";
    const KEYWORDS: &'static str = "rename mv relocate";
    const REQUESTS: &'static [&'static str] = &[
        "rename notes.txt to ideas.txt",
        "put the report into the archive folder",
        "relocate the images directory to assets",
        "give the file another name",
        "shift all of src/old to src/legacy",
        "tidy up: bring the loose file to where it belongs",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Rename a file", json!({"source": "notes.txt", "destination": "docs/notes.txt"}))
                .with_output(json!({"source": "notes.txt", "destination": "docs/notes.txt", "undo": true})),
            Example::new(
                "Replace another file",
                json!({"source": "README.md", "destination": "docs/guide.md", "overwrite": true}),
            ),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let (from, to) = (fs.place(&input.source)?, fs.place(&input.destination)?);
            let lost = destination::check_destination(fs, &from, &to, input.overwrite)?;
            let undo = fs
                .rename(&from, &to, input.overwrite)
                .map_err(|error| destination::missing_parent_error(error, &to))?;
            let back = if undo { "fs_undo can restore it." } else { "It cannot be restored." };
            Ok(Output {
                source: from.display(),
                destination: to.display(),
                undo,
                warning: lost.map(|lost| format!("{lost} {back}")),
            })
        })
        .await
    }
}
