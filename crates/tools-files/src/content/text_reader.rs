//! Reads text from a file: which lines, how much of them, in which encoding. Shared by `fs_read_text`
//! and `fs_read_many`.

use crate::content::byte_scanner::{self, CancelCheck, FilePart, FileSummary, LineSpan, Newline};
use crate::content::encoding::{self, EncodingChoice, TextEncoding};
use octo_toolkit::fs::{OpenFile, Read};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError, json_len};
use std::io::{Cursor, Seek};

/// Up to this size a file is read completely for its hash and exact line count.
pub const MAX_HASHED_BYTES: u64 = 64 << 20;
/// Upper limit for the caller's `max_bytes`.
pub const MAX_READ_BYTES: u64 = 16 << 20;
/// Bytes for detecting the type and encoding of a file, besides the requested part.
const HEAD_BYTES: usize = 64 * 1024;

/// Line selection, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSelection {
    Span(u64, u64),
    Last(u64),
}

/// Minimum size of a part, so that continued reading always makes progress.
const MIN_PART_BYTES: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct ReadRequest {
    pub lines: LineSelection,
    pub encoding: EncodingChoice,
    pub max_bytes: u64,
    /// Bytes of the first line to skip.
    pub start_byte: u64,
    /// Bytes available for the text in the reply.
    pub reply_budget: usize,
    /// Whether lines are numbered, which needs space, too.
    pub numbered: bool,
}

pub struct ReadResult {
    pub content: String,
    pub opened: OpenFile,
    pub encoding: String,
    pub line_count: u64,
    pub line_count_exact: bool,
    pub hash: Option<String>,
    /// Absent if nothing was returned, or if the line number of a huge file's tail is unknown.
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub next: Option<u64>,
    /// Offset in line `next` of its remainder.
    pub next_byte: Option<u64>,
    pub truncated: bool,
    pub notice: Option<String>,
}

pub fn read(
    fs: &Fs<Read>,
    place: &RootedPath,
    want: ReadRequest,
    cx: &CallContext,
) -> Result<ReadResult, ToolError> {
    let mut opened = fs.open_file(place)?;
    let check = || cx.check();
    // One byte more than the file has, to detect its end.
    let mut head =
        vec![0; usize::try_from(opened.stat.size).map_or(HEAD_BYTES, |size| HEAD_BYTES.min(size + 1))];
    let head_room = head.len();
    let full = byte_scanner::read_full(&mut opened.file, &mut head)?;
    head.truncate(full);
    // The newline's width must be known before the lines are; a file that is not text fails below.
    let newline = encoding::detect(want.encoding, &head, &head).map_or(Newline::Byte, Newline::from_encoding);
    // A small file is read once, so that hash, count and text are consistent.
    let (census, part) = match full < head_room {
        true => scan_file(&mut Cursor::new(&head), full as u64, newline, want, &check)?,
        false => scan_file(&mut opened.file, opened.stat.size, newline, want, &check)?,
    };
    let form = encoding::detect(want.encoding, &head, &part.bytes)
        .map_err(|binary| binary.to_error(&place.display()))?;
    answer(opened, want, part, census, form, newline)
}

fn scan_file(
    source: &mut (impl std::io::Read + Seek),
    size: u64,
    newline: Newline,
    want: ReadRequest,
    check: CancelCheck<'_>,
) -> Result<(Option<FileSummary>, FilePart), ToolError> {
    let cap = usize::try_from(want.max_bytes.min(MAX_READ_BYTES)).unwrap_or(usize::MAX).max(MIN_PART_BYTES);
    let census = match size <= MAX_HASHED_BYTES {
        true => {
            source.rewind().map_err(ToolError::internal)?;
            Some(byte_scanner::summarize(source, newline, check)?)
        }
        false => None,
    };
    source.rewind().map_err(ToolError::internal)?;
    let part = match want.lines {
        LineSelection::Span(first, last) => {
            let span = LineSpan { first, last, skip_bytes: want.start_byte };
            byte_scanner::lines(source, newline, span, cap, check)?
        }
        LineSelection::Last(count) => byte_scanner::tail(source, newline, (count, size), cap, check)?,
    };
    Ok((census, part))
}

