//! `fs_replace`.

use crate::content::content_hash;
use crate::content::encoding::DecodedText;
use crate::content::text_lines::{self, LineEnding};
use crate::file_walk::glob_pattern::{GlobPattern, matches_hidden};
use crate::file_walk::unread_notes;
use crate::file_walk::walk_progress::WalkProgress;
use crate::fs_edit::MAX_EDIT_BYTES;
use octo_toolkit::fs::{Change, EntryKind, Step, WalkEntry, WalkOptions, Write, WriteOptions};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, RootedPath, Tool, ToolError, WorkPath};
use regex::{Captures, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// More files would need more descriptors than a process is guaranteed to have.
const MAX_FILES: usize = 150;
/// Maximum total size of the changed files, so that each can be undone.
const MAX_TOTAL_BYTES: usize = 64 << 20;
const MAX_PREVIEWS: usize = 5;
/// Maximum characters of a line in a preview.
const MAX_PREVIEW_CHARS: usize = 100;
/// Maximum number of skipped files that are listed.
const MAX_SKIPPED: usize = 5;

/// Replaces text in all files that contain it, or in those that match a glob, without ignored, hidden and binary
/// ones; all files are changed or none. Prefer fs_edit for a change in one place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Text to replace; a regular expression (Rust syntax) if regex is true.
    pattern: String,
    /// Replacement; with regex, $1 or ${name} inserts a group, and $$ a dollar sign.
    replacement: String,
    /// Folder or file to change, relative to the workspace.
    #[serde(default = "WorkPath::here")]
    path: WorkPath,
    /// Only files that match, such as *.rs or src/**/*.{ts,tsx}; with a leading ! only the others.
    #[serde(default)]
    glob: Option<String>,
    /// Treat the pattern as a regular expression; ^ and $ match at lines.
    #[serde(default)]
    regex: bool,
    /// Only where no letter, digit or underscore is adjacent.
    #[serde(default)]
    whole_word: bool,
    /// Match case.
    #[serde(default = "default_true")]
    case_sensitive: bool,
    /// Only return what would change, with a preview.
    #[serde(default)]
    dry_run: bool,
    /// Also files and folders that start with a dot; true by default if glob has such a name.
    #[serde(default)]
    hidden: Option<bool>,
    /// Also what .gitignore and .ignore exclude.
    #[serde(default)]
    ignored: bool,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Summary in a sentence.
    message: String,
    /// Total number of replacements.
    replacements: u64,
    /// By folder: files with their number of replacements.
    files: BTreeMap<String, String>,
    /// Some of the lines that would change, with dry_run: path:line: before → after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preview: Vec<String>,
    /// True if fs_undo can revert the change of every file, one at a time.
    undo: bool,
    /// What was skipped, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Replace;

impl Tool for Replace {
    const NAME: &'static str = "fs_replace";
    const TITLE: &'static str = "Replace in files";
    const KEYWORDS: &'static str = "rename symbol refactor substitute everywhere sed bulk find and replace";
    const REQUESTS: &'static [&'static str] = &[
        "rename the function getUser to fetchUser across the whole project",
        "swap http for https in every html file",
        "search and replace with a regular expression over the folder",
        "change the company name everywhere it occurs",
        "update the copyright year in all files",
        "how many files would a bulk substitution change, dry run",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Rename a function everywhere",
                json!({"pattern": "main", "replacement": "start", "whole_word": true, "glob": "*.rs"}),
            ),
            Example::new(
                "See what an expression would change",
                json!({"pattern": "(\\w+),(\\d+)", "replacement": "$2,$1", "regex": true, "path": "data.csv", "dry_run": true}),
            ),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, cx: &CallContext) -> Result<Output, ToolError> {
        let cx = cx.clone();
        fs.run(move |fs| replace(fs, &input, &cx)).await
    }
}

