//! The words of identifiers and texts for the index with weighted fields: camelCase and snake_case are split, and
//! scripts without spaces become pairs of characters. `tokenize` serves the other indexes and splits differently.

use crate::tokenize::{is_accent, is_single_char_word};
use unicode_normalization::UnicodeNormalization as _;

/// Longer words are keys, hashes or base64; a prefix is enough.
const MAX_WORD_CHARS: usize = 40;

/// Calls `receive` with the words of a text in order: lower case, without accents, not stemmed. An identifier such as
/// `readFile` is followed by its whole (`read`, `file`, `readfile`).
pub(crate) fn split_words(text: &str, receive: impl FnMut(&str)) {
    let mut splitter = WordSplitter { receive, word: Vec::new(), lower: String::new(), run: Run::default() };
    if text.is_ascii() {
        text.chars().for_each(|letter| splitter.push(letter));
    } else {
        text.nfkd().filter(|letter| !is_accent(*letter)).nfc().for_each(|letter| splitter.push(letter));
    }
    splitter.end();
}

/// What two spellings of one identifier have in common: its letters and digits in lower case.
pub(crate) fn identifier_key(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Adjacent characters of a script without spaces.
#[derive(Default)]
struct Run {
    last: Option<char>,
    has_pair: bool,
}

struct WordSplitter<F> {
    receive: F,
    /// The current word as written.
    word: Vec<char>,
    /// A buffer for what is passed on.
    lower: String,
    run: Run,
}

impl<F: FnMut(&str)> WordSplitter<F> {
    fn push(&mut self, letter: char) {
        if !letter.is_alphanumeric() {
            // `don't` is one word.
            if !matches!(letter, '\'' | '’') {
                self.end();
            }
        } else if is_single_char_word(letter) || is_hangul(letter) {
            self.end_word();
            self.push_unspaced(letter);
        } else {
            self.end_run();
            if self.word.len() < MAX_WORD_CHARS {
                self.word.push(letter);
            }
        }
    }

    fn push_unspaced(&mut self, letter: char) {
        if let Some(last) = self.run.last.replace(letter) {
            self.run.has_pair = true;
            self.pass_on([last, letter]);
        }
    }

    fn end(&mut self) {
        self.end_word();
        self.end_run();
    }

    /// A character on its own is a word.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if let Some(last) = run.last.filter(|_| !run.has_pair) {
            self.pass_on([last]);
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let mut start = 0;
        for at in 1..word.len() {
            if is_boundary(&word, at) {
                self.pass_on(word.get(start..at).unwrap_or_default().iter().copied());
                start = at;
            }
        }
        if start > 0 {
            self.pass_on(word.get(start..).unwrap_or_default().iter().copied());
        }
        self.pass_on(word.iter().copied());
        self.word = word;
        self.word.clear();
    }

    fn pass_on(&mut self, letters: impl IntoIterator<Item = char>) {
        self.lower.clear();
        self.lower.extend(letters.into_iter().flat_map(char::to_lowercase));
        (self.receive)(&self.lower);
    }
}

/// Whether a part of an identifier begins here: `read|File`, `HTTP|Server`, but `URLs`.
fn is_boundary(word: &[char], at: usize) -> bool {
    let letter = |index: usize| word.get(index).copied();
    let (Some(before), Some(here)) = (letter(at.wrapping_sub(1)), letter(at)) else { return false };
    if !here.is_uppercase() {
        return false;
    }
    if !before.is_uppercase() {
        return true;
    }
    let is_plural = letter(at + 1) == Some('s') && letter(at + 2).is_none_or(char::is_uppercase);
    letter(at + 1).is_some_and(char::is_lowercase) && !is_plural
}

/// Korean has spaces, but joins particles to its words.
fn is_hangul(letter: char) -> bool {
    matches!(letter, '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_texts_become_words() {
        let rows = [
            ("create_document", "create document"),
            ("get-weather.by city", "get weather by city"),
            ("readFile", "read file readfile"),
            ("HTTPServer", "http server httpserver"),
            ("listURLs", "list urls listurls"),
            ("getPDFText2", "get pdf text2 getpdftext2"),
            ("s3Bucket", "s3 bucket s3bucket"),
            ("GitHub's API", "git hubs githubs api"),
            ("Café naïve", "cafe naive"),
            ("東京タワー", "東京 京タ タワ ワー"),
            ("PDF文件 图 tool", "pdf 文件 图 tool"),
            ("使用、搜索", "使用 搜索"),
            ("검색하기", "검색 색하 하기"),
            ("ガス", "ガス"),
            ("ＦＵＬＬ", "full"),
            ("", ""),
            ("?! _-_", ""),
        ];
        for (text, expected) in rows {
            let mut words = Vec::new();
            split_words(text, |word| words.push(word.to_owned()));
            assert_eq!(words.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_have_a_limit() {
        let mut words = Vec::new();
        split_words(&"x".repeat(1_000_000), |word| words.push(word.len()));
        assert_eq!(words, [MAX_WORD_CHARS]);
    }

    #[test]
    fn spellings_of_an_identifier_have_one_key() {
        for spelling in ["docs__create_document", "docs.createDocument", "Docs create-document"] {
            assert_eq!(identifier_key(spelling), "docscreatedocument");
        }
        assert_eq!(identifier_key("_-"), "");
    }
}
