//! Removes text that is invisible to people from what reaches the model.

use octo_toolkit::hidden_text::strip_hidden;

/// One line of visible text: drops hidden characters and collapses white space.
pub fn single_line(text: &str) -> String {
    let spaced: String =
        text.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter }).collect();
    multi_line(&spaced).split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Several lines of visible text. A page is not a terminal: what follows an escape character is text.
pub fn multi_line(text: &str) -> String {
    strip_hidden(&text.replace('\u{1b}', "")).text.into_owned()
}

/// Truncates to `max_chars` characters, with an ellipsis.
pub fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_do_not_pass() {
        for hidden in
            ['\u{1b}', '\u{e0041}', '\u{200b}', '\u{202e}', '\u{feff}', '\u{e000}', '\u{ad}', '\u{9b}']
        {
            assert_eq!(single_line(&format!("a{hidden}b")), "ab", "{hidden:?}");
        }
        assert_eq!(
            single_line("a\u{fe00}\u{fe01}\u{fe02}"),
            "a\u{fe00}",
            "a run of selectors carries a message"
        );
        assert_eq!(single_line("  two \n\t words "), "two words");
        assert_eq!(multi_line("a\n\tb\u{1b}[31m"), "a\n\tb[31m");
    }

    #[test]
    fn joiners_within_words_stay() {
        for word in ["👨\u{200d}👩", "می\u{200c}خواهم"] {
            assert_eq!(single_line(word), word);
        }
        assert_eq!(single_line("a\u{200d}b"), "ab");
        assert_eq!(single_line("❤\u{fe0f}"), "❤\u{fe0f}");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(truncate("köln", 4), "köln");
        assert_eq!(truncate("köln am rhein", 5), "köln…");
    }
}
