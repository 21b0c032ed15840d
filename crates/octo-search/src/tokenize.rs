//! Tokenization for the index: words without case, accents and suffixes, and without stop words.

use crate::stem;
use unicode_normalization::UnicodeNormalization as _;

/// Stop words: they occur in every query and carry no information.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she", "should",
    "so", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "us", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will",
    "with", "would", "you", "your",
];

/// Longer words are keys, hashes or base64; a prefix is enough.
const MAX_WORD_LEN: usize = 40;

/// The words of a text in order. If all of them are stop words, these are kept.
pub fn tokenize(text: &str) -> Vec<String> {
    let all = split(text);
    let telling: Vec<String> = all.iter().filter(|word| !is_stop_word(word)).map(|word| stem(word)).collect();
    if telling.is_empty() { all } else { telling }
}

/// Whether a lower-case word carries no information.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Lower case without accents, single spaces: what two spellings of one name have in common.
pub fn normalize_name(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.nfkc().flat_map(char::to_lowercase));
    }
    folded
}

fn split(text: &str) -> Vec<String> {
    let mut splitter = Splitter::default();
    if text.is_ascii() {
        text.chars().for_each(|letter| splitter.push(letter));
    } else {
        text.nfkd().filter(|letter| !is_accent(*letter)).for_each(|letter| splitter.push(letter));
    }
    splitter.end();
    splitter.words
}

#[derive(Default)]
struct Splitter {
    words: Vec<String>,
    word: String,
    /// Start of a part of an identifier such as `memoryQuery`.
    part: usize,
    parts: bool,
    was_small: bool,
}

impl Splitter {
    fn push(&mut self, letter: char) {
        if !letter.is_alphanumeric() {
            // `don't` is one word.
            if !matches!(letter, '\'' | '’') {
                self.end();
            }
            return;
        }
        if is_single_char_word(letter) {
            self.end();
            self.words.push(letter.to_string());
            return;
        }
        if letter.is_uppercase() && self.was_small {
            self.parts = true;
            self.end_part();
        }
        self.was_small = letter.is_lowercase();
        if self.word.len() < MAX_WORD_LEN {
            self.word.extend(letter.to_lowercase());
        }
    }

    fn end_part(&mut self) {
        if let Some(part) = self.word.get(self.part..).filter(|part| !part.is_empty()) {
            self.words.push(part.to_owned());
        }
        self.part = self.word.len();
    }

    fn end(&mut self) {
        if self.parts {
            self.end_part();
        }
        if !self.word.is_empty() {
            self.words.push(std::mem::take(&mut self.word));
        }
        (self.part, self.parts, self.was_small) = (0, false, false);
    }
}

pub(crate) fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Scripts without spaces between words.
pub(crate) fn is_single_char_word(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' | '\u{e00}'..='\u{eff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_the_words_that_tell_something() {
        let rows: &[(&str, &[&str])] = &[
            ("Where does Ada work?", &["ada", "work"]),
            ("She deployed the services", &["deploy", "servic"]),
            ("Café au lait, naïve", &["cafe", "au", "lait", "naiv"]),
            ("memory_query", &["memori", "queri"]),
            ("PaymentService v2", &["payment", "servic", "paymentservic", "v2"]),
            ("don't", &["dont"]),
            ("The Who", &["the", "who"]),
            ("東京タワー", &["東", "京", "タ", "ワ", "ー"]),
            ("ＦＵＬＬ ｗｉｄｔｈ", &["full", "width"]),
            ("", &[]),
            ("?!", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(&tokenize(text), expected, "{text}");
        }
    }

    #[test]
    fn the_list_of_common_words_is_in_order() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn spellings_of_one_name_fold_to_one() {
        assert_eq!(normalize_name("  Ada   LOVELACE "), "ada lovelace");
        assert_ne!(normalize_name("Ada"), normalize_name("Áda"));
    }
}