/// Decodes the part, dropping lines until the text fits the reply.
fn fit(part: &mut FilePart, want: ReadRequest, form: TextEncoding, newline: Newline) -> (String, bool) {
    loop {
        let (content, wrong) = form.decode(&part.bytes, !part.has_partial_line);
        let size = json_len(&content) + if want.numbered { numbering(&content, want.lines) } else { 0 };
        if size <= want.reply_budget || part.bytes.len() <= MIN_PART_BYTES {
            return (content, wrong);
        }
        let cap = part.bytes.len().saturating_mul(want.reply_budget) / size;
        match want.lines {
            LineSelection::Span(..) => part.truncate_end(cap.max(MIN_PART_BYTES), newline),
            LineSelection::Last(_) => part.truncate_start(cap.max(MIN_PART_BYTES), newline),
        }
        if part.has_partial_line && matches!(want.lines, LineSelection::Span(..)) {
            part.bytes.truncate(form.whole_char_len(&part.bytes));
        }
    }
}

/// Upper bound of the space for line numbers in the reply.
fn numbering(content: &str, lines: LineSelection) -> usize {
    let count = crate::content::text_lines::count(content);
    let digits = match lines {
        LineSelection::Span(first, _) => first.saturating_add(count).to_string().len(),
        LineSelection::Last(_) => 20,
    };
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(digits + json_len("\t"))
}

fn answer(
    opened: OpenFile,
    want: ReadRequest,
    mut part: FilePart,
    census: Option<FileSummary>,
    form: TextEncoding,
    newline: Newline,
) -> Result<ReadResult, ToolError> {
    let lines = want.lines;
    if part.has_partial_line && matches!(lines, LineSelection::Span(..)) {
        part.bytes.truncate(form.whole_char_len(&part.bytes));
    }
    let (content, wrong) = fit(&mut part, want, form, newline);
    let here = newline.lines(&part.bytes);
    let total = census.as_ref().map(|census| census.lines);
    let first = match lines {
        LineSelection::Span(first, _) => Some(first),
        LineSelection::Last(_) => total.map(|total| total - here.min(total) + 1),
    };
    if let (LineSelection::Span(first, _), 0) = (lines, here)
        && first > 1
        && !part.truncated
    {
        let count = total.unwrap_or(part.lines_seen);
        return Err(ToolError::invalid(format!("The file has {count} lines; line {first} is past its end."))
            .hint("Request lines within that range, or the last ones with tail."));
    }
    let first = first.filter(|_| here > 0);
    let last = first.map(|first| first + here - 1);
    let ended = matches!(lines, LineSelection::Last(_)) || part.truncated;
    let next = match lines {
        LineSelection::Span(first, _) if part.has_partial_line => Some(first),
        LineSelection::Span(first, _) if part.truncated => Some(last.map_or(first, |last| last + 1)),
        _ => None,
    };
    let is_inside = part.has_partial_line && next.is_some();
    let next_byte = is_inside.then(|| want.start_byte + part.bytes.len() as u64);
    Ok(ReadResult {
        content,
        encoding: form.name(),
        line_count: total.unwrap_or(if ended { here.max(part.lines_seen) } else { part.lines_seen }),
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

/// Notices about the returned part.
fn notice(part: &FilePart, wrong: bool, last: Option<u64>, next_byte: Option<u64>) -> Option<String> {
    let mut said = Vec::new();
    match (next_byte, last) {
        (Some(byte), Some(line)) => said.push(format!(
            "Line {line} does not fit into one reply: continue with start_line {line} and start_byte {byte}."
        )),
        _ if part.has_partial_line => {
            said.push("A line does not fit into one reply; only its end is here.".to_owned())
        }
        _ if part.truncated && last.is_none() => {
            said.push("Not even one line fits; raise max_bytes.".to_owned());
        }
        _ => {}
    }
    if wrong {
        said.push("Bytes that are not valid in this encoding are shown as U+FFFD.".to_owned());
    }
    (!said.is_empty()).then(|| said.join(" "))
}
