//! Scans a file of any length in blocks: counts lines and finds the requested ones.

use crate::content::content_hash;
use crate::content::encoding::TextEncoding;
use octo_toolkit::ToolError;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// Even, so that a block never splits a UTF-16 code unit.
const BLOCK_BYTES: usize = 64 * 1024;

/// Byte sequence of a newline in the file's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newline {
    Byte,
    Utf16Le,
    Utf16Be,
}

impl Newline {
    pub fn from_encoding(form: TextEncoding) -> Self {
        match form.is_utf16() {
            false => Self::Byte,
            true if form.encoding == encoding_rs::UTF_16LE => Self::Utf16Le,
            true => Self::Utf16Be,
        }
    }

    fn width(self) -> usize {
        if self == Self::Byte { 1 } else { 2 }
    }

    /// Position after the first newline.
    fn past_first(self, bytes: &[u8]) -> Option<usize> {
        let at = match self {
            Self::Byte => memchr::memchr(b'\n', bytes),
            wide => bytes.chunks_exact(2).position(|pair| wide.matches(pair)).map(|pair| pair * 2),
        };
        at.map(|at| at + self.width())
    }

    /// Position after the last newline.
    fn past_last(self, bytes: &[u8]) -> Option<usize> {
        let at = match self {
            Self::Byte => memchr::memrchr(b'\n', bytes),
            wide => bytes.chunks_exact(2).rposition(|pair| wide.matches(pair)).map(|pair| pair * 2),
        };
        at.map(|at| at + self.width())
    }

    fn count(self, bytes: &[u8]) -> u64 {
        let found = match self {
            Self::Byte => memchr::memchr_iter(b'\n', bytes).count(),
            wide => bytes.chunks_exact(2).filter(|pair| wide.matches(pair)).count(),
        };
        found as u64
    }

    fn matches(self, pair: &[u8]) -> bool {
        pair == if self == Self::Utf16Le { b"\n\0" } else { b"\0\n" }
    }

    fn ends(self, bytes: &[u8]) -> bool {
        self.past_last(bytes) == Some(bytes.len())
    }

    /// Number of lines in a part of a file that starts at a line.
    pub fn lines(self, bytes: &[u8]) -> u64 {
        self.count(bytes) + u64::from(!bytes.is_empty() && !self.ends(bytes))
    }
}

/// Called between blocks; an error ends the scan.
pub type CancelCheck<'a> = &'a dyn Fn() -> Result<(), ToolError>;

/// Fills the buffer, or reads to the end of the source.
pub fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, ToolError> {
    let mut full = 0;
    while let Some(rest) = buffer.get_mut(full..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(more) => full += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(full)
}

fn read_error(error: std::io::Error) -> ToolError {
    ToolError::unavailable("The file could not be read completely.").hint("Try again.").detail(error)
}

/// Calls `look` with every block until it stops the scan.
fn blocks(
    source: &mut impl Read,
    check: CancelCheck<'_>,
    mut look: impl FnMut(&[u8]) -> bool,
) -> Result<(), ToolError> {
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        check()?;
        let full = read_full(source, &mut buffer)?;
        let block = buffer.get(..full).unwrap_or_default();
        if block.is_empty() || !look(block) || full < BLOCK_BYTES {
            return Ok(());
        }
    }
}

/// Hash and line count of a whole file.
pub struct FileSummary {
    pub hash: String,
    pub lines: u64,
}

pub fn summarize(
    source: &mut impl Read,
    newline: Newline,
    check: CancelCheck<'_>,
) -> Result<FileSummary, ToolError> {
    let (mut hash, mut lines, mut open) = (content_hash::Sha256Stream::new(), 0, false);
    blocks(source, check, |block| {
        hash.update(block);
        lines += newline.count(block);
        open = !newline.ends(block);
        true
    })?;
    Ok(FileSummary { hash: hash.finish(), lines: lines + u64::from(open) })
}

/// The requested part of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilePart {
    pub bytes: Vec<u8>,
    /// Requested lines are missing because the part would be too large.
    pub truncated: bool,
    /// One line is incomplete.
    pub has_partial_line: bool,
    /// Lines scanned from the start of the file.
    pub lines_seen: u64,
}

/// Line range: first and last line (from 1), and the number of bytes of the first line to skip.
#[derive(Debug, Clone, Copy)]
pub struct LineSpan {
    pub first: u64,
    pub last: u64,
    pub skip_bytes: u64,
}

