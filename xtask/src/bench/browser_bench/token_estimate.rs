//! Token estimate, the same for both products.

/// Approximate letters per token of a byte-pair vocabulary; digits come in threes.
const LETTERS_PER_TOKEN: usize = 7;
const DIGITS_PER_TOKEN: usize = 3;

/// Splits a text as such vocabularies do: a word includes the space before it, digits by threes, punctuation by twos
/// with the line break after it, an indent is one; a long word is several, and so is each non-ASCII letter.
pub fn estimate_tokens(text: &str) -> usize {
    let mut count = 0;
    let (mut before, mut kind, mut run) = (CharClass::Space, CharClass::Space, 0_usize);
    for letter in text.chars().chain(['\0']) {
        let next = CharClass::of(letter);
        if next != kind {
            let with_marks = kind == CharClass::Line && before == CharClass::Mark;
            count += if with_marks { 0 } else { kind.tokens(run) };
            (before, kind, run) = (kind, next, 0);
        }
        run += 1;
    }
    count
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Space,
    Line,
    Word,
    Digit,
    Mark,
    Other,
    End,
}

impl CharClass {
    fn of(letter: char) -> Self {
        match letter {
            '\0' => Self::End,
            '\n' | '\r' => Self::Line,
            ' ' | '\t' => Self::Space,
            _ if letter.is_ascii_digit() => Self::Digit,
            _ if letter.is_ascii_alphabetic() => Self::Word,
            _ if letter.is_ascii() => Self::Mark,
            _ => Self::Other,
        }
    }

    fn tokens(self, run: usize) -> usize {
        match self {
            // One space belongs to the word after it.
            Self::Space => usize::from(run > 1),
            Self::Line => usize::from(run > 0),
            Self::Word => run.div_ceil(LETTERS_PER_TOKEN),
            Self::Digit => run.div_ceil(DIGITS_PER_TOKEN),
            Self::Mark => run.div_ceil(2),
            Self::Other => run,
            Self::End => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::estimate_tokens;

    #[test]
    fn a_text_is_cut_as_a_vocabulary_would() {
        for (text, count) in [
            ("", 0),
            ("one two three", 3),
            ("12345", 2),
            ("- link \"Home\" [ref=e12]:\n  - /url: /\n", 17),
            ("unquestionably", 2),
            ("über", 2),
        ] {
            assert_eq!(estimate_tokens(text), count, "{text:?}");
        }
    }
}
