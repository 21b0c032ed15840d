//! How large the answer of a tool may be. A tool that shortens its answer itself ends at a line, a row or an item, and can
//! say where the rest begins.

use octo_model::{Json, ToolError, json_len};
use serde::Serialize;

/// An answer has this much room for its content, even where its other members use up the budget.
const MIN_CONTENT_BYTES: usize = 256;

/// Bytes of JSON that the typed answer of one call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyBudget(usize);

impl ReplyBudget {
    /// Of calls that no hub makes.
    pub const UNLIMITED: Self = Self(usize::MAX / 4);

    pub const fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// What is left beside members that take `bytes`.
    pub fn remaining_after(self, bytes: usize) -> usize {
        self.0.saturating_sub(bytes).max(MIN_CONTENT_BYTES)
    }

    /// What is left for the content beside an answer that lacks nothing else.
    pub fn remaining_beside(self, answer: &impl Serialize) -> Result<usize, ToolError> {
        let rest = Json::try_of(answer).map_err(ToolError::internal)?;
        Ok(self.remaining_after(rest.bytes().len()))
    }
}

/// The longest beginning of a text that takes at most `room` bytes inside a JSON string. It ends with a line, unless the
/// first line alone is too long.
pub fn prefix_within(text: &str, room: usize) -> &str {
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += json_len(c.encode_utf8(&mut [0; 4]));
        if used > room {
            let part = text.get(..end).unwrap_or_default();
            let line = part.rfind('\n').map(|at| at + 1);
            return line.and_then(|line| part.get(..line)).unwrap_or(part);
        }
        end = at + c.len_utf8();
    }
    text
}

/// The longest end of a text that takes at most `room` bytes inside a JSON string. It begins with a line, unless the last
/// line alone is too long.
pub fn suffix_within(text: &str, room: usize) -> &str {
    let mut used = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        used += json_len(c.encode_utf8(&mut [0; 4]));
        if used > room {
            let is_line = text.get(..start).is_some_and(|before| before.ends_with('\n'));
            let part = text.get(start..).unwrap_or_default();
            let line = part.find('\n').map(|at| at + 1).filter(|line| *line < part.len());
            return line.filter(|_| !is_line).and_then(|line| part.get(line..)).unwrap_or(part);
        }
        start = at;
    }
    text
}

/// How many of the first items fit into an array of `room` bytes.
pub fn count_fitting<T: Serialize>(items: &[T], room: usize) -> Result<usize, ToolError> {
    let mut used = 2;
    for (at, item) in items.iter().enumerate() {
        used += Json::try_of(item).map_err(ToolError::internal)?.bytes().len() + 1;
        if used > room {
            return Ok(at);
        }
    }
    Ok(items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_and_begin_at_lines() {
        let rows = [
            ("one\ntwo\nthree", 100, "one\ntwo\nthree", "one\ntwo\nthree"),
            ("one\ntwo\nthree", 15, "one\ntwo\nthree", "one\ntwo\nthree"),
            ("one\ntwo\nthree", 14, "one\ntwo\n", "two\nthree"),
            ("one\ntwo\nthree", 10, "one\ntwo\n", "two\nthree"),
            ("one\ntwo\nthree", 9, "one\n", "three"),
            ("one\ntwo\nthree", 3, "one", "ree"),
            ("one\ntwo\n", 5, "one\n", "two\n"),
            ("one\ntwo\n", 3, "one", "o\n"),
            ("ääää", 5, "ää", "ää"),
            ("\u{1}\u{1}", 6, "\u{1}", "\u{1}"),
            ("", 0, "", ""),
        ];
        for (text, room, first, last) in rows {
            assert_eq!(prefix_within(text, room), first, "{text:?} {room}");
            assert_eq!(suffix_within(text, room), last, "{text:?} {room}");
        }
    }

    #[test]
    fn items_fit_whole_or_not_at_all() {
        let rows = [(0, 0), (7, 1), (8, 1), (11, 1), (12, 2), (100, 3)];
        for (room, fit) in rows {
            assert_eq!(count_fitting(&["ab", "cd", "ef"], room).unwrap(), fit, "{room}");
        }
    }
}
