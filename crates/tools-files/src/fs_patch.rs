//! `fs_patch`.

mod apply_hunks;
mod hunk_error;
mod hunk_locator;
mod patch_envelope;
mod patch_paths;
mod patch_plan;
#[cfg(test)]
mod tests;
mod unified_parser;

use crate::content::content_hash;
use octo_toolkit::fs::{EntryKind, Write};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, ModelText, Tool, ToolError, WorkPath};
use patch_plan::{FileResult, PatchPlan, PatchScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use unified_parser::FilePatch;

/// Applies a unified diff to a file, or to several beneath a folder, atomically. For a hunk that does not apply,
/// returns the first line that differs. Prefer fs_edit for small changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to patch, or folder that the names in the patch are relative to.
    path: WorkPath,
    /// Unified diff; the *** Begin Patch format is accepted as well.
    patch: String,
    /// Revert the patch instead.
    #[serde(default)]
    reverse: bool,
    /// Only return what would change.
    #[serde(default)]
    dry_run: bool,
    /// Hash that the single file must have, from an earlier reply; otherwise nothing is changed.
    #[serde(default)]
    if_hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The given file or folder.
    path: String,
    /// Summary in a sentence.
    message: String,
    /// Changes by file.
    files: Vec<PatchedFile>,
    /// True if fs_undo can revert the change of every file.
    undo: bool,
    /// The change as a unified diff, with dry_run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Data loss, or inexact matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct PatchedFile {
    /// The file.
    path: String,
    /// created, modified, deleted or renamed.
    status: String,
    /// Old name of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Added lines.
    added: u64,
    /// Removed lines.
    removed: u64,
    /// Hunks of the patch for this file.
    hunks: u64,
    /// How many lines further down (negative: up) a hunk was found than stated.
    offset: i64,
    /// SHA-256 of the new content, for if_hash of a later change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

pub struct Patch;

impl Tool for Patch {
    const NAME: &'static str = "fs_patch";
    const TITLE: &'static str = "Apply a patch";
    const KEYWORDS: &'static str = "apply diff change modify code several files";
    const REQUESTS: &'static [&'static str] = &[
        "apply this unified diff to the files of the folder",
        "bring in a .diff that a colleague sent, outside of version control",
        "use the begin patch block to change two files",
        "undo a patch by applying it in reverse on disk",
        "would these hunks fit the file, without writing",
        "change main.c according to the @@ hunks",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Change a line of one file",
                json!({"path": "notes.txt", "patch": "@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n"}),
            ),
            Example::new(
                "See what a patch of two files would do",
                json!({
                    "path": ".",
                    "patch": "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Demo\n+# Example\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n",
                    "dry_run": true,
                }),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        ModelText::new()
            .line(&output.message)
            .field_if("warning", output.warning.as_ref())
            .line_if(!output.undo && output.diff.is_none(), "fs_undo cannot revert it")
            .lines(output.files.iter().map(file_line))
            .field_if("hash", single_hash(&output.files))
            .rest(output.diff.as_deref().unwrap_or_default())
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        fs.run(move |fs| patch(fs, &input)).await
    }
}

/// For if_hash of the next change, which is of one file.
fn single_hash(files: &[PatchedFile]) -> Option<&str> {
    match files {
        [file] => file.hash.as_deref()?.get(..16),
        _ => None,
    }
}

/// The file, what became of it, and where the hunks were found if not as stated.
fn file_line(file: &PatchedFile) -> String {
    let from = file.from.as_ref().map_or(String::new(), |from| format!(" from {from}"));
    let offset = if file.offset == 0 { String::new() } else { format!(", offset {}", file.offset) };
    let PatchedFile { path, status, added, removed, hunks, .. } = file;
    format!("{path}: {status}{from}, +{added} -{removed}, hunks {hunks}{offset}")
}