fn replace(fs: &Fs<Write>, input: &Input, cx: &CallContext) -> Result<Output, ToolError> {
    let regex = compile_pattern(input)?;
    let place = fs.place(&input.path)?;
    let pace = WalkProgress::new(cx);
    let (found, mut notes) = candidates(fs, input, &place, &regex, &pace)?;
    let mut plan = ReplacePlan::default();
    for path in &found {
        cx.check()?;
        let at = if path.as_os_str().is_empty() { place.clone() } else { place.join(path) };
        match plan.add(fs, &at, &regex, input, cx) {
            Ok(()) => {}
            Err(error) if error.kind == Kind::Denied => plan.skip(error),
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(first)) = (plan.files.is_empty(), plan.skipped.first()) {
        return Err(first.clone());
    }
    notes.extend(plan.notes());
    let written = if input.dry_run { Vec::new() } else { fs.change(std::mem::take(&mut plan.changes))? };
    Ok(Output {
        message: plan.message(input.dry_run),
        replacements: plan.replacements(),
        files: by_folder(&plan.files),
        preview: plan.preview,
        undo: !written.is_empty() && written.iter().all(|written| written.undo),
        notes,
    })
}

fn compile_pattern(input: &Input) -> Result<Regex, ToolError> {
    if input.pattern.is_empty() {
        return Err(ToolError::invalid("The pattern is empty.").hint("Pass the text to replace."));
    }
    let pattern = match input.regex {
        true => input.pattern.clone(),
        // A line break in plain text matches the file's line ending.
        false => regex::escape(&input.pattern.replace("\r\n", "\n")).replace('\n', "\r?\n"),
    };
    let pattern = match input.whole_word {
        true => format!(r"\b{{start-half}}(?:{pattern})\b{{end-half}}"),
        false => pattern,
    };
    let regex = RegexBuilder::new(&pattern)
        .case_insensitive(!input.case_sensitive)
        .multi_line(true)
        .crlf(true)
        .build()
        .map_err(|error| refusal(&error.to_string()))?;
    if regex.is_match("") {
        return Err(ToolError::invalid("The pattern matches empty text.")
            .hint("Change it to match at least one character, such as `x+` instead of `x*`."));
    }
    Ok(regex)
}

fn refusal(error: &str) -> ToolError {
    let why = error.rsplit("error: ").next().unwrap_or(error).trim().trim_end_matches('.');
    let why: String = why.chars().take(200).collect();
    ToolError::invalid(format!("The pattern is not a valid regular expression: {why}."))
        .hint("Escape special characters with a backslash, or omit regex to replace plain text.")
}

/// Files that contain the pattern, and notes about what could not be read.
fn candidates(
    fs: &Fs<Write>,
    input: &Input,
    place: &RootedPath,
    regex: &Regex,
    pace: &WalkProgress<'_>,
) -> Result<(BTreeSet<PathBuf>, Vec<String>), ToolError> {
    let glob = input.glob.as_deref().map(GlobPattern::parse).transpose()?;
    let hidden = input.hidden.unwrap_or_else(|| input.glob.as_deref().is_some_and(matches_hidden));
    let found = Mutex::new(BTreeSet::new());
    let large = AtomicUsize::new(0);
    let visit = |entry: &WalkEntry<'_>| {
        let name = match entry.depth {
            0 => place.relative().file_name().map_or(entry.path, Path::new),
            _ => entry.path,
        };
        if entry.kind == EntryKind::Folder
            && glob.as_ref().is_some_and(|glob| !glob.may_match_below(entry.path))
        {
            return Step::Skip;
        }
        if entry.kind == EntryKind::File && glob.as_ref().is_none_or(|glob| glob.matches(name)) {
            match holds(entry, regex) {
                Some(true) => {
                    found.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.path.to_owned());
                }
                Some(false) => {}
                None => drop(large.fetch_add(1, Ordering::Relaxed)),
            }
        }
        pace.step(entry)
    };
    let options = WalkOptions { hidden, ignored: input.ignored, ..WalkOptions::default() };
    let walked = fs.walk(place, &options, &visit)?;
    pace.finish()?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut notes = unread_notes(place, &walked);
    let large = large.into_inner();
    if large > 0 {
        notes.push(format!("Skipped files above {} MiB: {large}.", MAX_EDIT_BYTES >> 20));
    }
    if found.is_empty() && !(hidden && input.ignored) {
        notes.push(
            "Ignored and hidden files were skipped; set ignored and hidden to include them.".to_owned(),
        );
    }
    if found.len() > MAX_FILES {
        return Err(ToolError::new(Kind::TooLarge, format!("{} files contain the pattern.", found.len()))
            .hint(format!(
                "The limit is {MAX_FILES} files per call. Use a directory as path, or a narrower glob."
            )));
    }
    Ok((found, notes))
}

/// Whether a file is text that contains the pattern; `None` if it is too large.
fn holds(entry: &WalkEntry<'_>, regex: &Regex) -> Option<bool> {
    let Ok((file, _)) = entry.open() else { return Some(false) };
    let mut bytes = Vec::new();
    if file.take(MAX_EDIT_BYTES + 1).read_to_end(&mut bytes).is_err() {
        return Some(false);
    }
    if bytes.len() as u64 > MAX_EDIT_BYTES {
        return None;
    }
    Some(DecodedText::lossless(&bytes, "").is_ok_and(|text| regex.is_match(&text.text)))
}

/// Planned changes.
#[derive(Default)]
struct ReplacePlan {
    changes: Vec<Change>,
    /// Paths and numbers of replacements.
    files: Vec<(String, u64)>,
    bytes: usize,
    preview: Vec<String>,
    skipped: Vec<ToolError>,
    skipped_more: usize,
}

