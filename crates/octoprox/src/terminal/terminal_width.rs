//! How wide the terminal is, and lines that fit it.

use std::io::IsTerminal;

/// Where nobody says: wide enough for everybody.
const DEFAULT_WIDTH: usize = 80;
/// Longer lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;

/// Columns for what is printed: what COLUMNS or the terminal says, within reason.
pub fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let seen = || rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(seen).filter(|columns| *columns > 0).unwrap_or(DEFAULT_WIDTH).clamp(MIN_WIDTH, MAX_WIDTH)
}

/// Whether a person reads what is said on standard error; programs get each sentence on one line.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// The words of a text in lines of at most so many letters; a longer word has a line of its own.
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