fn patch(fs: &Fs<Write>, input: &Input) -> Result<Output, ToolError> {
    let patches = match patch_envelope::is_envelope(&input.patch) {
        true if input.reverse => {
            return Err(ToolError::invalid("A patch in this format cannot be reversed.")
                .hint("Revert the change with fs_undo, or use a unified diff."));
        }
        true => patch_envelope::parse(&input.patch)?,
        false => unified_parser::parse(&input.patch)?,
    };
    let patches: Vec<FilePatch> = match input.reverse {
        true => patches.into_iter().rev().map(FilePatch::reversed).collect(),
        false => patches,
    };
    let scope = scope(fs, input)?;
    let plan = patch_plan::plan(fs, &scope, &patches)?;
    if let Some(wanted) = input.if_hash.as_deref() {
        let PatchScope::File(place) = &scope else {
            return Err(ToolError::invalid("if_hash is for a single file.")
                .hint("Use the file as path, or omit if_hash."));
        };
        content_hash::check_if_hash(Some(wanted), &plan.hash_before().unwrap_or_default(), &place.display())?;
    }
    let (PatchScope::File(place) | PatchScope::Folder(place)) = &scope;
    write(fs, input, &plan, place.display())
}

fn scope(fs: &Fs<Write>, input: &Input) -> Result<PatchScope, ToolError> {
    let place = fs.place(&input.path)?;
    match fs.stat(&place) {
        Ok(stat) if stat.kind == EntryKind::Folder => Ok(PatchScope::Folder(place)),
        Ok(_) => Ok(PatchScope::File(place)),
        Err(error) if error.kind == Kind::NotFound => Ok(PatchScope::File(place)),
        Err(error) => Err(error),
    }
}

fn write(fs: &Fs<Write>, input: &Input, plan: &PatchPlan, path: String) -> Result<Output, ToolError> {
    let changes = plan.changes();
    let count = if changes.is_empty() { 0 } else { plan.files() };
    let written = match input.dry_run {
        true => Vec::new(),
        false => fs.change_linked(changes, plan.linked_changes())?,
    };
    let done = match (input.dry_run, input.reverse) {
        (true, _) => "would change",
        (false, true) => "reverted in",
        (false, false) => "applied to",
    };
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    Ok(Output {
        path,
        message: format!("The patch {} {done} {files}.", if input.dry_run { "applies and" } else { "was" }),
        files: plan.results.iter().map(|deed| entry(plan, deed, input.dry_run)).collect(),
        undo: !written.is_empty() && written.iter().all(|written| written.undo),
        diff: input.dry_run.then(|| plan.diff()),
        warning: warning(plan, input.dry_run),
    })
}

fn entry(plan: &PatchPlan, deed: &FileResult, dry_run: bool) -> PatchedFile {
    PatchedFile {
        path: deed.path.clone(),
        status: deed.status.to_owned(),
        from: deed.from.clone(),
        added: deed.applied.added,
        removed: deed.applied.removed,
        hunks: deed.hunks as u64,
        offset: deed.applied.offset,
        hash: if dry_run { None } else { plan.hash_after(&deed.path) },
    }
}

fn warning(plan: &PatchPlan, dry_run: bool) -> Option<String> {
    let deeds = &plan.results;
    let named = |deed: &FileResult| format!("`{}`", deed.path);
    let mut said = Vec::new();
    let deleted: Vec<String> = deeds.iter().filter(|deed| deed.status == "deleted").map(named).collect();
    if !deleted.is_empty() && !dry_run {
        said.push(format!("Deleted {}.", deleted.join(", ")));
    }
    if !plan.replaced.is_empty() && !dry_run {
        said.push(format!("Overwrote `{}`.", plan.replaced.join("`, `")));
    }
    let loose: Vec<String> = deeds.iter().filter(|deed| deed.applied.ignored_whitespace).map(named).collect();
    if !loose.is_empty() {
        said.push(format!("In {} trailing whitespace differed from the patch.", loose.join(", ")));
    }
    (!said.is_empty()).then(|| said.join(" "))
}
