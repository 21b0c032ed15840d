//! Plan of a patch for several files: every file before and after, computed before anything is written.

use super::apply_hunks::{self, AppliedPatch};
use super::patch_paths;
use super::unified_parser::{FilePatch, LineKind};
use crate::content::content_hash;
use crate::content::encoding::DecodedText;
use crate::content::unified_diff;
use crate::fs_edit;
use octo_toolkit::fs::{Change, Write, WriteOptions};
use octo_toolkit::{Fs, Kind, RootedPath, ToolError};

/// A file that the patch changes. If it occurs twice, it is one file.
pub struct PlannedFile {
    place: RootedPath,
    before: Option<FileContent>,
    after: Option<FileContent>,
}

#[derive(Clone, PartialEq, Eq)]
struct FileContent {
    bytes: Vec<u8>,
    mode: Option<u32>,
}

/// Result for one file, for the reply.
pub struct FileResult {
    pub path: String,
    pub from: Option<String>,
    pub status: &'static str,
    pub hunks: usize,
    pub applied: AppliedPatch,
}

/// How names in the patch are resolved.
pub enum PatchScope {
    /// All names denote this file.
    File(RootedPath),
    /// Names are relative to this directory.
    Folder(RootedPath),
}

#[derive(Default)]
pub struct PatchPlan {
    planned: Vec<PlannedFile>,
    pub results: Vec<FileResult>,
    /// Old and new indices of renamed files in `planned`.
    renames: Vec<(usize, usize)>,
    /// Files that were replaced by others.
    pub replaced: Vec<String>,
}

pub fn plan(fs: &Fs<Write>, scope: &PatchScope, patches: &[FilePatch]) -> Result<PatchPlan, ToolError> {
    if let (PatchScope::File(place), true) =
        (scope, patches.len() != 1 || patches.iter().any(|patch| patch.renames))
    {
        return Err(ToolError::invalid(format!(
            "The patch changes several files or renames one, but `{}` is a single file.",
            place.display()
        ))
        .hint("Use as path the directory that the names in the patch are relative to, such as \".\"."));
    }
    let mut plan = PatchPlan::default();
    for patch in patches {
        plan.add(fs, scope, patch)?;
    }
    Ok(plan)
}

impl PatchPlan {
    fn add(&mut self, fs: &Fs<Write>, scope: &PatchScope, patch: &FilePatch) -> Result<(), ToolError> {
        let from = self.slot(fs, &find(scope, self.target_name(fs, scope, patch))?)?;
        let to = match patch.renames {
            true => self.slot(fs, &find(scope, patch.new.as_deref())?)?,
            false => from,
        };
        let told = |plan: &Self, at: usize| {
            plan.planned.get(at).map(|slot| slot.place.display()).unwrap_or_default()
        };
        let (path, source) = (told(self, to), told(self, from));
        let had = self.planned.get(from).and_then(|slot| slot.after.clone());
        let (content, applied) = apply_to_file(had.as_ref(), patch, &source)?;
        let status = match () {
            () if patch.deletes => "deleted",
            () if patch.renames => "renamed",
            () if had.is_none() => "created",
            () => "modified",
        };
        if patch.renames {
            let taken = self.planned.get(to).is_some_and(|slot| slot.after.is_some()) && to != from;
            if taken && !patch.ignores_old_content {
                return Err(conflict(format!(
                    "The patch renames `{source}` to `{path}`, which already exists."
                ))
                .hint("Move or delete that file first, or omit the rename."));
            }
            self.set_after(from, None);
            self.renames.push((from, to));
            self.replaced.extend(taken.then(|| path.clone()));
        }
        self.replaced.extend((patch.creates && had.is_some()).then(|| path.clone()));
        self.set_after(to, content);
        let from = patch.renames.then_some(source);
        self.results.push(FileResult { path, from, status, hunks: patch.hunks.len(), applied });
        Ok(())
    }

