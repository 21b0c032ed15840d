//! Deterministic words for large generated pages.

const WORDS: [&str; 96] = [
    "harbour",
    "the",
    "of",
    "a",
    "compiler",
    "small",
    "and",
    "in",
    "memory",
    "with",
    "slow",
    "on",
    "measured",
    "for",
    "octopus",
    "that",
    "network",
    "its",
    "under",
    "steady",
    "from",
    "when",
    "pressure",
    "letters",
    "between",
    "two",
    "engines",
    "over",
    "winter",
    "after",
    "a",
    "long",
    "the",
    "signal",
    "has",
    "shown",
    "several",
    "islands",
    "without",
    "loss",
    "of",
    "order",
    "which",
    "people",
    "built",
    "by",
    "hand",
    "to",
    "carry",
    "water",
    "through",
    "stone",
    "gardens",
    "while",
    "most",
    "of",
    "the",
    "older",
    "records",
    "were",
    "kept",
    "at",
    "sea",
    "and",
    "read",
    "aloud",
    "each",
    "evening",
    "because",
    "nobody",
    "trusted",
    "paper",
    "in",
    "salt",
    "air",
    "so",
    "that",
    "an",
    "index",
    "became",
    "necessary",
    "before",
    "the",
    "first",
    "survey",
    "could",
    "be",
    "published",
    "as",
    "one",
    "volume",
    "rather",
    "than",
    "many",
    "loose",
    "sheets",
];

/// Pseudorandom number generator.
pub struct WordGenerator(u64);

impl WordGenerator {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    pub fn word(&mut self) -> &'static str {
        let at = usize::try_from(self.below(WORDS.len() as u64)).unwrap_or_default();
        WORDS.get(at).copied().unwrap_or_default()
    }

    /// This many words.
    pub fn words(&mut self, many: usize) -> String {
        let words: Vec<&str> = (0..many).map(|_| self.word()).collect();
        words.join(" ")
    }

    /// This many words, capitalized.
    pub fn title(&mut self, many: usize) -> String {
        let text = self.words(many);
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }
}
