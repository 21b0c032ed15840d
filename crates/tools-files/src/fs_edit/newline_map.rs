//! Text with CRLF normalized to LF, and the mapping back to the original offsets.

use std::borrow::Cow;
use std::ops::Range;

pub struct NewlineMap<'a> {
    pub text: Cow<'a, str>,
    /// Offsets in the normalized text of newlines that were CRLF.
    crlf_positions: Vec<usize>,
}

impl<'a> NewlineMap<'a> {
    pub fn new(raw: &'a str) -> Self {
        if !raw.contains("\r\n") {
            return Self { text: Cow::Borrowed(raw), crlf_positions: Vec::new() };
        }
        let mut text = String::with_capacity(raw.len());
        let mut folds = Vec::new();
        let mut pieces = raw.split("\r\n").peekable();
        while let Some(piece) = pieces.next() {
            text.push_str(piece);
            if pieces.peek().is_some() {
                folds.push(text.len());
                text.push('\n');
            }
        }
        Self { text: Cow::Owned(text), crlf_positions: folds }
    }

    fn raw(&self, at: usize) -> usize {
        at + self.crlf_positions.partition_point(|fold| *fold < at)
    }

    /// Maps a range of the normalized text to the original.
    pub fn to_raw_range(&self, range: Range<usize>) -> Range<usize> {
        self.raw(range.start)..self.raw(range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_finds_back() {
        let raw = "a\r\nb\nc\r\n\r\nd";
        let folded = NewlineMap::new(raw);
        assert_eq!(folded.text, "a\nb\nc\n\nd");
        let rows =
            [("a\nb", "a\r\nb"), ("\nb", "\r\nb"), ("b\nc\n", "b\nc\r\n"), ("\n\n", "\r\n\r\n"), ("d", "d")];
        for (needle, wanted) in rows {
            let at = folded.text.find(needle).unwrap();
            assert_eq!(&raw[folded.to_raw_range(at..at + needle.len())], wanted, "{needle:?}");
        }
    }
}
