//! WordPiece tokens, as BERT without case has them. Names of special tokens in a text are plain text.

use crate::model_error::ModelError;
use crate::model_weights::{MAX_TOKENS, WORD_COUNT};
use std::collections::HashMap;
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization as _;

/// Longer words are unknown.
const MAX_WORD_CHARS: usize = 100;
/// Part of a text that is read: 254 of the longest words, and as much white space.
const MAX_TEXT_CHARS: usize = 1 << 16;
/// How the vocabulary marks pieces that continue a word.
const CONTINUATION: &str = "##";

/// The vocabulary.
pub(crate) struct WordPieces {
    starts: HashMap<Box<str>, u16>,
    continuations: HashMap<Box<str>, u16>,
    longest_bytes: usize,
    unknown: u16,
    text_start: u16,
    text_end: u16,
}

impl WordPieces {
    /// One token per line, in the order of their ids.
    pub(crate) fn new(vocabulary: &str) -> Result<Self, ModelError> {
        let (mut starts, mut continuations) = (HashMap::new(), HashMap::new());
        let mut longest_bytes = 0;
        let mut next_id = 0;
        for token in vocabulary.split_terminator('\n') {
            if usize::from(next_id) >= WORD_COUNT {
                return Err(ModelError::Pack("its vocabulary is too large"));
            }
            let former = match token.strip_prefix(CONTINUATION).filter(|piece| !piece.is_empty()) {
                Some(piece) => continuations.insert(piece.into(), next_id),
                None => starts.insert(token.into(), next_id),
            };
            if former.is_some() || token.is_empty() {
                return Err(ModelError::Pack("its vocabulary has an empty or repeated token"));
            }
            longest_bytes = longest_bytes.max(token.len());
            next_id += 1;
        }
        if usize::from(next_id) != WORD_COUNT {
            return Err(ModelError::Pack("its vocabulary is too small"));
        }
        let special = |name: &str| {
            starts.get(name).copied().ok_or(ModelError::Pack("its vocabulary lacks special tokens"))
        };
        let (unknown, text_start, text_end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        Ok(Self { starts, continuations, longest_bytes, unknown, text_start, text_end })
    }

    /// The tokens of a text with those of start and end, at most 256.
    pub(crate) fn token_ids(&self, text: &str) -> Vec<u16> {
        let mut words = Words { pieces: self, word: String::new(), chars: 0, ids: vec![self.text_start] };
        let read = text.chars().take(MAX_TEXT_CHARS).filter(|sign| !is_removed(*sign)).flat_map(spaced);
        let plain = read.nfd().filter(|sign| get_general_category(*sign) != GeneralCategory::NonspacingMark);
        for sign in plain.flat_map(char::to_lowercase) {
            words.push(sign);
            if words.ids.len() >= MAX_TOKENS {
                break;
            }
        }
        words.end_word();
        let mut ids = words.ids;
        ids.truncate(MAX_TOKENS - 1);
        ids.push(self.text_end);
        ids
    }

    /// The longest piece at the start, and its length.
    fn longest_piece(pieces: &HashMap<Box<str>, u16>, word: &str, longest: usize) -> Option<(u16, usize)> {
        let mut end = word.floor_char_boundary(longest);
        while end > 0 {
            if let Some(id) = word.get(..end).and_then(|piece| pieces.get(piece)) {
                return Some((*id, end));
            }
            end = word.floor_char_boundary(end - 1);
        }
        None
    }

    /// Appends the pieces of a word, or the unknown token if it has a part that is none.
    fn push_pieces(&self, word: &str, ids: &mut Vec<u16>) {
        let before = ids.len();
        let mut rest = word;
        let mut pieces = &self.starts;
        while !rest.is_empty() {
            let Some((id, length)) = Self::longest_piece(pieces, rest, self.longest_bytes) else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            rest = rest.get(length..).unwrap_or_default();
            pieces = &self.continuations;
        }
    }
}

/// Words of a text that is read sign by sign.
struct Words<'a> {
    pieces: &'a WordPieces,
    word: String,
    /// Of the word, including those that were not kept because it is too long.
    chars: usize,
    ids: Vec<u16>,
}

impl Words<'_> {
    fn push(&mut self, sign: char) {
        if sign.is_whitespace() {
            self.end_word();
        } else if is_punctuation(sign) {
            self.end_word();
            self.push_sign(sign);
            self.end_word();
        } else {
            self.push_sign(sign);
        }
    }

    fn push_sign(&mut self, sign: char) {
        self.chars += 1;
        if self.chars <= MAX_WORD_CHARS {
            self.word.push(sign);
        }
    }

    fn end_word(&mut self) {
        if self.chars > MAX_WORD_CHARS {
            self.ids.push(self.pieces.unknown);
        } else {
            self.pieces.push_pieces(&self.word, &mut self.ids);
        }
        self.word.clear();
        self.chars = 0;
    }
}

