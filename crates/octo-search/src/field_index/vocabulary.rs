//! The terms of texts, for the time of one change: each word is stemmed once.

use super::Field;
use super::postings::TermId;
use crate::field_words::split_words;
use crate::stem;
use crate::tokenize::is_stop_word;
use std::collections::HashMap;

/// Bytes of a field that are read.
const MAX_FIELD_BYTES: usize = 8 * 1024;

#[derive(Default)]
pub(super) struct Vocabulary {
    words: HashMap<Box<str>, Word>,
}

#[derive(Clone, Copy)]
struct Word {
    term: TermId,
    is_stop_word: bool,
}

impl Vocabulary {
    /// Appends the terms of a text with their field. Stop words are left out unless there is nothing else.
    pub(super) fn read(&mut self, field: Field, text: &str, terms: &mut Vec<(TermId, Field)>) {
        let start = terms.len();
        let text = text.get(..text.floor_char_boundary(MAX_FIELD_BYTES)).unwrap_or_default();
        let mut stop_words = Vec::new();
        split_words(text, |word| {
            let word = self.word(word);
            let list = if word.is_stop_word { &mut stop_words } else { &mut *terms };
            list.push((word.term, field));
        });
        if terms.len() == start {
            terms.append(&mut stop_words);
        }
    }

    fn word(&mut self, text: &str) -> Word {
        if let Some(word) = self.words.get(text) {
            return *word;
        }
        let is_stop_word = is_stop_word(text);
        let term = if is_stop_word { TermId::new(text) } else { TermId::new(&stem(text)) };
        let word = Word { term, is_stop_word };
        self.words.insert(text.into(), word);
        word
    }
}