    /// The file to change. Of two names it is the one that exists, has fewer directories and is shorter, as in
    /// `patch`: after `diff -u f.orig f` that is `f`.
    fn target_name<'p>(&self, fs: &Fs<Write>, scope: &PatchScope, patch: &'p FilePatch) -> Option<&'p str> {
        let (old, new) = (patch.old.as_deref(), patch.new.as_deref());
        let (Some(one), Some(other), PatchScope::Folder(folder)) = (old, new, scope) else {
            return old.or(new);
        };
        if patch.renames || one == other {
            return old;
        }
        let missing = |name: &str| {
            let Ok(place) = patch_paths::check_relative(name).map(|name| folder.join(name)) else {
                return true;
            };
            match self.planned.iter().find(|slot| slot.place.display() == place.display()) {
                Some(slot) => slot.after.is_none(),
                None => fs.stat(&place).is_err(),
            }
        };
        let leaf = |name: &str| name.rsplit('/').next().unwrap_or(name).len();
        [one, other]
            .into_iter()
            .min_by_key(|name| (missing(name), name.matches('/').count(), leaf(name), name.len()))
    }

    fn set_after(&mut self, at: usize, content: Option<FileContent>) {
        if let Some(slot) = self.planned.get_mut(at) {
            slot.after = content;
        }
    }

    fn slot(&mut self, fs: &Fs<Write>, place: &RootedPath) -> Result<usize, ToolError> {
        if let Some(at) = self.planned.iter().position(|slot| slot.place.display() == place.display()) {
            return Ok(at);
        }
        let before = match fs.read(place, fs_edit::MAX_EDIT_BYTES) {
            Ok((bytes, stat)) => Some(FileContent { bytes, mode: Some(stat.mode) }),
            Err(error) if error.kind == Kind::NotFound => None,
            Err(error) => return Err(error),
        };
        self.planned.push(PlannedFile { place: place.clone(), after: before.clone(), before });
        Ok(self.planned.len() - 1)
    }

    /// Hash of a file after the patch; `None` if it was deleted.
    pub fn hash_after(&self, path: &str) -> Option<String> {
        let slot = self.planned.iter().find(|slot| slot.place.display() == path)?;
        slot.after.as_ref().map(|content| content_hash::sha256_hex(&content.bytes))
    }

    /// Current hash of the patch's only file.
    pub fn hash_before(&self) -> Option<String> {
        self.planned
            .first()
            .and_then(|slot| slot.before.as_ref())
            .map(|content| content_hash::sha256_hex(&content.bytes))
    }

    /// Changes to write, each bound to the content that was read.
    pub fn changes(&self) -> Vec<Change> {
        self.planned.iter().filter_map(PlannedFile::change).collect()
    }

    /// Changes that one fs_undo reverts together, by their indices in `changes`.
    pub fn linked_changes(&self) -> Vec<Vec<usize>> {
        let changed = |at: usize| self.planned.get(at).is_some_and(|slot| slot.change().is_some());
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &(from, to) in self.renames.iter().filter(|(from, to)| changed(*from) && changed(*to)) {
            let (met, rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.contains(&from) || group.contains(&to));
            let mut group: Vec<usize> = met.into_iter().flatten().chain([from, to]).collect();
            group.sort_unstable();
            group.dedup();
            groups = rest;
            groups.push(group);
        }
        let place = |at: usize| (0..at).filter(|&before| changed(before)).count();
        groups.into_iter().map(|group| group.into_iter().map(place).collect()).collect()
    }

    /// Number of changed files; a renamed one counts once.
    pub fn files(&self) -> usize {
        let paths: std::collections::BTreeSet<&str> =
            self.results.iter().map(|deed| deed.path.as_str()).collect();
        paths.len()
    }

    pub fn diff(&self) -> String {
        let text = |content: Option<&FileContent>, path: &str| {
            let text = content.and_then(|content| DecodedText::lossless(&content.bytes, path).ok());
            text.map(|text| text.text).unwrap_or_default()
        };
        let one = |slot: &PlannedFile| {
            let path = slot.place.display();
            let (old, new) = (text(slot.before.as_ref(), &path), text(slot.after.as_ref(), &path));
            let name = |content: &Option<FileContent>| content.as_ref().map(|_| path.as_str());
            unified_diff::unified_diff((name(&slot.before), &old), (name(&slot.after), &new)).text
        };
        self.planned.iter().map(one).collect()
    }
}