/// Returns the lines of a span, at most `cap` bytes.
pub fn lines(
    source: &mut impl Read,
    newline: Newline,
    LineSpan { first, last, skip_bytes: skip }: LineSpan,
    cap: usize,
    check: CancelCheck<'_>,
) -> Result<FilePart, ToolError> {
    let mut part = FilePart::default();
    let (mut line, mut inside) = (1, false);
    let mut skip = usize::try_from(skip).unwrap_or(usize::MAX / 2);
    skip -= skip % newline.width();
    let mut is_past = false;
    blocks(source, check, |block| {
        let mut rest = block;
        while !rest.is_empty() && line <= last {
            let (piece, ended) = match newline.past_first(rest) {
                Some(end) => (rest.get(..end).unwrap_or(rest), true),
                None => (rest, false),
            };
            rest = rest.get(piece.len()..).unwrap_or_default();
            let skipped = if line == first { skip.min(piece.len()) } else { 0 };
            skip -= skipped;
            if ended && skipped > 0 && skipped == piece.len() {
                is_past = true;
                return false;
            }
            let piece = piece.get(skipped..).unwrap_or_default();
            if line >= first && !part.take(piece, cap) {
                return false;
            }
            line += u64::from(ended);
            inside = !ended;
        }
        line <= last
    })?;
    part.lines_seen = line - 1 + u64::from(inside);
    if is_past || (skip > 0 && line >= first && part.bytes.is_empty()) {
        return Err(ToolError::invalid(format!("Line {first} ends before start_byte."))
            .hint("Use next_byte of the previous reply as start_byte, or omit it."));
    }
    if part.truncated {
        part.truncate_end(cap, newline);
        part.lines_seen = (first - 1) + newline.lines(&part.bytes);
    }
    Ok(part)
}

impl FilePart {
    /// Drops everything after the last complete line within `cap` bytes. Of a longer line, the start remains.
    pub fn truncate_end(&mut self, cap: usize, newline: Newline) {
        self.truncated = true;
        self.bytes.truncate(cap);
        let whole = newline.past_last(&self.bytes);
        self.has_partial_line = whole.is_none();
        self.bytes.truncate(whole.unwrap_or(self.bytes.len() - self.bytes.len() % newline.width()));
    }

    /// Drops everything before the first complete line within the last `cap` bytes. Of a longer line, the end remains.
    pub fn truncate_start(&mut self, cap: usize, newline: Newline) {
        self.truncated = true;
        let over = self.bytes.len().saturating_sub(cap);
        let before = over.saturating_sub(newline.width());
        let line = self.bytes.get(before..).and_then(|rest| newline.past_first(rest));
        let line = line.map(|past| past + before).filter(|at| *at < self.bytes.len());
        self.has_partial_line = line.is_none();
        self.drop_front(line.unwrap_or_else(|| self.start_of_character(over, newline)));
    }

    /// Returns false if the piece does not fit.
    fn take(&mut self, piece: &[u8], cap: usize) -> bool {
        let room = cap.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(piece.get(..room).unwrap_or(piece));
        self.truncated = piece.len() > room;
        !self.truncated
    }
}

/// Returns the last `count` lines, scanned from the end, at most `cap` bytes.
pub fn tail(
    source: &mut (impl Read + Seek),
    newline: Newline,
    (count, size): (u64, u64),
    cap: usize,
    check: CancelCheck<'_>,
) -> Result<FilePart, ToolError> {
    let cap = cap - cap % newline.width();
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let (mut start, mut length, mut lines) = (size, 0, 0);
    // One more line than requested proves that the first requested one is complete.
    while start > 0 && lines <= count && length <= cap + newline.width() {
        check()?;
        let step =
            if start % BLOCK_BYTES as u64 == 0 { BLOCK_BYTES as u64 } else { start % BLOCK_BYTES as u64 };
        start -= step;
        let mut block = vec![0; usize::try_from(step).unwrap_or(BLOCK_BYTES)];
        source.seek(SeekFrom::Start(start)).map_err(read_error)?;
        let full = read_full(source, &mut block)?;
        block.truncate(full);
        lines += if blocks.is_empty() { newline.lines(&block) } else { newline.count(&block) };
        length += block.len();
        blocks.push(block);
    }
    blocks.reverse();
    let mut part = FilePart { bytes: blocks.concat(), ..FilePart::default() };
    part.drop_front(part.start_of_last(newline, count));
    if part.bytes.len() > cap {
        part.truncate_start(cap, newline);
    }
    Ok(part)
}

impl FilePart {
    fn drop_front(&mut self, bytes: usize) {
        self.bytes.drain(..bytes.min(self.bytes.len()));
    }

    /// Position of the last `count` lines.
    fn start_of_last(&self, newline: Newline, count: u64) -> usize {
        let mut surplus = newline.lines(&self.bytes).saturating_sub(count);
        let mut at = 0;
        while surplus > 0 {
            let rest = self.bytes.get(at..).unwrap_or_default();
            at += newline.past_first(rest).unwrap_or(rest.len());
            surplus -= 1;
        }
        at
    }

