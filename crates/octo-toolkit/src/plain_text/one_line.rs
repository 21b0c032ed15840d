//! Values that must stay on one line: names of files, titles, and messages may contain line breaks.

use std::borrow::Cow;

/// The text with its line breaks escaped, so that it cannot begin a line of its own. A carriage return at the end stays:
/// it belongs to the line.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    let (line, end) = text.strip_suffix('\r').map_or((text, ""), |line| (line, "\r"));
    // Most lines are ASCII, which is checked many bytes at a time.
    let is_plain = line.bytes().all(|byte| byte.is_ascii() && !(b'\n'..=b'\r').contains(&byte));
    if is_plain || !line.contains(is_line_break) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in line.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            c if is_line_break(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown.push_str(end);
    Cow::Owned(shown)
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_escaped() {
        for (text, shown) in [
            ("a b\tc", "a b\tc"),
            ("a\nexit_code: 0", "a\\nexit_code: 0"),
            ("a\rb\r", "a\\rb\r"),
            ("é\u{2028}x\u{85}", "é\\u{2028}x\\u{85}"),
        ] {
            assert_eq!(one_line(text), shown);
        }
    }
}
