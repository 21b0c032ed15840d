//! `fs_tree`.

mod tree_collect;
mod tree_render;

use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Upper limit for max_depth.
const MAX_DEPTH: usize = 32;

/// Draws a folder as a tree with line counts, to estimate the cost of reading; large and ignored folders are folded.
/// Prefer fs_list for sizes and times, fs_glob to find names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Folder to draw, relative to the workspace.
    #[serde(default = "WorkPath::here")]
    path: WorkPath,
    /// Number of levels to draw; 1 shows only the folder's direct entries.
    #[serde(default = "max_depth")]
    max_depth: usize,
    /// Also names that start with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Only folders.
    #[serde(default)]
    dirs_only: bool,
}

fn max_depth() -> usize {
    3
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The tree: one line for each entry, indented by its depth; folders end with a slash.
    tree: String,
    /// Files within the drawn levels, without ignored ones.
    files: usize,
    /// Folders within the drawn levels, without ignored ones.
    directories: usize,
    /// True if entries were folded or omitted within the drawn levels.
    truncated: bool,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Tree;

impl Tool for Tree {
    const NAME: &'static str = "fs_tree";
    const TITLE: &'static str = "Draw a folder as a tree";
    const KEYWORDS: &'static str = "directory structure hierarchy overview project layout";
    const REQUESTS: &'static [&'static str] = &[
        "draw the project layout",
        "get a picture of the folder structure, three levels deep",
        "how is this repository organised",
        "only the directories, nested and indented",
        "overview of modules with their number of lines",
        "unknown codebase: what is where",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The workspace", json!({})),
            Example::new("Only folders, five levels", json!({"max_depth": 5, "dirs_only": true})),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let cut = if output.truncated { " (entries were folded or omitted)" } else { "" };
        ModelText::new()
            .line(format_args!(
                "{}, {}{cut}",
                counted(output.files, "file", "files"),
                counted(output.directories, "folder", "folders")
            ))
            .lines(output.notes.iter().map(|note| format!("note: {note}")))
            .rest(&output.tree)
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let cx = cx.clone();
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            let plan = tree_collect::TreeOptions {
                depth: input.max_depth.clamp(1, MAX_DEPTH),
                hidden: input.include_hidden,
                files: !input.dirs_only,
            };
            let grown = tree_collect::collect(fs, &place, &plan, &cx)?;
            let drawing = tree_render::render(fs, &place, &grown, &cx)?;
            Ok(Output {
                tree: drawing.text,
                files: grown.files,
                directories: grown.folders,
                truncated: drawing.truncated || grown.truncated,
                notes: grown.notes,
            })
        })
        .await
    }
}
