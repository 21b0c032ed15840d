//! English stemming, so that a query finds other forms of a word: Porter's algorithm of 1980, with his later
//! rule for a final `y`. Published stemmer crates have had no release for years.

/// The stem of a lower-case word. Short words and words with other characters are their own stem.
pub fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|letter| letter.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(word.as_bytes().to_vec());
    word.plural();
    word.past_and_progressive();
    word.last_y();
    word.first_match(DOUBLE_SUFFIXES, 0);
    word.first_match(SINGLE_SUFFIXES, 0);
    word.long_suffix();
    word.tidy_end();
    String::from_utf8(word.0).unwrap_or_default()
}

/// Endings and their replacements; a longer ending comes before its own suffixes.
type Endings = &'static [(&'static str, &'static str)];

const DOUBLE_SUFFIXES: Endings = &[
    ("ational", "ate"),
    ("ization", "ize"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("alli", "al"),
    ("ator", "ate"),
    ("logi", "log"),
    ("bli", "ble"),
    ("eli", "e"),
];

const SINGLE_SUFFIXES: Endings = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

const LONG_SUFFIXES: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive",
    "ize", "al", "er", "ic", "ou",
];

struct Word(Vec<u8>);

impl Word {
    fn ends(&self, ending: &str) -> bool {
        self.0.ends_with(ending.as_bytes())
    }

    /// The part before an ending of this length.
    fn before(&self, ending: usize) -> &[u8] {
        self.0.get(..self.0.len().saturating_sub(ending)).unwrap_or_default()
    }

    fn replace(&mut self, ending: usize, with: &str) {
        self.0.truncate(self.0.len().saturating_sub(ending));
        self.0.extend_from_slice(with.as_bytes());
    }

    fn plural(&mut self) {
        if self.ends("sses") || self.ends("ies") {
            self.replace(2, "");
        } else if self.ends("s") && !self.ends("ss") {
            self.replace(1, "");
        }
    }

    fn past_and_progressive(&mut self) {
        if self.ends("eed") {
            if measure(self.before(3)) > 0 {
                self.replace(1, "");
            }
            return;
        }
        let ending = if self.ends("ed") { 2 } else { 3 };
        if !(self.ends("ed") || self.ends("ing")) || !has_vowel(self.before(ending)) {
            return;
        }
        self.replace(ending, "");
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.replace(0, "e");
        } else if doubled(&self.0) && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.replace(1, "");
        } else if measure(&self.0) == 1 && short(&self.0) {
            self.replace(0, "e");
        }
    }

    fn last_y(&mut self) {
        let last = self.before(1).len().saturating_sub(1);
        if self.ends("y") && last > 0 && consonant(&self.0, last) {
            self.replace(1, "i");
        }
    }

    fn first_match(&mut self, endings: Endings, least: usize) {
        let found = endings.iter().find(|(ending, _)| self.ends(ending));
        if let Some((ending, with)) = found.filter(|(ending, _)| measure(self.before(ending.len())) > least) {
            self.replace(ending.len(), with);
        }
    }

    fn long_suffix(&mut self) {
        let Some(ending) = LONG_SUFFIXES.iter().find(|ending| self.ends(ending)) else { return };
        let before = self.before(ending.len());
        let fits = *ending != "ion" || matches!(before.last(), Some(b's' | b't'));
        if fits && measure(before) > 1 {
            self.replace(ending.len(), "");
        }
    }

    fn tidy_end(&mut self) {
        if self.ends("e") {
            let before = self.before(1);
            let count = measure(before);
            if count > 1 || (count == 1 && !short(before)) {
                self.replace(1, "");
            }
        }
        if self.ends("ll") && measure(self.before(1)) > 1 {
            self.replace(1, "");
        }
    }
}

fn consonant(word: &[u8], at: usize) -> bool {
    match word.get(at) {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => false,
        Some(b'y') => at == 0 || !consonant(word, at - 1),
        _ => true,
    }
}

/// Number of vowel-consonant sequences.
fn measure(word: &[u8]) -> usize {
    (1..word.len()).filter(|at| consonant(word, *at) && !consonant(word, at - 1)).count()
}

fn has_vowel(word: &[u8]) -> bool {
    (0..word.len()).any(|at| !consonant(word, at))
}

fn doubled(word: &[u8]) -> bool {
    let last = word.len().saturating_sub(1);
    last > 0 && word.get(last) == word.get(last - 1) && consonant(word, last)
}

/// Ends with consonant, vowel, consonant, as in `hop`.
fn short(word: &[u8]) -> bool {
    let last = word.len().saturating_sub(1);
    last > 1
        && consonant(word, last)
        && !consonant(word, last - 1)
        && consonant(word, last - 2)
        && !matches!(word.last(), Some(b'w' | b'x' | b'y'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let rows = [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("relational", "relat"),
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("adoption", "adopt"),
            ("deployment", "deploy"),
            ("deploying", "deploy"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controlling", "control"),
            ("deployed", "deploy"),
            ("flies", "fli"),
            ("fly", "fli"),
            ("go", "go"),
            ("größe", "größe"),
            ("v2", "v2"),
        ];
        for (word, expected) in rows {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
