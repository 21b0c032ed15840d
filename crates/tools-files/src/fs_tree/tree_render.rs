//! Rendering of the tree: indented lines, with the cost of reading each file.

use super::tree_collect::{CollectedTree, EntryNode, FolderNode};
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum entries per directory; the rest are folded.
const MAX_PER_FOLDER: usize = 100;
/// Maximum lines of the whole tree.
const MAX_LINES: usize = 2_000;
/// Maximum ignored names listed per directory.
const MAX_IGNORED_NAMES: usize = 6;
/// Lines are counted in files up to this size, and until their total reaches the second figure.
const MAX_COUNTED_FILE_BYTES: u64 = 1 << 20;
const MAX_COUNTED_TOTAL_BYTES: u64 = 32 << 20;

pub struct RenderedTree {
    pub text: String,
    /// Entries were omitted.
    pub truncated: bool,
}

struct TreeRenderer<'a> {
    fs: &'a Fs<Read>,
    place: &'a RootedPath,
    tree: &'a CollectedTree,
    cx: &'a CallContext,
    text: String,
    lines: usize,
    truncated: bool,
    count_budget: u64,
}

pub fn render(
    fs: &Fs<Read>,
    place: &RootedPath,
    grown: &CollectedTree,
    cx: &CallContext,
) -> Result<RenderedTree, ToolError> {
    let mut pen = TreeRenderer {
        fs,
        place,
        tree: grown,
        cx,
        text: String::new(),
        lines: 0,
        truncated: false,
        count_budget: MAX_COUNTED_TOTAL_BYTES,
    };
    let root = Path::new("");
    let inside = grown.nodes.get(root).map(counts).unwrap_or_else(|| "empty".to_owned());
    pen.line(0, &format!("{}/ ({inside})", place.display().trim_end_matches('/')));
    pen.folder(root, 1)?;
    Ok(RenderedTree { text: pen.text, truncated: pen.truncated })
}

impl TreeRenderer<'_> {
    fn line(&mut self, depth: usize, what: &str) {
        // A name may contain a line break; a line of the tree must not.
        let what = what.replace(char::is_control, "\u{fffd}");
        let _ = writeln!(self.text, "{:indent$}{what}", "", indent = 2 * depth);
        self.lines += 1;
    }

    fn folder(&mut self, path: &Path, depth: usize) -> Result<(), ToolError> {
        self.cx.check()?;
        let Some(branch) = self.tree.nodes.get(path) else { return Ok(()) };
        let mut shown = 0;
        for ((_, name), leaf) in branch.children.iter().take(MAX_PER_FOLDER) {
            if self.lines >= MAX_LINES {
                break;
            }
            shown += 1;
            let path = path.join(name);
            let said = self.describe(&path, leaf);
            self.line(depth, &format!("{}{said}", name.to_string_lossy()));
            if leaf.kind == EntryKind::Folder {
                self.folder(&path, depth + 1)?;
            }
        }
        if shown < branch.children.len() {
            self.truncated = true;
            self.line(depth, &format!("… {} more", branch.children.len() - shown));
        }
        if shown > 0 || branch.children.is_empty() {
            self.ignored(branch, depth);
        }
        Ok(())
    }

    fn ignored(&mut self, branch: &FolderNode, depth: usize) {
        if branch.ignored.is_empty() {
            return;
        }
        let mut names = branch.ignored.clone();
        names.sort();
        let more = if names.len() > MAX_IGNORED_NAMES { ", …" } else { "" };
        names.truncate(MAX_IGNORED_NAMES);
        self.line(depth, &format!("… {} ignored: {}{more}", branch.ignored.len(), names.join(", ")));
    }

    fn describe(&mut self, path: &PathBuf, leaf: &EntryNode) -> String {
        match leaf.kind {
            EntryKind::Folder => {
                let inside = self.tree.nodes.get(path).map(counts);
                format!("/ ({})", inside.unwrap_or_else(|| "empty".to_owned()))
            }
            EntryKind::File => match self.count_lines(path, leaf.size) {
                Some(1) => "  1 line".to_owned(),
                Some(lines) => format!("  {lines} lines"),
                None => format!("  {}", size(leaf.size)),
            },
            EntryKind::Symlink => format!(" -> {}", leaf.target.as_deref().unwrap_or("?")),
            EntryKind::Other => "  (not a file)".to_owned(),
        }
    }

    /// Number of lines of a text file that is not too large.
    fn count_lines(&mut self, path: &Path, size: u64) -> Option<usize> {
        if size > MAX_COUNTED_FILE_BYTES || size > self.count_budget {
            return None;
        }
        self.count_budget -= size;
        let (bytes, _) = self.fs.read(&self.place.join(path), MAX_COUNTED_FILE_BYTES).ok()?;
        if bytes.contains(&0) {
            return None;
        }
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        Some(ends + usize::from(bytes.last().is_some_and(|last| *last != b'\n')))
    }
}

fn counts(branch: &FolderNode) -> String {
    let many = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        some => Some(format!("{some} {more}")),
    };
    let said = [
        many(branch.folders, "folder", "folders"),
        many(branch.files, "file", "files"),
        many(branch.ignored.len(), "ignored", "ignored"),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
