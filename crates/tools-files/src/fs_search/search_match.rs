//! A match as returned to the caller.

use schemars::JsonSchema;
use serde::Serialize;

/// Longer lines are truncated around the match.
const MAX_LINE_BYTES: usize = 500;
/// Bytes of a truncated line before the match.
const LEAD_BYTES: usize = 100;

#[derive(Serialize, JsonSchema, Debug, Default, PartialEq, Eq)]
pub struct SearchMatch {
    /// The file; pass it to other tools unchanged.
    pub path: String,
    /// Line number, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Start of the match in the line, in characters from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The line, or the part of it around the match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the line is longer than text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Number of matching lines of the file; only with counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The lines before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The lines after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

impl SearchMatch {
    /// A line and the start of the match in it.
    pub fn new(number: u64, line: &[u8], start: usize) -> Self {
        let line = body(line);
        let start = start.min(line.len());
        let (text, cut) = part(line, start);
        let before = line.get(..start).unwrap_or_default();
        let column = String::from_utf8_lossy(before).chars().count() + 1;
        Self { line: Some(number), column: Some(column), text: Some(text), cut, ..Self::default() }
    }

    /// Approximate size in memory.
    pub fn size(&self) -> usize {
        let around: usize = self.before.iter().chain(&self.after).map(String::len).sum();
        self.text.as_ref().map_or(0, String::len) + around + 128
    }
}

/// A context line of a match.
pub fn context_line(line: &[u8]) -> String {
    part(body(line), 0).0
}

/// A line without its ending.
fn body(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The returned part of a line, whole characters only.
fn part(line: &[u8], start: usize) -> (String, bool) {
    if line.len() <= MAX_LINE_BYTES {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let end = (start.saturating_sub(LEAD_BYTES) + MAX_LINE_BYTES).min(line.len());
    let (mut from, mut to) = (end - MAX_LINE_BYTES, end);
    while from < to && is_inside(line, from) {
        from += 1;
    }
    while to > from && is_inside(line, to) {
        to -= 1;
    }
    (String::from_utf8_lossy(line.get(from..to).unwrap_or_default()).into_owned(), true)
}

/// Whether a position is within a character.
fn is_inside(line: &[u8], at: usize) -> bool {
    line.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_line_ends_are_left_out() {
        for (line, start, column, text) in [
            (&b"abc\n"[..], 1, 2, "abc"),
            ("äöü x\r\n".as_bytes(), 7, 5, "äöü x"),
            (b"\xff\xffx", 2, 3, "\u{fffd}\u{fffd}x"),
            (b"", 0, 1, ""),
        ] {
            let hit = SearchMatch::new(7, line, start);
            assert_eq!(
                (hit.line, hit.column, hit.text.as_deref(), hit.cut),
                (Some(7), Some(column), Some(text), false)
            );
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        for (before, after) in [(0, 5_000), (90, 5_000), (2_000, 2_000), (5_000, 0), (5_000, 1)] {
            let line = format!("{}needle{}", "ä".repeat(before), "ö".repeat(after));
            let hit = SearchMatch::new(1, line.as_bytes(), 2 * before);
            let text = hit.text.unwrap();
            assert!(
                hit.cut && text.contains("needle") && text.len() <= MAX_LINE_BYTES,
                "{before} {after}: {text}"
            );
            assert!(!text.contains('\u{fffd}'), "{text}");
            assert_eq!(hit.column, Some(before + 1));
        }
    }
}
