//! What a page writes and a person cannot see does not reach the model either.

/// One line of visible text: hidden characters are dropped, white space is one space.
pub fn line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut gap = false;
    for (at, letter) in text.char_indices() {
        if letter.is_whitespace() {
            gap = !clean.is_empty();
        } else if !is_hidden(letter, text, at) {
            if std::mem::take(&mut gap) {
                clean.push(' ');
            }
            clean.push(letter);
        }
    }
    clean
}

/// Several lines of visible text.
pub fn block(text: &str) -> String {
    text.char_indices()
        .filter(|&(at, letter)| letter == '\n' || letter == '\t' || !is_hidden(letter, text, at))
        .map(|(_, letter)| letter)
        .collect()
}

/// At most so many characters, with a mark where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
    }
}

fn is_hidden(letter: char, text: &str, at: usize) -> bool {
    match letter {
        // Joiners mean something between the letters of emoji and of Persian and Indic words.
        '\u{200c}' | '\u{200d}' => !stands_in_word(text, at, letter.len_utf8()),
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' => true,
        '\u{e0000}'..='\u{10ffff}' => true,
        other => u32::from(other) & 0xfffe == 0xfffe,
    }
}

fn stands_in_word(text: &str, at: usize, length: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(at + length..).and_then(|after| after.chars().next());
    let is_joined = |letter: char| u32::from(letter) >= 0x600 && !is_hidden(letter, "", 0);
    before.is_some_and(is_joined) && after.is_some_and(is_joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_do_not_pass() {
        for hidden in
            ['\u{1b}', '\u{e0041}', '\u{200b}', '\u{202e}', '\u{feff}', '\u{e000}', '\u{ad}', '\u{9b}']
        {
            assert_eq!(line(&format!("a{hidden}b")), "ab", "{hidden:?}");
        }
        assert_eq!(line("  two \n\t words "), "two words");
        assert_eq!(block("a\n\tb\u{1b}[31m"), "a\n\tb[31m");
    }

    #[test]
    fn joiners_within_words_stay() {
        for word in ["👨\u{200d}👩", "می\u{200c}خواهم"] {
            assert_eq!(line(word), word);
        }
        assert_eq!(line("a\u{200d}b"), "ab");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("köln", 4), "köln");
        assert_eq!(cut("köln am rhein", 5), "köln…");
    }
}
