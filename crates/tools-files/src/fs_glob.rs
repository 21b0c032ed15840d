//! `fs_glob`.

use crate::file_walk::glob_pattern::{GlobPattern, matches_hidden};
use crate::file_walk::top_n::TopN;
use crate::file_walk::walk_progress::WalkProgress;
use crate::file_walk::{display_path, unread_notes};
use octo_toolkit::fs::{EntryKind, Read, Step, WalkOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Upper limit for max_results.
const MAX_PATHS: usize = 20_000;

/// Finds files by name or path pattern, sorted, without ignored and hidden ones; an empty list means no match. Prefer
/// fs_search to find text inside files, fs_tree for an overview.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Pattern such as *.rs (a name at any depth), src/**/*.ts or {a,b}.txt; relative to path.
    pattern: String,
    /// Folder to look in, relative to the workspace.
    #[serde(default = "WorkPath::here")]
    path: WorkPath,
    /// Maximum number of paths, up to 20000.
    #[serde(default = "max_results")]
    max_results: usize,
    /// What to find: file, directory or any.
    #[serde(default)]
    kind: EntryFilter,
    /// Also names that start with a dot; true by default if the pattern has such a name.
    #[serde(default)]
    hidden: Option<bool>,
    /// Also what .gitignore and .ignore exclude.
    #[serde(default)]
    ignored: bool,
}

fn max_results() -> usize {
    1000
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EntryFilter {
    #[default]
    File,
    Directory,
    Any,
}

impl EntryFilter {
    fn takes(self, kind: EntryKind) -> bool {
        match self {
            Self::File => kind == EntryKind::File,
            Self::Directory => kind == EntryKind::Folder,
            Self::Any => true,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Matching paths, sorted; pass them to other tools unchanged.
    paths: Vec<String>,
    /// True if there are more than were returned.
    truncated: bool,
    /// Total number of matches.
    total: usize,
    /// What was skipped or could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct GlobFiles;

impl Tool for GlobFiles {
    const NAME: &'static str = "fs_glob";
    const TITLE: &'static str = "Find files by name";
    const KEYWORDS: &'static str = "locate find files by name extension wildcard pattern";
    const REQUESTS: &'static [&'static str] = &[
        "where are all the python files",
        "is there a file called docker-compose.yml somewhere",
        "which files end in .csv under data",
        "find paths like src/**/*.test.ts",
        "locate a document by a part of its filename",
        "find directories named migrations",
        "all markdown files in the project by name",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("All Rust files", json!({"pattern": "**/*.rs"})),
            Example::new(
                "Text files in a folder, at most ten",
                json!({"pattern": "*.txt", "path": ".", "max_results": 10}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let shown = output.paths.len();
        let more = if shown < output.total { format!(", {shown} shown") } else { String::new() };
        ModelText::new()
            .line(format_args!("{} found{more}", output.total))
            .lines(output.notes.iter().map(|note| format!("note: {note}")))
            .lines(&output.paths)
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let cx = cx.clone();
        fs.run(move |fs| find(&input, fs, &cx)).await
    }
}

fn find(input: &Input, fs: &Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
    let glob = GlobPattern::parse(&input.pattern)?;
    let place = fs.place(&input.path)?;
    let options = WalkOptions {
        hidden: input.hidden.unwrap_or_else(|| matches_hidden(&input.pattern)),
        ignored: input.ignored,
        ..WalkOptions::default()
    };
    let (pace, found) = (WalkProgress::new(cx), Mutex::new(TopN::new(input.max_results.min(MAX_PATHS))));
    let walked = fs.walk(&place, &options, &|entry| {
        let name = match entry.depth {
            0 => place.relative().file_name().map_or(entry.path, Path::new),
            _ => entry.path,
        };
        if input.kind.takes(entry.kind) && glob.matches(name) {
            found.lock().unwrap_or_else(PoisonError::into_inner).add(entry.path.to_owned(), || ());
        }
        match pace.step(entry) {
            Step::Continue if entry.kind == EntryKind::Folder && !glob.may_match_below(entry.path) => {
                Step::Skip
            }
            step => step,
        }
    })?;
    pace.finish()?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (total, truncated) = (found.total(), found.truncated());
    let mut notes = unread_notes(&place, &walked);
    if total == 0 && !(options.hidden && options.ignored) {
        notes.push(
            "Ignored and hidden files were skipped; set ignored and hidden to include them.".to_owned(),
        );
    }
    Ok(Output {
        paths: found.into_sorted().map(|(path, ())| display_path(&place, &path)).collect(),
        truncated,
        total,
        notes,
    })
}
