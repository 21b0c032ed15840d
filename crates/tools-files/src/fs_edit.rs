//! `fs_edit`.

mod apply_edits;
mod mismatch;
mod newline_map;

use crate::content::encoding::DecodedText;
use crate::content::{content_hash, unified_diff};
use octo_toolkit::fs::{Write, WriteOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Larger files are not edited as text.
pub const MAX_EDIT_BYTES: u64 = 16 << 20;

/// Replaces pieces of text in a file: each must match exactly once. All edits are made or none; a mismatch shows the
/// nearest lines. Prefer fs_patch for unified diffs, fs_write_text for whole files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to change, relative to the workspace.
    path: WorkPath,
    /// Replacements, applied in order, each to the result of the one before.
    edits: Vec<Edit>,
    /// Only return the diff.
    #[serde(default)]
    dry_run: bool,
    /// Hash that the file must have, from an earlier reply; otherwise nothing is changed.
    #[serde(default)]
    if_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Text to replace, copied exactly from the file, without line numbers.
    old_text: String,
    /// Replacement text; empty to delete.
    new_text: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
    /// Replace every occurrence, provided there are exactly this many.
    #[serde(default)]
    expected_replacements: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// The change as a unified diff.
    diff: String,
    /// Number of replacements.
    replacements: u64,
    /// Added lines.
    added: u64,
    /// Removed lines.
    removed: u64,
    /// SHA-256 of the new content, for if_hash of a later change.
    hash: String,
    /// True if fs_undo can revert the change.
    undo: bool,
    /// True if nothing was written because of dry_run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

pub struct EditText;

impl Tool for EditText {
    const NAME: &'static str = "fs_edit";
    const TITLE: &'static str = "Edit a text file";
    const KEYWORDS: &'static str = "modify change update replace code substitute fix source";
    const REQUESTS: &'static [&'static str] = &[
        "change the port from 3000 to 8080 in config.yaml",
        "fix the typo in line 12 of the readme",
        "swap this function body for another in main.rs",
        "insert an import below the existing ones in app.py",
        "make several small text changes in one file at once",
        "preview a change to a single source file before saving it",
        "take one paragraph out of the document",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Change one line",
                json!({"path": "src/main.rs", "edits": [{"old_text": "\"hello\"", "new_text": "\"hello, world\""}]}),
            ),
            Example::new(
                "See what a replacement everywhere would do",
                json!({"path": "data.csv", "edits": [{"old_text": ",", "new_text": ";", "replace_all": true}], "dry_run": true}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let Output { path, replacements, added, removed, .. } = output;
        let dry = if output.dry_run { ", dry run: nothing was written" } else { "" };
        let undo = if output.undo || output.dry_run { "" } else { ", fs_undo cannot revert it" };
        let hash = output.hash.get(..16).unwrap_or_default();
        ModelText::new()
            .line(format_args!(
                "{path}: {replacements} replaced, +{added} -{removed}, hash {hash}{dry}{undo}"
            ))
            .rest(&output.diff)
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Write>, _cx: &CallContext) -> Result<Output, ToolError> {
        if input.edits.is_empty() {
            return Err(ToolError::invalid("No edits given.")
                .hint("Pass edits as [{\"old_text\": \"…\", \"new_text\": \"…\"}]."));
        }
        fs.run(move |fs| edit(fs, &input)).await
    }
}

fn edit(fs: &Fs<Write>, input: &Input) -> Result<Output, ToolError> {
    let place = fs.place(&input.path)?;
    let path = place.display();
    let (bytes, _) = fs.read(&place, MAX_EDIT_BYTES)?;
    let before_hash = content_hash::sha256_hex(&bytes);
    content_hash::check_if_hash(input.if_hash.as_deref(), &before_hash, &path)?;
    let before = DecodedText::lossless(&bytes, &path)?;
    let edits: Vec<apply_edits::Edit<'_>> = input.edits.iter().map(Edit::as_apply).collect();
    let (after, replacements) = apply_edits::apply(&before.text, &edits)?;
    let after_bytes = before.encode(&after)?;
    let diff = unified_diff::unified_diff((Some(&path), &before.text), (Some(&path), &after));
    let written = match input.dry_run {
        true => None,
        // Replaces exactly what was read: a change in between is a conflict, not a loss.
        false => {
            let options = WriteOptions { if_hash: Some(before_hash.clone()), ..WriteOptions::default() };
            Some(fs.write(&place, &after_bytes, &options)?)
        }
    };
    Ok(Output {
        path,
        diff: diff.text,
        replacements,
        added: diff.added,
        removed: diff.removed,
        undo: written.as_ref().is_some_and(|written| written.undo),
        hash: written.map_or(before_hash, |written| written.hash),
        dry_run: input.dry_run,
    })
}

impl Edit {
    fn as_apply(&self) -> apply_edits::Edit<'_> {
        apply_edits::Edit {
            old: &self.old_text,
            new: &self.new_text,
            all: self.replace_all,
            expected: self.expected_replacements,
        }
    }
}
