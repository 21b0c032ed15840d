//! Removes colours and cursor movements from text for parsing. Replies to callers retain them.

/// Removes escape sequences from the text.
pub fn strip_ansi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => {
                // Parameters, then one letter.
                while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            Some(']') => {
                // A title or a link, up to BEL or ST.
                while let Some(c) = chars.next() {
                    if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn sequences_go_and_text_stays() {
        let rows = [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[1;38;5;12mx\u{1b}[K", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}", "link"),
            ("\u{1b}(Bx", "Bx"),
            ("\u{1b}[", ""),
            ("ä\u{1b}[2mß", "äß"),
        ];
        for (text, plain) in rows {
            assert_eq!(super::strip_ansi(text), plain, "{text:?}");
        }
    }
}
