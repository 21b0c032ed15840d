//! Applies all hunks of one file to its text, or none.

use super::hunk_error;
use super::hunk_locator::{LocateError, locate};
use super::unified_parser::{FilePatch, Hunk, LineKind, PatchLine};
use crate::content::text_lines::{self, LineEnding};
use octo_toolkit::ToolError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedPatch {
    pub text: String,
    pub added: u64,
    pub removed: u64,
    /// Distance of the last displaced hunk from its stated position, in lines.
    pub offset: i64,
    /// Some hunk matched only with trailing whitespace ignored.
    pub ignored_whitespace: bool,
}

pub fn apply(text: &str, patch: &FilePatch, path: &str) -> Result<AppliedPatch, ToolError> {
    let raw = text_lines::split(text);
    let file = FileLines {
        without_endings: raw.iter().map(|line| text_lines::without_ending(line)).collect(),
        raw,
        ending: LineEnding::dominant(text),
    };
    let mut work = HunkApplier::default();
    for (index, hunk) in patch.hunks.iter().enumerate() {
        let number = (index + 1, patch.hunks.len());
        work.hunk(&file, hunk).map_err(|lost| hunk_error::explain_hunk(&file, hunk, number, &lost, path))?;
    }
    work.copy_until(&file, file.raw.len());
    let mut applied = work.applied;
    let final_newline = work.final_newline.filter(|_| !patch.ignores_old_content);
    applied.text = join_lines(work.output, &file, final_newline);
    Ok(applied)
}

pub struct FileLines<'a> {
    pub raw: Vec<&'a str>,
    pub without_endings: Vec<&'a str>,
    ending: LineEnding,
}

#[derive(Default)]
struct HunkApplier {
    output: Vec<String>,
    /// Processed lines of the file.
    done: usize,
    shift: i64,
    /// Set if patch and file disagree about the final newline; the file wins.
    final_newline: Option<bool>,
    applied: AppliedPatch,
}

impl HunkApplier {
    fn copy_until(&mut self, file: &FileLines<'_>, to: usize) {
        self.output
            .extend(file.raw.get(self.done..to).unwrap_or_default().iter().map(|line| (*line).to_owned()));
        self.done = to;
    }

    fn hunk(&mut self, file: &FileLines<'_>, hunk: &Hunk) -> Result<(), LocateError> {
        let old: Vec<&str> =
            hunk.lines_except(LineKind::Add).map(|line| text_lines::without_ending(&line.text)).collect();
        let stated = stated_index(hunk, old.len());
        let at = if old.is_empty() {
            self.insertion(file, hunk, stated)?
        } else {
            self.place(file, hunk, &old, stated)?
        };
        if let Some(stated) = stated.filter(|_| !old.is_empty()) {
            self.shift = distance(stated, at);
            self.applied.offset = if self.shift == 0 { self.applied.offset } else { self.shift };
        }
        self.copy_until(file, at);
        self.write(file, hunk);
        Ok(())
    }

    fn place(
        &mut self,
        file: &FileLines<'_>,
        hunk: &Hunk,
        old: &[&str],
        stated: Option<usize>,
    ) -> Result<usize, LocateError> {
        let floor = self.below(file, &hunk.anchors)?;
        let mut likely: Vec<usize> = stated
            .into_iter()
            .flat_map(|stated| [stated.saturating_add_signed(self.shift as isize), stated])
            .collect();
        if hunk.at_end {
            likely.insert(0, file.raw.len().saturating_sub(old.len()));
        }
        match locate(&file.without_endings, old, &likely, floor) {
            // With an anchor, the first match below it is meant.
            Err(LocateError::Ambiguous(first, _)) if !hunk.anchors.is_empty() => Ok(first),
            found => {
                let found = found?;
                self.applied.ignored_whitespace |= found.ignored_whitespace;
                Ok(found.at)
            }
        }
    }

