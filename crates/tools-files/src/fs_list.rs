//! `fs_list`.

use crate::file_walk::top_n::TopN;
use crate::file_walk::unread_notes;
use crate::file_walk::walk_progress::WalkProgress;
use octo_toolkit::fs::{EntryKind, Read, WalkEntry, WalkOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Maximum number of returned entries.
const MAX_ENTRIES: usize = 5_000;

/// Lists a folder, folders first; recursively, ignored folders are listed but not entered. Reports omitted entries.
/// Prefer fs_tree for an overview, fs_glob to find names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Folder to list, relative to the workspace.
    #[serde(default = "WorkPath::here")]
    path: WorkPath,
    /// Also names that start with a dot.
    #[serde(default = "default_true")]
    include_hidden: bool,
    /// Add permissions and modification time.
    #[serde(default)]
    long_format: bool,
    /// Include subfolders, sorted by path.
    #[serde(default)]
    recursive: bool,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The listed folder.
    path: String,
    /// Entries, at most 5000.
    entries: Vec<ListEntry>,
    /// Number of returned entries.
    count: usize,
    /// True if there are more.
    truncated: bool,
    /// Total number of entries.
    total: usize,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct ListEntry {
    /// Name, or path beneath the listed folder.
    name: String,
    /// One of file, directory, symlink and other.
    r#type: &'static str,
    /// Size of a file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Target of a link, as stored in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Permissions such as rw-r--r--; only in the long format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permissions: Option<String>,
    /// Modification time, RFC 3339; only in the long format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// True for what .gitignore or .ignore exclude; only in recursive lists, which do not enter it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

pub struct List;

impl Tool for List {
    const NAME: &'static str = "fs_list";
    const TITLE: &'static str = "List a folder";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The workspace itself", json!({})),
            Example::new("With times and permissions", json!({"path": "src", "long_format": true})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let cx = cx.clone();
        fs.run(move |fs| list(&input, fs, &cx)).await
    }
}

fn list(input: &Input, fs: &Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
    let place = fs.place(&input.path)?;
    fs.open_folder(&place)?;
    let options = WalkOptions {
        hidden: input.include_hidden,
        ignored: !input.recursive,
        tell_ignored: input.recursive,
        max_depth: (!input.recursive).then_some(1),
        ..WalkOptions::default()
    };
    let (pace, found) = (WalkProgress::new(cx), Mutex::new(TopN::new(MAX_ENTRIES)));
    let walked = fs.walk(&place, &options, &|entry| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.add(order(entry, input.recursive), || describe(entry, input.long_format));
        pace.step(entry)
    })?;
    pace.finish()?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (total, truncated) = (found.total(), found.truncated());
    let entries: Vec<ListEntry> = found.into_sorted().map(|(_, entry)| entry).collect();
    Ok(Output {
        path: place.display(),
        count: entries.len(),
        entries,
        truncated,
        total,
        notes: unread_notes(&place, &walked),
    })
}

/// Directories first within one directory; by path across several.
fn order(entry: &WalkEntry<'_>, recursive: bool) -> (bool, PathBuf) {
    (!recursive && entry.kind != EntryKind::Folder, entry.path.to_owned())
}

/// An entry that has vanished is described as far as it is known.
fn describe(entry: &WalkEntry<'_>, long: bool) -> ListEntry {
    let stat = if long || entry.kind == EntryKind::File { entry.stat().ok() } else { None };
    let shown = stat.as_ref().filter(|_| long);
    ListEntry {
        name: entry.path.to_string_lossy().into_owned(),
        r#type: entry.kind.as_str(),
        size: stat.as_ref().filter(|stat| stat.kind == EntryKind::File).map(|stat| stat.size),
        target: (entry.kind == EntryKind::Symlink).then(|| entry.link_target().ok()).flatten(),
        permissions: shown.map(|stat| permissions(stat.mode)),
        modified: shown.map(|stat| stat.modified.to_string()),
        ignored: entry.ignored,
    }
}

/// The nine permission letters of `ls`.
fn permissions(mode: u32) -> String {
    let letters = ['r', 'w', 'x'].iter().cycle().take(9).enumerate();
    letters.map(|(at, letter)| if mode & (0o400 >> at) == 0 { '-' } else { *letter }).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn permissions_are_told_as_ls_does() {
        for (mode, text) in
            [(0o644, "rw-r--r--"), (0o750, "rwxr-x---"), (0o000, "---------"), (0o4777, "rwxrwxrwx")]
        {
            assert_eq!(super::permissions(mode), text);
        }
    }
}
