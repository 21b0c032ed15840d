//! Reading text from a file: which lines, how much of them, in which encoding. What `fs_read_text` and
//! `fs_read_many` share.

use crate::encoding::{self, Asked, Form};
use crate::scan::{self, Census, Check, Newline, Part};
use octo_toolkit::fs::{Opened, Read};
use octo_toolkit::{Cx, Fs, Place, ToolError};
use std::io::{Cursor, Seek};

/// Up to this size a file is read whole for its hash and its exact number of lines.
pub const WHOLE: u64 = 64 << 20;
/// More than this is never returned, whatever is asked for.
pub const MOST: u64 = 16 << 20;
/// What the kind and the encoding of a file are judged by, besides the wanted part.
const HEAD: usize = 64 * 1024;

/// Which lines, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    Span(u64, u64),
    Last(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub lines: Lines,
    pub asked: Asked,
    pub max_bytes: u64,
}

pub struct Reading {
    pub content: String,
    pub opened: Opened,
    pub encoding: String,
    pub line_count: u64,
    pub line_count_exact: bool,
    pub hash: Option<String>,
    /// Absent when nothing was returned, or when nobody knows where in a huge file its tail begins.
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub next: Option<u64>,
    pub truncated: bool,
    pub notice: Option<String>,
}

pub fn read(fs: &Fs<Read>, place: &Place, want: Want, cx: &Cx) -> Result<Reading, ToolError> {
    let mut opened = fs.open_file(place)?;
    let check = || cx.check();
    // One byte more than the file has, so that its end is seen.
    let mut head = vec![0; usize::try_from(opened.stat.size).map_or(HEAD, |size| HEAD.min(size + 1))];
    let head_room = head.len();
    let full = scan::fill(&mut opened.file, &mut head)?;
    head.truncate(full);
    // The newline's width must be known before the lines are; a file that is no text fails below.
    let newline = encoding::detect(want.asked, &head, &head).map_or(Newline::Byte, Newline::of);
    // A small file is read once, so that hash, count and text belong together.
    let (census, part) = match full < head_room {
        true => survey(&mut Cursor::new(&head), full as u64, newline, want, &check)?,
        false => survey(&mut opened.file, opened.stat.size, newline, want, &check)?,
    };
    let form =
        encoding::detect(want.asked, &head, &part.bytes).map_err(|binary| binary.refusal(&place.told()))?;
    answer(opened, want.lines, part, census, form, newline)
}

fn survey(
    source: &mut (impl std::io::Read + Seek),
    size: u64,
    newline: Newline,
    want: Want,
    check: Check<'_>,
) -> Result<(Option<Census>, Part), ToolError> {
    let cap = usize::try_from(want.max_bytes.min(MOST)).unwrap_or(usize::MAX);
    let census = match size <= WHOLE {
        true => {
            source.rewind().map_err(ToolError::internal)?;
            Some(scan::census(source, newline, check)?)
        }
        false => None,
    };
    source.rewind().map_err(ToolError::internal)?;
    let part = match want.lines {
        Lines::Span(first, last) => scan::lines(source, newline, (first, last), cap, check)?,
        Lines::Last(count) => scan::tail(source, newline, (count, size), cap, check)?,
    };
    Ok((census, part))
}

fn answer(
    opened: Opened,
    lines: Lines,
    part: Part,
    census: Option<Census>,
    form: Form,
    newline: Newline,
) -> Result<Reading, ToolError> {
    let here = newline.lines(&part.bytes);
    let total = census.as_ref().map(|census| census.lines);
    let first = match lines {
        Lines::Span(first, _) => Some(first),
        Lines::Last(_) => total.map(|total| total - here.min(total) + 1),
    };
    if let (Lines::Span(first, _), 0) = (lines, here)
        && first > 1
        && !part.truncated
    {
        let count = total.unwrap_or(part.seen);
        return Err(ToolError::invalid(format!("The file has {count} lines; line {first} is past its end."))
            .hint("Ask for lines within that range, or for the last ones with tail."));
    }
    let first = first.filter(|_| here > 0);
    let last = first.map(|first| first + here - 1);
    let (content, wrong) = form.decode(&part.bytes, !part.cut);
    let ended = matches!(lines, Lines::Last(_)) || part.truncated;
    let next = match lines {
        Lines::Span(first, _) if part.truncated => Some(last.map_or(first, |last| last + 1)),
        _ => None,
    };
    Ok(Reading {
        content,
        encoding: form.name(),
        line_count: total.unwrap_or(if ended { here.max(part.seen) } else { part.seen }),
        line_count_exact: total.is_some(),
        hash: census.map(|census| census.hash),
        first,
        last,
        next: next.filter(|next| total.is_none_or(|total| *next <= total)),
        truncated: part.truncated,
        notice: notice(&part, lines, wrong, last),
        opened,
    })
}

/// What the numbers alone do not say.
fn notice(part: &Part, lines: Lines, wrong: bool, last: Option<u64>) -> Option<String> {
    let mut said = Vec::new();
    if part.cut {
        let line = last.map_or_else(|| "A line".to_owned(), |last| format!("Line {last}"));
        said.push(format!(
            "{line} is longer than max_bytes and is not whole; raise max_bytes, or read a part of it with \
             fs_read_bytes and its offset."
        ));
    } else if part.truncated && matches!(lines, Lines::Last(_)) {
        said.push("Earlier lines were left out; raise max_bytes or ask for fewer.".to_owned());
    }
    if wrong {
        said.push("Bytes that are not valid in this encoding are shown as U+FFFD.".to_owned());
    }
    (!said.is_empty()).then(|| said.join(" "))
}
