//! The beginning and the end of a long text.

use octo_model::{Json, json_len};
use octo_toolkit::reply_budget::{prefix_within, suffix_within};

/// Room for the line between both.
const MARK_BYTES: usize = 60;
/// Of a text whose JSON is longer, only as much is parsed as can be shown.
const MAX_PARSED_BYTES: usize = 4 << 20;
/// Bytes of JSON for one byte of the text, at most.
const MAX_ESCAPE_BYTES: usize = 6;

/// A JSON string within `budget` bytes. Two thirds are of its beginning and the rest of its end, each a number of whole
/// lines, if lines are not too long.
pub fn preview_text(text: &Json, budget: usize) -> Option<Json> {
    if text.bytes().len() <= budget {
        return Some(text.clone());
    }
    let raw = text.as_str().strip_prefix('"')?.strip_suffix('"')?;
    let room = budget.saturating_sub(MARK_BYTES);
    let (head, tail) = if raw.len() <= MAX_PARSED_BYTES {
        let text = text.to_text()?;
        (text.clone(), text)
    } else {
        let most = room.saturating_mul(MAX_ESCAPE_BYTES).min(MAX_PARSED_BYTES);
        (beginning_of_escaped(raw, most)?, end_of_escaped(raw, most).unwrap_or_default())
    };
    let end = suffix_within(&tail, room / 3);
    let beginning = prefix_within(&head, room - room / 3);
    let line_end = if beginning.ends_with('\n') || beginning.is_empty() { "" } else { "\n" };
    let hidden = raw.len().saturating_sub(json_len(beginning) + json_len(end));
    Some(Json::text(&format!("{beginning}{line_end}[… {hidden} bytes left out …]\n{end}")))
}

/// The text of the first `room` bytes of an escaped one. A truncated escape sequence is dropped.
fn beginning_of_escaped(raw: &str, room: usize) -> Option<String> {
    let part = raw.get(..raw.floor_char_boundary(room))?;
    let mut ends = (0..12).filter_map(|less| part.get(..part.len().checked_sub(less)?));
    ends.find_map(unescape)
}

/// The lines at the end of an escaped text, or the end of its last line if that is longer.
fn end_of_escaped(raw: &str, room: usize) -> Option<String> {
    let from = raw.ceil_char_boundary(raw.len().saturating_sub(room));
    // A backslash that is itself escaped begins no line break.
    let is_break = |at: &usize| {
        let before = raw.bytes().take(*at).rev();
        before.take_while(|byte| *byte == b'\\').count() % 2 == 0
    };
    let mut breaks = raw.get(from..)?.match_indices("\\n").map(|(at, _)| from + at);
    let start = breaks.find(is_break).map(|at| at + 2).or_else(|| plain_start(raw, from))?;
    unescape(raw.get(start..)?)
}

/// The first place from here on that no escape sequence reaches.
fn plain_start(raw: &str, from: usize) -> Option<usize> {
    let is_plain = |at: &usize| {
        let before = raw.as_bytes().get(at.saturating_sub(MAX_ESCAPE_BYTES)..*at).unwrap_or_default();
        raw.is_char_boundary(*at) && !before.contains(&b'\\')
    };
    (from..raw.len()).find(is_plain)
}

fn unescape(raw: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_shown() {
        let lines: String = (0..1_000).map(|at| format!("line {at}\n")).collect();
        let shown = preview_text(&Json::text(&lines), 300).unwrap();
        let text = shown.to_text().unwrap();
        assert!(shown.bytes().len() <= 300 && text.len() > 200, "{text}");
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("\nline 998\nline 999\n"), "{text}");
        assert!(text.contains("\n[… 9"), "{text}");
        for text in ["x".repeat(10_000), "\u{1}\\\"é".repeat(3_000), "\\n".repeat(9_000), "\n".repeat(9_000)]
        {
            for budget in [0, 10, 61, 100, 1_000] {
                let shown = preview_text(&Json::text(&text), budget).unwrap();
                assert!(shown.bytes().len() <= budget.max(100), "{budget}: {shown}", shown = shown.as_str());
            }
        }
        assert_eq!(preview_text(&Json::text("a\nb"), 100).unwrap().as_str(), r#""a\nb""#);
        assert_eq!(preview_text(&Json::of(&1), 0), None);
    }

    #[test]
    fn long_texts_are_parsed_in_part() {
        let line = "a \\n\\ \"line\" é\u{1F600}\n";
        let lines = line.repeat((MAX_PARSED_BYTES / line.len()) + 1_000);
        for more in 0..12 {
            let text = format!("{}{lines}the end", "x".repeat(more));
            let text = preview_text(&Json::text(&text), 1_000).unwrap().to_text().unwrap();
            assert!(text.ends_with(&format!("\n{line}the end")), "{text}");
            assert!(text.contains(" bytes left out …]\na "), "{text}");
        }
        let long = "y".repeat(MAX_PARSED_BYTES * 2);
        let text = preview_text(&Json::text(&long), 1_000).unwrap().to_text().unwrap();
        assert!(text.ends_with("y".repeat(300).as_str()), "{text}");
        let escapes = "\u{1}\\\u{1F600}".repeat(MAX_PARSED_BYTES / 4);
        let text = preview_text(&Json::text(&format!("{escapes}the end")), 1_000).unwrap().to_text().unwrap();
        // What an escape sequence could reach is left out.
        assert!(text.ends_with(" left out …]\ne end"), "{text}");
    }
}
