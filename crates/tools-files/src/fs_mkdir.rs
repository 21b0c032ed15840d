//! `fs_mkdir`.

use octo_toolkit::fs::{EntryKind, Write};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Makes a folder and, by default, its parent folders; an existing one is fine. Prefer mkdirs of fs_write_text if a
/// file follows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Folder to make, relative to the workspace.
    path: WorkPath,
    /// Make missing parent folders as well.
    #[serde(default = "default_true")]
    parents: bool,
    /// Accept an existing folder.
    #[serde(default = "default_true")]
    exist_ok: bool,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The folder.
    path: String,
    /// False if it already existed.
    created: bool,
}

pub struct MakeFolder;

impl Tool for MakeFolder {
    const NAME: &'static str = "fs_mkdir";
    const TITLE: &'static str = "Make a folder";
    const KEYWORDS: &'static str = "create directory make new folder";
    const REQUESTS: &'static [&'static str] = &[
        "create a new folder for the reports",
        "make the directory reports/2026/logs with its parents",
        "set up an empty subfolder called archive",
        "i need a place to put the exported pictures",
        "ensure the output directory exists",
        "prepare a nested path before files go in",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A folder with those above it", json!({"path": "reports/2026/logs"}))
                .with_output(json!({"path": "reports/2026/logs", "created": true})),
            Example::new("One that is there already", json!({"path": "docs"}))
                .with_output(json!({"path": "docs", "created": false})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            let path = place.display();
            if let Ok(stat) = fs.stat(&place) {
                return match stat.kind {
                    EntryKind::Folder if input.exist_ok => Ok(Output { path, created: false }),
                    EntryKind::Folder => {
                        Err(ToolError::new(Kind::Conflict, format!("`{path}` already exists."))
                            .hint("Set exist_ok to true to accept that, or use another name."))
                    }
                    _ => Err(ToolError::new(
                        Kind::Conflict,
                        format!("`{path}` exists and is not a directory."),
                    )
                    .hint("Use another name, or move the file away with fs_move.")),
                };
            }
            let created = fs.make_folder(&place, input.parents)?;
            Ok(Output { path, created })
        })
        .await
    }
}