    fn start_of_character(&self, at: usize, newline: Newline) -> usize {
        if newline != Newline::Byte {
            return at + at % 2;
        }
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn go() -> Result<(), ToolError> {
        Ok(())
    }

    fn take(text: &str, first: u64, last: u64, cap: usize) -> (String, bool, bool, u64) {
        let span = LineSpan { first, last, skip_bytes: 0 };
        let part = lines(&mut text.as_bytes(), Newline::Byte, span, cap, &go).unwrap();
        (String::from_utf8(part.bytes).unwrap(), part.truncated, part.has_partial_line, part.lines_seen)
    }

    #[test]
    fn lines_by_number() {
        let text = "one\ntwo\nthree";
        let rows = [
            ((1, u64::MAX, 100), ("one\ntwo\nthree", false, false, 3)),
            ((2, 2, 100), ("two\n", false, false, 2)),
            ((3, 9, 100), ("three", false, false, 3)),
            ((4, 9, 100), ("", false, false, 3)),
            ((1, u64::MAX, 13), ("one\ntwo\nthree", false, false, 3)),
            ((1, u64::MAX, 12), ("one\ntwo\n", true, false, 2)),
            ((3, 3, 2), ("th", true, true, 3)),
        ];
        for ((first, last, cap), (content, truncated, cut, seen)) in rows {
            assert_eq!(
                take(text, first, last, cap),
                (content.to_owned(), truncated, cut, seen),
                "{first} {cap}"
            );
        }
    }

    #[test]
    fn a_long_line_is_read_in_parts() {
        let from = |skip, cap| {
            let span = LineSpan { first: 2, last: 9, skip_bytes: skip };
            lines(&mut &b"one\nabcdefgh\nend"[..], Newline::Byte, span, cap, &go)
                .map(|part| (part.bytes, part.has_partial_line))
        };
        assert_eq!(from(0, 3).unwrap(), (b"abc".to_vec(), true));
        assert_eq!(from(3, 3).unwrap(), (b"def".to_vec(), true));
        assert_eq!(from(6, 3).unwrap(), (b"gh\n".to_vec(), false));
        assert_eq!(from(6, 100).unwrap(), (b"gh\nend".to_vec(), false));
        assert!(from(9, 100).is_err());
        assert!(from(99, 100).is_err());
    }

    #[test]
    fn the_head_of_an_endless_file_is_read_without_the_rest() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0 += 1;
                assert!(self.0 < 3, "more was read than needed");
                buffer.iter_mut().zip(b"ab\n".iter().cycle()).for_each(|(to, from)| *to = *from);
                Ok(buffer.len())
            }
        }
        let part =
            lines(&mut Endless(0), Newline::Byte, LineSpan { first: 1, last: 2, skip_bytes: 0 }, 1000, &go)
                .unwrap();
        assert_eq!(part.bytes, b"ab\nab\n");
    }

    #[test]
    fn the_tail_is_found_from_the_end() {
        let long = (1..=100_000).map(|line| format!("line {line}\n")).collect::<String>();
        let tails = |text: &str, count, cap| {
            let size = text.len() as u64;
            let part = tail(&mut Cursor::new(text), Newline::Byte, (count, size), cap, &go).unwrap();
            (String::from_utf8(part.bytes).unwrap(), part.truncated, part.has_partial_line)
        };
        assert_eq!(tails(&long, 2, 1000), ("line 99999\nline 100000\n".into(), false, false));
        assert_eq!(tails("a\nb", 1, 1000), ("b".into(), false, false));
        assert_eq!(tails("a\nb\n", 5, 1000), ("a\nb\n".into(), false, false));
        assert_eq!(tails("", 5, 1000), (String::new(), false, false));
        assert_eq!(tails(&long, 5, 25), ("line 99999\nline 100000\n".into(), true, false));
        assert_eq!(tails(&long, 5, 23), ("line 99999\nline 100000\n".into(), true, false));
        assert_eq!(tails(&long, u64::MAX, 12), ("line 100000\n".into(), true, false));
        assert_eq!(tails("aäöü\n", 1, 4), ("ü\n".into(), true, true));
        assert_eq!(tails(&long, u64::MAX, 5_000_000).0.len(), long.len());
    }

    #[test]
    fn wide_text_has_lines_too() {
        let wide: Vec<u8> = "a\nĊb\nc".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let census = summarize(&mut wide.as_slice(), Newline::Utf16Le, &go).unwrap();
        assert_eq!(census.lines, 3);
        let span = LineSpan { first: 2, last: 2, skip_bytes: 0 };
        let part = lines(&mut wide.as_slice(), Newline::Utf16Le, span, 100, &go).unwrap();
        assert_eq!(part.bytes, "Ċb\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
        let size = wide.len() as u64;
        let part = tail(&mut Cursor::new(&wide), Newline::Utf16Le, (1, size), 100, &go).unwrap();
        assert_eq!(part.bytes, b"c\0");
    }

    #[test]
    fn a_cancelled_walk_ends() {
        let stop = || Err(ToolError::invalid("stop"));
        assert!(summarize(&mut &b"a"[..], Newline::Byte, &stop).is_err());
    }
}
