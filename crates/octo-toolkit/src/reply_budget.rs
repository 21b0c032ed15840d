//! Reply budgets. A tool that truncates its reply by itself does so at a line, row or item, and can tell
//! where the rest starts.

use octo_model::{Json, ToolError, json_len};
use serde::{Deserialize, Serialize};

/// Minimum room for content, even if other members exceed the budget.
const MIN_CONTENT_BYTES: usize = 256;

/// Maximum bytes of JSON in the structured reply of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyBudget(usize);

impl ReplyBudget {
    /// For calls without a hub.
    pub const UNLIMITED: Self = Self(usize::MAX / 4);

    pub const fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Room that is left beside members of `bytes` bytes.
    pub fn remaining_after(self, bytes: usize) -> usize {
        self.0.saturating_sub(bytes).max(MIN_CONTENT_BYTES)
    }

    /// Room for the content beside an otherwise complete reply.
    pub fn remaining_beside(self, answer: &impl Serialize) -> Result<usize, ToolError> {
        let rest = Json::try_of(answer).map_err(ToolError::internal)?;
        Ok(self.remaining_after(rest.bytes().len()))
    }
}

/// The longest prefix of a text that takes at most `room` bytes in a JSON string. It ends at a line end,
/// unless the first line alone is too long.
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

/// The longest suffix of a text that takes at most `room` bytes in a JSON string. It starts at a line start,
/// unless the last line alone is too long.
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

/// Number of leading items that fit into an array of `room` bytes.
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
