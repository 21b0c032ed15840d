//! Data of a tree: a walk, grouped by directory.

use crate::file_walk::unread_notes;
use crate::file_walk::walk_progress::WalkProgress;
use octo_toolkit::fs::{EntryKind, Read, Step, WalkEntry, WalkOptions};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The walk stops after this many entries; a larger tree is useless.
const MAX_ENTRIES: usize = 200_000;

pub struct TreeOptions {
    pub depth: usize,
    pub hidden: bool,
    pub files: bool,
}

/// One directory of the tree.
#[derive(Default)]
pub struct FolderNode {
    /// Directories first, each type by name.
    pub children: BTreeMap<(bool, OsString), EntryNode>,
    pub files: usize,
    pub folders: usize,
    /// Ignored entries by name; directories with a slash.
    pub ignored: Vec<String>,
}

pub struct EntryNode {
    pub kind: EntryKind,
    pub size: u64,
    pub target: Option<String>,
}

#[derive(Default)]
pub struct CollectedTree {
    pub nodes: HashMap<PathBuf, FolderNode>,
    /// Within the drawn levels.
    pub files: usize,
    pub folders: usize,
    entries: usize,
    /// The walk was stopped early.
    pub truncated: bool,
    pub notes: Vec<String>,
}

/// Walks one level deeper than is drawn, to count the contents of the deepest directories.
pub fn collect(
    fs: &Fs<Read>,
    place: &RootedPath,
    plan: &TreeOptions,
    cx: &CallContext,
) -> Result<CollectedTree, ToolError> {
    fs.open_folder(place)?;
    let options = WalkOptions {
        hidden: plan.hidden,
        tell_ignored: true,
        max_depth: Some(plan.depth + 1),
        ..WalkOptions::default()
    };
    let (pace, grown) = (WalkProgress::new(cx), Mutex::new(CollectedTree::default()));
    let walked = fs.walk(place, &options, &|entry| {
        let leaf = (entry.depth <= plan.depth && !entry.ignored).then(|| leaf(entry, plan));
        let mut grown = grown.lock().unwrap_or_else(PoisonError::into_inner);
        grown.add(entry, leaf.flatten(), entry.depth <= plan.depth);
        if grown.entries >= MAX_ENTRIES {
            grown.truncated = true;
            return Step::Stop;
        }
        pace.step(entry)
    })?;
    pace.finish()?;
    let mut grown = grown.into_inner().unwrap_or_else(PoisonError::into_inner);
    grown.notes = unread_notes(place, &walked);
    if grown.truncated {
        grown.notes.push(format!("The walk stopped after {MAX_ENTRIES} entries; use a subdirectory."));
    }
    Ok(grown)
}

fn leaf(entry: &WalkEntry<'_>, plan: &TreeOptions) -> Option<EntryNode> {
    if !plan.files && entry.kind != EntryKind::Folder {
        return None;
    }
    let size = if entry.kind == EntryKind::File { entry.stat().map_or(0, |stat| stat.size) } else { 0 };
    let target = (entry.kind == EntryKind::Symlink).then(|| entry.link_target().ok()).flatten();
    Some(EntryNode { kind: entry.kind, size, target })
}

impl CollectedTree {
    fn add(&mut self, entry: &WalkEntry<'_>, leaf: Option<EntryNode>, drawn: bool) {
        self.entries += 1;
        let (folder, name) =
            (entry.path.parent().unwrap_or(Path::new("")), entry.path.file_name().unwrap_or_default());
        let is_folder = entry.kind == EntryKind::Folder;
        if !self.nodes.contains_key(folder) {
            self.nodes.insert(folder.to_owned(), FolderNode::default());
        }
        let Some(branch) = self.nodes.get_mut(folder) else { return };
        if entry.ignored {
            branch.ignored.push(format!("{}{}", name.to_string_lossy(), if is_folder { "/" } else { "" }));
            return;
        }
        branch.folders += usize::from(is_folder);
        branch.files += usize::from(!is_folder);
        if drawn {
            self.folders += usize::from(is_folder);
            self.files += usize::from(!is_folder);
        }
        if let Some(leaf) = leaf {
            branch.children.insert((!is_folder, name.to_owned()), leaf);
        }
    }
}