    /// Position after the lines that the anchors name.
    fn below(&self, file: &FileLines<'_>, anchors: &[String]) -> Result<usize, LocateError> {
        anchors.iter().try_fold(self.done, |floor, anchor| {
            let rest = file.without_endings.get(floor..).unwrap_or_default();
            let at = rest.iter().position(|line| line == anchor);
            let at = at.or_else(|| rest.iter().position(|line| line.trim() == anchor.trim()));
            at.map(|at| floor + at + 1).ok_or(LocateError::NotFound)
        })
    }

    /// Without old lines, only a line number or an anchor determines the position; an empty file has only one.
    fn insertion(
        &self,
        file: &FileLines<'_>,
        hunk: &Hunk,
        stated: Option<usize>,
    ) -> Result<usize, LocateError> {
        let at = match stated {
            Some(stated) => stated.saturating_add_signed(self.shift as isize),
            None if !hunk.anchors.is_empty() => self.below(file, &hunk.anchors)?,
            None if hunk.at_end || file.raw.is_empty() => file.raw.len(),
            None => return Err(LocateError::NotFound),
        };
        (self.done..=file.raw.len()).contains(&at).then_some(at).ok_or(LocateError::NotFound)
    }

    fn write(&mut self, file: &FileLines<'_>, hunk: &Hunk) {
        let verbatim = keeps_patch_endings(file, hunk, self.done);
        let mut ending =
            file.raw.get(self.done).and_then(|line| LineEnding::uniform(line)).unwrap_or(file.ending);
        for line in &hunk.lines {
            if line.kind == LineKind::Add {
                self.applied.added += 1;
                self.output.push(added(line, verbatim, ending));
                continue;
            }
            let raw = file.raw.get(self.done).copied().unwrap_or_default();
            ending = LineEnding::uniform(raw).unwrap_or(ending);
            self.done += 1;
            if self.done == file.raw.len() && line.no_newline == raw.ends_with('\n') {
                self.final_newline = Some(raw.ends_with('\n'));
            }
            if line.kind == LineKind::Keep {
                self.output.push(raw.to_owned());
            } else {
                self.applied.removed += 1;
            }
        }
    }
}

/// Stated start of the hunk, as an index. A hunk without old lines names the line before it.
fn stated_index(hunk: &Hunk, old: usize) -> Option<usize> {
    hunk.old_start.map(|start| if old == 0 { start } else { start.saturating_sub(1) })
}

fn distance(from: usize, to: usize) -> i64 {
    i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(i64::MAX)
}

/// Whether the patch uses the file's line endings; if not, those of the file are retained.
fn keeps_patch_endings(file: &FileLines<'_>, hunk: &Hunk, at: usize) -> bool {
    let mut old = hunk.lines_except(LineKind::Add).peekable();
    if old.peek().is_none() {
        let plain = hunk.lines.iter().all(|line| !line.text.ends_with('\r'));
        return !(plain && file.ending == LineEnding::Crlf);
    }
    let here = file.raw.get(at..).unwrap_or_default();
    old.zip(here).all(|(line, raw)| line.text.ends_with('\r') == raw.trim_end_matches('\n').ends_with('\r'))
}

fn added(line: &PatchLine, verbatim: bool, ending: LineEnding) -> String {
    match (verbatim, line.no_newline) {
        (true, true) => line.text.clone(),
        (true, false) => format!("{}\n", line.text),
        (false, true) => text_lines::without_ending(&line.text).to_owned(),
        (false, false) => format!("{}{}", text_lines::without_ending(&line.text), ending.as_str()),
    }
}

/// Only the last line may lack a line ending.
fn join_lines(mut out: Vec<String>, file: &FileLines<'_>, final_newline: Option<bool>) -> String {
    if let Some((last, others)) = out.split_last_mut() {
        for line in others.iter_mut().filter(|line| !line.ends_with('\n')) {
            line.push_str(file.ending.as_str());
        }
        match final_newline {
            Some(true) if !last.ends_with('\n') => last.push_str(file.ending.as_str()),
            Some(false) => last.truncate(text_lines::without_ending(last).len()),
            _ => {}
        }
    }
    out.concat()
}