/// Control signs and what stands for broken text.
fn is_removed(sign: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    let is_control = || matches!(get_general_category(sign), Control | Format | PrivateUse);
    !matches!(sign, '\t' | '\n' | '\r') && (sign == '\u{fffd}' || is_control())
}

/// A Chinese sign is a word of its own.
fn spaced(sign: char) -> impl Iterator<Item = char> {
    let space = is_chinese(sign).then_some(' ');
    space.into_iter().chain([sign]).chain(space)
}

fn is_chinese(sign: char) -> bool {
    matches!(sign, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}' | '\u{2f800}'..='\u{2fa1f}')
}

fn is_punctuation(sign: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation,
        OpenPunctuation, OtherPunctuation,
    };
    let is_category = || {
        matches!(
            get_general_category(sign),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
    };
    sign.is_ascii_punctuation() || (!sign.is_ascii() && is_category())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 22] = [
        "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "run", "##ning", "cafe", ",", "!", "東", "京",
        "ⅷ", "[", "]", "cls", "##東", "#", "a", "##a", "'",
    ];

    fn vocabulary(words: &[&str]) -> String {
        let filler = (words.len()..WORD_COUNT).map(|number| format!("filler{number}"));
        words.iter().map(|word| (*word).to_owned()).chain(filler).map(|line| line + "\n").collect()
    }

    fn tokens(text: &str) -> String {
        let ids = WordPieces::new(&vocabulary(&WORDS)).unwrap().token_ids(text);
        let names: Vec<&str> = ids.iter().map(|id| WORDS[usize::from(*id)]).collect();
        names.join(" ")
    }

    #[test]
    fn texts_become_pieces() {
        for (text, expected) in [
            ("", "[CLS] [SEP]"),
            (" \t\r\n\u{a0}", "[CLS] [SEP]"),
            ("unaffable", "[CLS] un ##aff ##able [SEP]"),
            ("UNAFFABLE, Running!", "[CLS] un ##aff ##able , run ##ning ! [SEP]"),
            ("unaffablex", "[CLS] [UNK] [SEP]"),
            ("Café CAFE\u{301}", "[CLS] cafe cafe [SEP]"),
            ("東京", "[CLS] 東 京 [SEP]"),
            ("run東", "[CLS] run 東 [SEP]"),
            ("ca\u{200b}fe\0 \u{fffd}", "[CLS] cafe [SEP]"),
            ("[CLS]", "[CLS] [ cls ] [SEP]"),
            ("##a", "[CLS] # # a [SEP]"),
            ("Ⅷ", "[CLS] ⅷ [SEP]"),
            ("😀 a", "[CLS] [UNK] a [SEP]"),
            ("a'a", "[CLS] a ' a [SEP]"),
        ] {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_of_more_than_a_hundred_signs_are_unknown() {
        assert_eq!(tokens(&"a".repeat(100)), format!("[CLS] a{} [SEP]", " ##a".repeat(99)));
        assert_eq!(tokens(&"a".repeat(101)), "[CLS] [UNK] [SEP]");
    }

    #[test]
    fn long_texts_are_truncated() {
        let pieces = WordPieces::new(&vocabulary(&WORDS)).unwrap();
        for text in ["a ".repeat(1 << 20), "a".repeat(100) + &" aaaa".repeat(100), "!".repeat(1 << 20)] {
            let ids = pieces.token_ids(&text);
            assert_eq!((ids.len(), ids[255]), (256, 2));
        }
        for text in [" ", "a", "\u{301}", "東", "\u{1161}", "\u{0}"] {
            assert!(pieces.token_ids(&text.repeat(1 << 20)).len() <= 256);
        }
    }

    #[test]
    fn vocabularies_that_are_none() {
        let good = vocabulary(&WORDS);
        for bad in [
            String::new(),
            good.replacen("filler30000\n", "", 1),
            good.replacen("filler30000\n", "cafe\n", 1),
            good.replacen("filler30000\n", "\n", 1),
            good.replacen("[SEP]", "sep", 1),
            format!("{good}more\n"),
            "a\n".repeat(1 << 20),
        ] {
            assert!(matches!(WordPieces::new(&bad), Err(ModelError::Pack(_))));
        }
    }
}
