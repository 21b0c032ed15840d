//! Two-column tables for terminals, and sanitizing of untrusted text.

use crate::terminal::terminal_width::wrap_words;

const COLUMN_GAP: usize = 2;
/// Maximum width of the first column.
const MAX_NAME_WIDTH: usize = 28;

/// Renders lines of name and text. Texts are truncated, names are not.
pub fn two_columns(rows: &[(String, String)], width: usize) -> String {
    let first = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let room = width.saturating_sub(first + COLUMN_GAP);
    let lines = rows.iter().map(|(name, text)| {
        let line = format!("{name:first$}{:COLUMN_GAP$}{}", "", fit_sentence(text, room));
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Renders indented lines of name and complete text, which is wrapped in its column.
pub fn definition_list(rows: &[(String, String)], width: usize) -> String {
    let widths = rows.iter().map(|(name, _)| name.chars().count());
    let first = widths.filter(|width| *width <= MAX_NAME_WIDTH).max().unwrap_or_default();
    let room = width.saturating_sub(first + 2 * COLUMN_GAP);
    let mut text = String::new();
    for (name, about) in rows {
        let mut lines = wrap_words(about, room).into_iter();
        let apart = name.chars().count() > first;
        let beside = if apart { String::new() } else { lines.next().unwrap_or_default() };
        let line = format!("{:COLUMN_GAP$}{name:first$}{:COLUMN_GAP$}{beside}", "", "");
        text.push_str(line.trim_end());
        text.push('\n');
        for line in lines {
            text.push_str(&format!("{:indent$}{line}\n", "", indent = first + 2 * COLUMN_GAP));
        }
    }
    text
}

/// Returns the first sentence if it fits, else its first clause, else as many words as fit.
fn fit_sentence(text: &str, room: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split_once(". ").map_or(line.as_str(), |(first, _)| first).trim_end_matches('.');
    let pause = [sentence.find("; "), sentence.find(": ")].into_iter().flatten().min();
    let clause = pause.and_then(|at| sentence.get(..at)).unwrap_or(sentence);
    for whole in [sentence, clause] {
        if whole.chars().count() <= room {
            return whole.to_owned();
        }
    }
    let short = wrap_words(clause, room.saturating_sub(1)).into_iter().next().unwrap_or_default();
    short.trim_end_matches([',', ':', ';']).to_owned() + "…"
}

/// Replaces control characters and bidirectional overrides in untrusted text. Keeps newlines and tabs.
pub fn sanitize_text(text: &str) -> String {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c);
    text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect()
}

/// Like `sanitize_text`, for text within a line: newlines and tabs are escaped.
pub fn sanitize_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => line.extend(c.escape_default()),
            c if c.is_control() || is_invisible(c) => line.push('\u{fffd}'),
            c => line.push(c),
        }
    }
    line
}

/// Like `sanitize_line`, but makes visible which characters there were.
pub fn escape_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => line.push_str("    "),
            c if c.is_control() || is_invisible(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Characters that are invisible or change how others are displayed.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let rows = [
            ("short".to_owned(), "Does it. And more.".to_owned()),
            ("a_name_of_forty_six_letters_which_is_the_limit".to_owned(), "word ".repeat(30)),
        ];
        let text = two_columns(&rows, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().next().unwrap().ends_with("  Does it"), "{text}");
    }

    #[test]
    fn texts_are_cut_where_they_pause() {
        for (text, fit) in [
            ("Reads it. And more", "Reads it"),
            ("Reads it; fails when it is gone", "Reads it"),
            ("Reads it: all of it, or a part", "Reads it"),
            ("Reads what is in the file, whole", "Reads what is in the…"),
            ("Reads files, folders, and links", "Reads files, folders…"),
        ] {
            assert_eq!(fit_sentence(text, 22), fit, "{text}");
        }
    }

    #[test]
    fn long_texts_go_on_beneath_themselves() {
        let rows = [
            ("url=TEXT".to_owned(), "Address of the page, http or https.".to_owned()),
            ("a_name_that_is_longer_than_the_column=TEXT".to_owned(), "Below.".to_owned()),
            ("n".to_owned(), String::new()),
        ];
        let text = definition_list(&rows, 32);
        let wanted = "  url=TEXT  Address of the page,\n            http or https.\n  \
                      a_name_that_is_longer_than_the_column=TEXT\n            Below.\n  n\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn strange_letters_are_shown_as_such() {
        assert_eq!(sanitize_text("a\u{1b}[2J\u{202e}b\n"), "a\u{fffd}[2J\u{fffd}b\n");
        assert_eq!(sanitize_line("a\n\r\tb\u{85}\u{2028}\u{1b}c"), "a\\n\\r\\tb\u{fffd}\u{fffd}\u{fffd}c");
    }
}
