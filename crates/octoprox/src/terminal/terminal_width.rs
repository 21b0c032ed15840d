//! Terminal width and line wrapping.

use std::io::IsTerminal;

/// Width if it is unknown.
const DEFAULT_WIDTH: usize = 80;
/// Longer lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;

/// Returns the width for output: COLUMNS or the width of the terminal, within limits.
pub fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let seen = || rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(seen).filter(|columns| *columns > 0).unwrap_or(DEFAULT_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH)
}

/// Returns whether standard error is a terminal. Otherwise messages are not wrapped.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Wraps text at `room` characters. A longer word gets its own line.
pub fn wrap_words(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole() {
        for (text, lines) in [
            ("", &[][..]),
            ("one two three", &["one two", "three"]),
            ("one two", &["one two"]),
            ("https://example.com/ is long", &["https://example.com/", "is long"]),
            ("  a\n b ", &["a b"]),
        ] {
            assert_eq!(wrap_words(text, 8), lines, "{text}");
        }
    }
}
