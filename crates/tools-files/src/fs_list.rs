//! `fs_list`.

use crate::file_walk::top_n::TopN;
use crate::file_walk::unread_notes;
use crate::file_walk::walk_progress::WalkProgress;
use octo_toolkit::fs::{EntryKind, Read, WalkEntry, WalkOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath, counted};
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
    const KEYWORDS: &'static str = "ls dir directory contents browse show files";
    const REQUESTS: &'static [&'static str] = &[
        "what is in the downloads folder",
        "show the contents of this directory with sizes",
        "ls -la of the src folder",
        "which files are here, and when was each modified",
        "see hidden files in the current folder",
        "all entries of a directory including its subfolders",
    ];
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

    fn text(output: &Output) -> Option<String> {
        let shown = if output.count < output.total { format!("{} of ", output.count) } else { String::new() };
        let cut = if output.truncated { " (truncated)" } else { "" };
        ModelText::new()
            .line(format_args!("{}: {shown}{}{cut}", output.path, counted(output.total, "entry", "entries")))
            .lines(output.notes.iter().map(|note| format!("note: {note}")))
            .lines(output.entries.iter().map(entry_line))
            .finish()
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

/// The name, with a slash for a folder, then the size of a file.
fn entry_line(entry: &ListEntry) -> String {
    let mut line = match entry.r#type {
        "directory" => format!("  {}/", entry.name),
        _ => format!("  {}", entry.name),
    };
    if !matches!(entry.r#type, "directory" | "file" | "symlink") {
        line.push_str(&format!(" ({})", entry.r#type));
    }
    let target = entry.target.iter().map(|target| format!(" -> {target}"));
    let size = entry.size.iter().map(|size| format!(" {size}"));
    let others = entry.permissions.iter().chain(&entry.modified).map(|word| format!(" {word}"));
    let ignored = entry.ignored.then(|| " (ignored)".to_owned());
    line.extend(target.chain(size).chain(others).chain(ignored));
    line
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
    use super::*;

    #[test]
    fn the_text_has_a_line_for_each_entry() {
        let entry = |name: &str, r#type| ListEntry {
            name: name.to_owned(),
            r#type,
            size: None,
            target: None,
            permissions: None,
            modified: None,
            ignored: false,
        };
        let entries = vec![
            ListEntry { ignored: true, ..entry("d", "directory") },
            ListEntry { size: Some(7), permissions: Some("rw-r--r--".to_owned()), ..entry("f", "file") },
            ListEntry { target: Some("f".to_owned()), ..entry("l", "symlink") },
            entry("p", "other"),
        ];
        let output = Output {
            path: "src".to_owned(),
            entries,
            count: 4,
            truncated: true,
            total: 9,
            notes: Vec::new(),
        };
        let wanted =
            "src: 4 of 9 entries (truncated)\n  d/ (ignored)\n  f 7 rw-r--r--\n  l -> f\n  p (other)";
        assert_eq!(List::text(&output).as_deref(), Some(wanted));
    }

    #[test]
    fn permissions_are_told_as_ls_does() {
        for (mode, text) in
            [(0o644, "rw-r--r--"), (0o750, "rwxr-x---"), (0o000, "---------"), (0o4777, "rwxrwxrwx")]
        {
            assert_eq!(permissions(mode), text);
        }
    }
}
