//! What a tree is drawn from: a walk, gathered by folder.

use crate::find::pace::Pace;
use crate::find::unread;
use octo_toolkit::fs::{EntryKind, Read, Step, WalkEntry, WalkOptions};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// After so many entries the walk ends; nobody reads a larger tree.
const MOST: usize = 200_000;

pub struct Plan {
    pub depth: usize,
    pub hidden: bool,
    pub files: bool,
}

/// One folder's part of the tree.
#[derive(Default)]
pub struct Branch {
    /// Folders first, each kind by name.
    pub children: BTreeMap<(bool, OsString), Leaf>,
    pub files: usize,
    pub folders: usize,
    /// What the ignore rules leave out, by name; folders with a slash.
    pub ignored: Vec<String>,
}

pub struct Leaf {
    pub kind: EntryKind,
    pub size: u64,
    pub target: Option<String>,
}

#[derive(Default)]
pub struct Grown {
    pub branches: HashMap<PathBuf, Branch>,
    /// Within the drawn levels.
    pub files: usize,
    pub folders: usize,
    entries: usize,
    /// The walk was ended early.
    pub cut: bool,
    pub notes: Vec<String>,
}

/// Walks one level deeper than is drawn, to tell how much is in the deepest folders.
pub fn grow(fs: &Fs<Read>, place: &RootedPath, plan: &Plan, cx: &CallContext) -> Result<Grown, ToolError> {
    fs.open_folder(place)?;
    let options = WalkOptions {
        hidden: plan.hidden,
        tell_ignored: true,
        max_depth: Some(plan.depth + 1),
        ..WalkOptions::default()
    };
    let (pace, grown) = (Pace::new(cx), Mutex::new(Grown::default()));
    let walked = fs.walk(place, &options, &|entry| {
        let leaf = (entry.depth <= plan.depth && !entry.ignored).then(|| leaf(entry, plan));
        let mut grown = grown.lock().unwrap_or_else(PoisonError::into_inner);
        grown.add(entry, leaf.flatten(), entry.depth <= plan.depth);
        if grown.entries >= MOST {
            grown.cut = true;
            return Step::Stop;
        }
        pace.step(entry)
    })?;
    pace.finish()?;
    let mut grown = grown.into_inner().unwrap_or_else(PoisonError::into_inner);
    grown.notes = unread(place, &walked);
    if grown.cut {
        grown.notes.push(format!("Only {MOST} entries were looked at; draw a folder further down."));
    }
    Ok(grown)
}

fn leaf(entry: &WalkEntry<'_>, plan: &Plan) -> Option<Leaf> {
    if !plan.files && entry.kind != EntryKind::Folder {
        return None;
    }
    let size = if entry.kind == EntryKind::File { entry.stat().map_or(0, |stat| stat.size) } else { 0 };
    let target = (entry.kind == EntryKind::Symlink).then(|| entry.link_target().ok()).flatten();
    Some(Leaf { kind: entry.kind, size, target })
}

impl Grown {
    fn add(&mut self, entry: &WalkEntry<'_>, leaf: Option<Leaf>, drawn: bool) {
        self.entries += 1;
        let (folder, name) =
            (entry.path.parent().unwrap_or(Path::new("")), entry.path.file_name().unwrap_or_default());
        let is_folder = entry.kind == EntryKind::Folder;
        if !self.branches.contains_key(folder) {
            self.branches.insert(folder.to_owned(), Branch::default());
        }
        let Some(branch) = self.branches.get_mut(folder) else { return };
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