impl PlannedFile {
    fn change(&self) -> Option<Change> {
        let known = self.before.as_ref().map(|content| content_hash::sha256_hex(&content.bytes));
        match (&self.before, &self.after) {
            (Some(_), None) => Some(Change::Remove { place: self.place.clone(), if_hash: known }),
            (before, Some(after)) if before.as_ref() != Some(after) => {
                let new = before.is_none();
                Some(Change::Put {
                    place: self.place.clone(),
                    bytes: after.bytes.clone(),
                    mode: after
                        .mode
                        .filter(|mode| before.as_ref().and_then(|before| before.mode) != Some(*mode)),
                    options: WriteOptions { if_hash: known, create_new: new, mkdirs: new },
                })
            }
            _ => None,
        }
    }
}

fn find(scope: &PatchScope, name: Option<&str>) -> Result<RootedPath, ToolError> {
    match (scope, name) {
        (PatchScope::File(place), _) => Ok(place.clone()),
        (PatchScope::Folder(folder), Some(name)) => Ok(folder.join(patch_paths::check_relative(name)?)),
        (PatchScope::Folder(folder), None) => Err(ToolError::invalid(format!(
            "`{}` is a directory, and the patch does not name its files.",
            folder.display()
        ))
        .hint("Use the file as path, or add --- a/file and +++ b/file before the hunks.")),
    }
}

fn conflict(message: String) -> ToolError {
    ToolError::new(Kind::Conflict, message)
}

/// The file after the patch; `None` if it was deleted.
fn apply_to_file(
    had: Option<&FileContent>,
    patch: &FilePatch,
    path: &str,
) -> Result<(Option<FileContent>, AppliedPatch), ToolError> {
    let only_adds = patch.hunks.iter().all(|hunk| hunk.lines.iter().all(|line| line.kind == LineKind::Add));
    let Some(had) = had else {
        if patch.deletes || patch.renames || !(patch.creates || only_adds) {
            return Err(ToolError::not_found(format!(
                "`{path}` does not exist, so the patch cannot change it."
            ))
            .hint("Find the right name with fs_glob or fs_list."));
        }
        let applied = apply_hunks::apply("", patch, path)?;
        let bytes = applied.text.clone().into_bytes();
        let mode = patch.new_mode.filter(|mode| mode & 0o111 != 0);
        return Ok((Some(FileContent { bytes, mode }), applied));
    };
    if patch.deletes && patch.ignores_old_content {
        return Ok((None, AppliedPatch::default()));
    }
    let mode = had.mode.zip(patch.new_mode).map(|(mode, new)| executable(mode, new)).or(had.mode);
    if patch.hunks.is_empty() && !patch.deletes {
        return Ok((Some(FileContent { bytes: had.bytes.clone(), mode }), AppliedPatch::default()));
    }
    let text = match had.bytes.is_empty() || (patch.creates && patch.ignores_old_content) {
        true => DecodedText::empty(),
        false => DecodedText::lossless(&had.bytes, path)?,
    };
    if patch.creates && !text.text.is_empty() {
        return Err(exists(&text, patch, path));
    }
    let applied = apply_hunks::apply(&text.text, patch, path)?;
    if !patch.deletes {
        return Ok((Some(FileContent { bytes: text.encode(&applied.text)?, mode }), applied));
    }
    if !applied.text.is_empty() {
        return Err(conflict(format!(
            "The patch deletes `{path}`, but the file has lines that are not in the patch."
        ))
        .hint("Read the file again; to delete it regardless of its content, call fs_delete."));
    }
    Ok((None, applied))
}

fn exists(text: &DecodedText, patch: &FilePatch, path: &str) -> ToolError {
    let same = apply_hunks::apply("", patch, path).is_ok_and(|made| made.text == text.text);
    let error = conflict(format!("The patch creates `{path}`, which already exists; nothing was changed."));
    match same {
        true => error.hint("Its content is the same, so the patch seems to be already applied."),
        false => {
            error.hint("Create the patch against the current content, or delete the file with fs_delete.")
        }
    }
}

/// Patches contain only the executable bit of a mode.
fn executable(mode: u32, wanted: u32) -> u32 {
    if wanted & 0o111 == 0 { mode & !0o111 } else { mode | ((mode & 0o444) >> 2) }
}
