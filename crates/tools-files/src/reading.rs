//! Reading text from a file: which lines, how much of them, in which encoding. What `fs_read_text` and
//! `fs_read_many` share.

use crate::encoding::{self, Asked, Form};
use crate::scan::{self, Census, Check, Newline, Part, Span};
use octo_toolkit::fs::{OpenFile, Read};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError, json_len};
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

/// No part is made smaller than this, so that reading on always gets somewhere.
const LEAST: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub lines: Lines,
    pub asked: Asked,
    pub max_bytes: u64,
    /// Bytes of the first line that are left out.
    pub start_byte: u64,
    /// Bytes that the text may take in the reply.
    pub room: usize,
    /// Whether every line gets its number, which takes room, too.
    pub numbered: bool,
}

pub struct Reading {
    pub content: String,
    pub opened: OpenFile,
    pub encoding: String,
    pub line_count: u64,
    pub line_count_exact: bool,
    pub hash: Option<String>,
    /// Absent when nothing was returned, or when nobody knows where in a huge file its tail begins.
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub next: Option<u64>,
    /// Where in line `next` the rest of it begins.
    pub next_byte: Option<u64>,
    pub truncated: bool,
    pub notice: Option<String>,
}

pub fn read(fs: &Fs<Read>, place: &RootedPath, want: Want, cx: &CallContext) -> Result<Reading, ToolError> {
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
    let form = encoding::detect(want.asked, &head, &part.bytes)
        .map_err(|binary| binary.refusal(&place.display()))?;
    answer(opened, want, part, census, form, newline)
}

fn survey(
    source: &mut (impl std::io::Read + Seek),
    size: u64,
    newline: Newline,
    want: Want,
    check: Check<'_>,
) -> Result<(Option<Census>, Part), ToolError> {
    let cap = usize::try_from(want.max_bytes.min(MOST)).unwrap_or(usize::MAX).max(LEAST);
    let census = match size <= WHOLE {
        true => {
            source.rewind().map_err(ToolError::internal)?;
            Some(scan::census(source, newline, check)?)
        }
        false => None,
    };
    source.rewind().map_err(ToolError::internal)?;
    let part = match want.lines {
        Lines::Span(first, last) => {
            let span = Span { first, last, skip: want.start_byte };
            scan::lines(source, newline, span, cap, check)?
        }
        Lines::Last(count) => scan::tail(source, newline, (count, size), cap, check)?,
    };
    Ok((census, part))
}

/// The text of the part, which loses lines until the text has room in the reply.
fn fit(part: &mut Part, want: Want, form: Form, newline: Newline) -> (String, bool) {
    loop {
        let (content, wrong) = form.decode(&part.bytes, !part.cut);
        let size = json_len(&content) + if want.numbered { numbering(&content, want.lines) } else { 0 };
        if size <= want.room || part.bytes.len() <= LEAST {
            return (content, wrong);
        }
        let cap = part.bytes.len().saturating_mul(want.room) / size;
        match want.lines {
            Lines::Span(..) => part.end_within(cap.max(LEAST), newline),
            Lines::Last(_) => part.begin_within(cap.max(LEAST), newline),
        }
        if part.cut && matches!(want.lines, Lines::Span(..)) {
            part.bytes.truncate(form.whole_characters(&part.bytes));
        }
    }
}

/// What the numbers of the lines take in the reply, at most.
fn numbering(content: &str, lines: Lines) -> usize {
    let count = crate::lines::count(content);
    let digits = match lines {
        Lines::Span(first, _) => first.saturating_add(count).to_string().len(),
        Lines::Last(_) => 20,
    };
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(digits + json_len("\t"))
}

fn answer(
    opened: OpenFile,
    want: Want,
    mut part: Part,
    census: Option<Census>,
    form: Form,
    newline: Newline,
) -> Result<Reading, ToolError> {
    let lines = want.lines;
    if part.cut && matches!(lines, Lines::Span(..)) {
        part.bytes.truncate(form.whole_characters(&part.bytes));
    }
    let (content, wrong) = fit(&mut part, want, form, newline);
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
    let ended = matches!(lines, Lines::Last(_)) || part.truncated;
    let next = match lines {
        Lines::Span(first, _) if part.cut => Some(first),
        Lines::Span(first, _) if part.truncated => Some(last.map_or(first, |last| last + 1)),
        _ => None,
    };
    let is_inside = part.cut && next.is_some();
    let next_byte = is_inside.then(|| want.start_byte + part.bytes.len() as u64);
    Ok(Reading {
        content,
        encoding: form.name(),
        line_count: total.unwrap_or(if ended { here.max(part.seen) } else { part.seen }),
        line_count_exact: total.is_some(),
        hash: census.map(|census| census.hash),
        first,
        last,
        next: next.filter(|next| total.is_none_or(|total| *next <= total)),
        next_byte,
        truncated: part.truncated,
        notice: notice(&part, wrong, last, next_byte),
        opened,
    })
}

/// What the numbers alone do not say.
fn notice(part: &Part, wrong: bool, last: Option<u64>, next_byte: Option<u64>) -> Option<String> {
    let mut said = Vec::new();
    match (next_byte, last) {
        (Some(byte), Some(line)) => said.push(format!(
            "Line {line} does not fit into one reply: continue with start_line {line} and start_byte {byte}."
        )),
        _ if part.cut => said.push("A line does not fit into one reply; only its end is here.".to_owned()),
        _ if part.truncated && last.is_none() => {
            said.push("Not even a line fits; raise max_bytes.".to_owned());
        }
        _ => {}
    }
    if wrong {
        said.push("Bytes that are not valid in this encoding are shown as U+FFFD.".to_owned());
    }
    (!said.is_empty()).then(|| said.join(" "))
}