impl ReplacePlan {
    fn add(
        &mut self,
        fs: &Fs<Write>,
        place: &RootedPath,
        regex: &Regex,
        input: &Input,
        cx: &CallContext,
    ) -> Result<(), ToolError> {
        fs.check_changeable(place)?;
        let path = place.display();
        let (bytes, _) = fs.read(place, MAX_EDIT_BYTES)?;
        let before = DecodedText::lossless(&bytes, &path)?;
        let replaced = replace_matches(&before.text, regex, input, &path, cx)?;
        if replaced.text == before.text {
            return Ok(());
        }
        let after = before.encode(&replaced.text)?;
        self.bytes += bytes.len().max(after.len());
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(ToolError::new(
                Kind::TooLarge,
                "The total size of the files to change is too large.",
            )
            .hint(format!(
                "The limit is {} MiB per call. Use a directory as path, or a narrower glob.",
                MAX_TOTAL_BYTES >> 20
            )));
        }
        let room = MAX_PREVIEWS - self.preview.len();
        if input.dry_run {
            self.preview
                .extend(replaced.preview.into_iter().take(room.min(2)).map(|line| format!("{path}:{line}")));
        }
        self.files.push((path, replaced.count));
        // Replaces exactly what was read: a change in between is a conflict, not a loss.
        let options =
            WriteOptions { if_hash: Some(content_hash::sha256_hex(&bytes)), ..WriteOptions::default() };
        self.changes.push(Change::Put { place: place.clone(), bytes: after, mode: None, options });
        Ok(())
    }

    fn skip(&mut self, error: ToolError) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(error);
        } else {
            self.skipped_more += 1;
        }
    }

    fn notes(&self) -> Vec<String> {
        let named = self.skipped.iter().map(|error| format!("Skipped: {}", error.message));
        let more = (self.skipped_more > 0).then(|| format!("Skipped: {} more.", self.skipped_more));
        named.chain(more).collect()
    }

    fn replacements(&self) -> u64 {
        self.files.iter().map(|(_, count)| count).sum()
    }

    fn message(&self, dry_run: bool) -> String {
        let places = self.replacements();
        let places = if places == 1 { "1 place".to_owned() } else { format!("{places} places") };
        let files = match self.files.len() {
            0 => return "No file contains the pattern; nothing was changed.".to_owned(),
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        match dry_run {
            true => format!("Would replace {places} in {files}."),
            false => format!("Replaced {places} in {files}."),
        }
    }
}

fn too_large(path: &str) -> ToolError {
    ToolError::new(Kind::TooLarge, format!("`{path}` would grow beyond {} MiB.", MAX_EDIT_BYTES >> 20))
        .hint("Use a shorter replacement or a narrower pattern.")
}

struct Replacement {
    text: String,
    count: u64,
    preview: Vec<String>,
}

/// Text with every match replaced, with a size limit.
fn replace_matches(
    text: &str,
    regex: &Regex,
    input: &Input,
    path: &str,
    cx: &CallContext,
) -> Result<Replacement, ToolError> {
    let plain = LineEnding::uniform(text).map(|ending| ending.apply_to(&input.replacement));
    let plain = plain.as_deref().unwrap_or(&input.replacement);
    let expand = |found: &Captures<'_>, into: &mut String| match input.regex {
        true => found.expand(plain, into),
        false => into.push_str(plain),
    };
    // Each referenced group may be as long as the match.
    let groups = if input.regex { plain.matches('$').count() } else { 0 };
    let (mut after, mut last, mut count, mut preview) = (String::new(), 0, 0, Vec::new());
    for found in regex.captures_iter(text) {
        // One search is linear, but there may be as many as there are characters.
        cx.check()?;
        let Some(whole) = found.get(0) else { continue };
        let growth = plain.len().saturating_add(whole.len().saturating_mul(groups));
        if (after.len() + growth) as u64 > 2 * MAX_EDIT_BYTES {
            return Err(too_large(path));
        }
        after.push_str(text.get(last..whole.start()).unwrap_or_default());
        let from = after.len();
        expand(&found, &mut after);
        last = whole.end();
        count += 1;
        if after.len() as u64 > MAX_EDIT_BYTES {
            return Err(too_large(path));
        }
        if preview.len() < MAX_PREVIEWS {
            let new = after.get(from..).unwrap_or_default();
            preview.push(preview_line(text, whole.start(), whole.end(), new));
        }
    }
    after.push_str(text.get(last..).unwrap_or_default());
    Ok(Replacement { text: after, count, preview })
}

/// The line of a match: number, before, after.
fn preview_line(text: &str, start: usize, end: usize, new: &str) -> String {
    let head = text.get(..start).unwrap_or_default();
    let head = head.get(head.rfind('\n').map_or(0, |at| at + 1)..).unwrap_or_default();
    let tail = text.get(end..).unwrap_or_default();
    let tail = tail.get(..tail.find('\n').unwrap_or(tail.len())).unwrap_or_default();
    let old = text.get(start..end).unwrap_or_default();
    // A long line is shortened around the match.
    let near: String = {
        let reversed: Vec<char> = head.chars().rev().take(MAX_PREVIEW_CHARS / 2).collect();
        reversed.into_iter().rev().collect()
    };
    let line = |middle: &str| -> String {
        let line = format!("{near}{middle}{tail}");
        line.trim().chars().take(MAX_PREVIEW_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    format!("{}: {} → {}", text_lines::number_at(text, start), line(old), line(new))
}

/// Groups the files by directory, one line each, because most of their paths is the same.
fn by_folder(files: &[(String, u64)]) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<String, String> = BTreeMap::new();
    for (path, count) in files {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let line = folders.entry(folder.to_owned()).or_default();
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(&format!("{name} {count}"));
    }
    folders
}
