//! Applies the hunks of one file to its text: all of them or none.

use super::locate::{Lost, locate};
use super::parse::{FilePatch, Hunk, Line, Mark};
use super::refusal;
use crate::lines::{self, Ending};
use octo_toolkit::ToolError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub text: String,
    pub added: u64,
    pub removed: u64,
    /// How far the last displaced hunk was from where it said to be, in lines.
    pub offset: i64,
    /// Some hunk fitted only after blanks at line ends were left out of account.
    pub loose: bool,
}

pub fn apply(text: &str, patch: &FilePatch, path: &str) -> Result<Applied, ToolError> {
    let raw = lines::split(text);
    let file =
        File { bare: raw.iter().map(|line| lines::bare(line)).collect(), raw, ending: Ending::most(text) };
    let mut work = Work::default();
    for (index, hunk) in patch.hunks.iter().enumerate() {
        let number = (index + 1, patch.hunks.len());
        work.hunk(&file, hunk).map_err(|lost| refusal::explain(&file, hunk, number, &lost, path))?;
    }
    work.keep(&file, file.raw.len());
    let mut applied = work.applied;
    let final_newline = work.final_newline.filter(|_| !patch.blindly);
    applied.text = finished(work.out, &file, final_newline);
    Ok(applied)
}

pub struct File<'a> {
    pub raw: Vec<&'a str>,
    pub bare: Vec<&'a str>,
    ending: Ending,
}

#[derive(Default)]
struct Work {
    out: Vec<String>,
    /// Lines of the file that are done.
    done: usize,
    shift: i64,
    /// Set when patch and file disagree about it; the file is right.
    final_newline: Option<bool>,
    applied: Applied,
}

impl Work {
    fn keep(&mut self, file: &File<'_>, to: usize) {
        self.out
            .extend(file.raw.get(self.done..to).unwrap_or_default().iter().map(|line| (*line).to_owned()));
        self.done = to;
    }

    fn hunk(&mut self, file: &File<'_>, hunk: &Hunk) -> Result<(), Lost> {
        let old: Vec<&str> = hunk.side(Mark::Add).map(|line| lines::bare(&line.text)).collect();
        let stated = stated(hunk, old.len());
        let at = if old.is_empty() {
            self.insertion(file, hunk, stated)?
        } else {
            self.place(file, hunk, &old, stated)?
        };
        if let Some(stated) = stated.filter(|_| !old.is_empty()) {
            self.shift = distance(stated, at);
            self.applied.offset = if self.shift == 0 { self.applied.offset } else { self.shift };
        }
        self.keep(file, at);
        self.write(file, hunk);
        Ok(())
    }

    fn place(
        &mut self,
        file: &File<'_>,
        hunk: &Hunk,
        old: &[&str],
        stated: Option<usize>,
    ) -> Result<usize, Lost> {
        let floor = self.below(file, &hunk.anchors)?;
        let mut likely: Vec<usize> = stated
            .into_iter()
            .flat_map(|stated| [stated.saturating_add_signed(self.shift as isize), stated])
            .collect();
        if hunk.at_end {
            likely.insert(0, file.raw.len().saturating_sub(old.len()));
        }
        match locate(&file.bare, old, &likely, floor) {
            // Below its anchor, the first place is the one that is meant.
            Err(Lost::Several(first, _)) if !hunk.anchors.is_empty() => Ok(first),
            found => {
                let found = found?;
                self.applied.loose |= found.loose;
                Ok(found.at)
            }
        }
    }

    /// Just after the lines that the anchors name.
    fn below(&self, file: &File<'_>, anchors: &[String]) -> Result<usize, Lost> {
        anchors.iter().try_fold(self.done, |floor, anchor| {
            let rest = file.bare.get(floor..).unwrap_or_default();
            let at = rest.iter().position(|line| line == anchor);
            let at = at.or_else(|| rest.iter().position(|line| line.trim() == anchor.trim()));
            at.map(|at| floor + at + 1).ok_or(Lost::Nowhere)
        })
    }

    /// Nothing to compare with: only a number or an anchor says where, and an empty file has one place only.
    fn insertion(&self, file: &File<'_>, hunk: &Hunk, stated: Option<usize>) -> Result<usize, Lost> {
        let at = match stated {
            Some(stated) => stated.saturating_add_signed(self.shift as isize),
            None if !hunk.anchors.is_empty() => self.below(file, &hunk.anchors)?,
            None if hunk.at_end || file.raw.is_empty() => file.raw.len(),
            None => return Err(Lost::Nowhere),
        };
        (self.done..=file.raw.len()).contains(&at).then_some(at).ok_or(Lost::Nowhere)
    }

    fn write(&mut self, file: &File<'_>, hunk: &Hunk) {
        let verbatim = verbatim(file, hunk, self.done);
        let mut ending = file.raw.get(self.done).and_then(|line| Ending::only(line)).unwrap_or(file.ending);
        for line in &hunk.lines {
            if line.mark == Mark::Add {
                self.applied.added += 1;
                self.out.push(added(line, verbatim, ending));
                continue;
            }
            let raw = file.raw.get(self.done).copied().unwrap_or_default();
            ending = Ending::only(raw).unwrap_or(ending);
            self.done += 1;
            if self.done == file.raw.len() && line.open == raw.ends_with('\n') {
                self.final_newline = Some(raw.ends_with('\n'));
            }
            if line.mark == Mark::Keep {
                self.out.push(raw.to_owned());
            } else {
                self.applied.removed += 1;
            }
        }
    }
}

/// Where the hunk says that it begins, as an index. One without old lines names the line before it.
fn stated(hunk: &Hunk, old: usize) -> Option<usize> {
    hunk.old_start.map(|start| if old == 0 { start } else { start.saturating_sub(1) })
}

fn distance(from: usize, to: usize) -> i64 {
    i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(i64::MAX)
}

/// Whether the patch knows the file's line ends; if it does not, the file's are kept.
fn verbatim(file: &File<'_>, hunk: &Hunk, at: usize) -> bool {
    let mut old = hunk.side(Mark::Add).peekable();
    if old.peek().is_none() {
        let plain = hunk.lines.iter().all(|line| !line.text.ends_with('\r'));
        return !(plain && file.ending == Ending::Crlf);
    }
    let here = file.raw.get(at..).unwrap_or_default();
    old.zip(here).all(|(line, raw)| line.text.ends_with('\r') == raw.trim_end_matches('\n').ends_with('\r'))
}

fn added(line: &Line, verbatim: bool, ending: Ending) -> String {
    match (verbatim, line.open) {
        (true, true) => line.text.clone(),
        (true, false) => format!("{}\n", line.text),
        (false, true) => lines::bare(&line.text).to_owned(),
        (false, false) => format!("{}{}", lines::bare(&line.text), ending.as_str()),
    }
}

/// Only the last line may be without an end.
fn finished(mut out: Vec<String>, file: &File<'_>, final_newline: Option<bool>) -> String {
    if let Some((last, others)) = out.split_last_mut() {
        for line in others.iter_mut().filter(|line| !line.ends_with('\n')) {
            line.push_str(file.ending.as_str());
        }
        match final_newline {
            Some(true) if !last.ends_with('\n') => last.push_str(file.ending.as_str()),
            Some(false) => last.truncate(lines::bare(last).len()),
            _ => {}
        }
    }
    out.concat()
}
