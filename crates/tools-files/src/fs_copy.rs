//! `fs_copy`.

use crate::destination;
use octo_toolkit::fs::Write;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Copies a file, or a folder with everything in it; an existing destination is refused unless overwrite is set.
/// Prefer fs_move to remove the original.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File or folder to copy, relative to the workspace.
    source: WorkPath,
    /// Path of the copy, including its name.
    destination: WorkPath,
    /// Replace an existing file.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What was copied.
    source: String,
    /// Path of the copy.
    destination: String,
    /// What was overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct Copy;

impl Tool for Copy {
    const NAME: &'static str = "fs_copy";
    const TITLE: &'static str = "Copy files and folders";
    const KEYWORDS: &'static str = "duplicate clone backup cp";
    const REQUESTS: &'static [&'static str] = &[
        "make a duplicate of config.toml as a backup",
        "clone the template folder to a new project directory",
        "have the same file in a second place",
        "keep a spare of the settings before i change them",
        "replicate the docs directory as docs-old",
        "put a copy of logo.png next to the page",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A file", json!({"source": "notes.txt", "destination": "notes-old.txt"}))
                .with_output(json!({"source": "notes.txt", "destination": "notes-old.txt"})),
            Example::new("A folder", json!({"source": "docs", "destination": "docs-old"}))
                .with_output(json!({"source": "docs", "destination": "docs-old"})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| {
            let (from, to) = (fs.place(&input.source)?, fs.place(&input.destination)?);
            let lost = destination::check_destination(fs, &from, &to, input.overwrite)?;
            fs.copy(&from, &to, input.overwrite)
                .map_err(|error| destination::missing_parent_error(error, &to))?;
            Ok(Output {
                source: from.display(),
                destination: to.display(),
                warning: lost.map(|lost| format!("{lost} fs_undo may restore it.")),
            })
        })
        .await
    }
}
