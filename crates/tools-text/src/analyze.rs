//! `text_analyze`.

use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;
use unicode_segmentation::UnicodeSegmentation;

/// Average reading speed.
const WORDS_PER_MINUTE: f64 = 238.0;
const MAX_FREQUENT_WORDS: usize = 10;

/// Counts characters, words, sentences, lines and tokens of a text, estimates reading time and readability, and lists
/// its frequent words. An empty text returns zeros. Prefer text_summarize for its content.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The text to analyze.
    text: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Characters as a person counts them, including white space.
    characters: usize,
    /// Words in the sense of Unicode, in any script.
    words: usize,
    /// Distinct words, ignoring case.
    unique_words: usize,
    /// Sentences.
    sentences: usize,
    /// Lines.
    lines: usize,
    /// Blocks of text between empty lines.
    paragraphs: usize,
    /// Estimated reading time in seconds.
    reading_time_s: u64,
    /// Estimated number of tokens for a language model.
    estimated_tokens: usize,
    /// Average words per sentence.
    words_per_sentence: f64,
    /// Flesch reading ease, for text in Latin letters: 90 is very easy, 30 hard. Designed for English.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading_ease: Option<f64>,
    /// The most frequent words of more than three letters.
    frequent_words: Vec<WordCount>,
}

#[derive(Serialize, JsonSchema)]
struct WordCount {
    /// The word in lower case.
    word: String,
    /// Number of occurrences.
    count: usize,
}

pub struct Analyze;

impl Tool for Analyze {
    const NAME: &'static str = "text_analyze";
    const TITLE: &'static str = "Analyze text";
    const KEYWORDS: &'static str = "count words characters tokens length readability statistics";
    const REQUESTS: &'static [&'static str] = &[
        "how many words does my essay have",
        "how long does it take to read this text",
        "is the paragraph easy to read",
        "number of tokens of this prompt",
        "which words occur most in the speech",
        "character count for a tweet",
        "sentences and paragraphs in the draft, by number",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("Counts of two sentences", json!({"text": "The cat sat. The dog ran away."}))]
    }

    async fn run(&self, input: Input, (): (), _cx: &CallContext) -> Result<Output, ToolError> {
        Ok(analyze(&input.text))
    }
}

/// Number of sentences that contain a word. Counted one by one: the crate's size hint is wrong at the end of a text.
fn count_sentences(text: &str) -> usize {
    let mut count = 0;
    for part in text.split_sentence_bounds() {
        count += usize::from(part.unicode_words().next().is_some());
    }
    count
}

fn analyze(text: &str) -> Output {
    let words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
    let sentences = count_sentences(text);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in &words {
        *counts.entry(word).or_default() += 1;
    }
    let average = if sentences == 0 { 0.0 } else { words.len() as f64 / sentences as f64 };
    Output {
        characters: text.graphemes(true).count(),
        words: words.len(),
        unique_words: counts.len(),
        sentences,
        lines: text.lines().count(),
        paragraphs: count_paragraphs(text),
        reading_time_s: (words.len() as f64 * 60.0 / WORDS_PER_MINUTE).ceil() as u64,
        estimated_tokens: text.len().div_ceil(4),
        words_per_sentence: round_to_tenth(average),
        reading_ease: reading_ease(&words, average),
        frequent_words: frequent_words(&counts),
    }
}

fn count_paragraphs(text: &str) -> usize {
    let mut lines = text.lines().map(|line| !line.trim().is_empty());
    let first = lines.next();
    let mut count = usize::from(first == Some(true));
    let mut before = first.unwrap_or(false);
    for full in lines {
        count += usize::from(full && !before);
        before = full;
    }
    count
}

fn frequent_words(counts: &HashMap<&str, usize>) -> Vec<WordCount> {
    let mut ranked: Vec<(&str, usize)> = counts
        .iter()
        .map(|(word, count)| (*word, *count))
        .filter(|(word, count)| *count > 1 && word.chars().count() > 3)
        .collect();
    ranked.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    ranked.truncate(MAX_FREQUENT_WORDS);
    ranked.into_iter().map(|(word, count)| WordCount { word: word.to_owned(), count }).collect()
}

/// `None` if syllables cannot be counted by vowels.
fn reading_ease(words: &[String], words_per_sentence: f64) -> Option<f64> {
    let latin = words.iter().filter(|word| word.chars().all(|letter| letter.is_ascii() || is_latin(letter)));
    if words.is_empty() || latin.count() * 10 < words.len() * 9 {
        return None;
    }
    let syllables: usize = words.iter().map(|word| count_syllables(word)).sum();
    Some(round_to_tenth(
        206.835 - 1.015 * words_per_sentence - 84.6 * (syllables as f64 / words.len() as f64),
    ))
}

fn is_latin(letter: char) -> bool {
    ('\u{c0}'..='\u{24f}').contains(&letter) || letter == '\u{2019}'
}

/// Counts groups of vowels, except a silent e at the end.
fn count_syllables(word: &str) -> usize {
    let vowel = |letter: char| "aeiouyäöüáéíóúàèìòùâêîôû".contains(letter);
    let mut groups = 0;
    let mut before = false;
    for letter in word.chars() {
        groups += usize::from(vowel(letter) && !before);
        before = vowel(letter);
    }
    let silent = word.ends_with('e') && !word.ends_with("le") && groups > 1;
    (groups - usize::from(silent)).max(1)
}

fn round_to_tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_any_script() {
        for (text, characters, words, sentences, lines) in [
            ("", 0, 0, 0, 0),
            ("The cat sat. The dog ran away.", 30, 7, 2, 1),
            ("Dr. Who?\nYes!", 13, 3, 3, 2),
            ("naïve café 👩‍👩‍👧", 12, 2, 1, 1),
            ("日本語です。", 6, 5, 1, 1),
            ("...\n\n---", 8, 0, 0, 3),
        ] {
            let got = analyze(text);
            assert_eq!(
                (got.characters, got.words, got.sentences, got.lines),
                (characters, words, sentences, lines),
                "{text}"
            );
        }
    }

    #[test]
    fn paragraphs_stand_between_empty_lines() {
        for (text, count) in [("", 0), ("a", 1), ("a\nb\n\n\nc\n", 2), ("\n\na", 1)] {
            assert_eq!(count_paragraphs(text), count, "{text:?}");
        }
    }

    #[test]
    fn easy_text_is_easier_than_hard_text_and_other_scripts_have_no_figure() {
        let easy = analyze("The cat sat on the mat. It was fat.").reading_ease.unwrap();
        let hard = analyze(
            "Institutional considerations necessitate comprehensive interdepartmental communication.",
        );
        assert!(easy > 90.0 && hard.reading_ease.unwrap() < 0.0);
        assert!(analyze("Это простой текст.").reading_ease.is_none());
    }

    #[test]
    fn the_time_follows_the_words() {
        let text = "word ".repeat(2380);
        let got = analyze(&text);
        assert_eq!(got.reading_time_s, 600);
        assert_eq!(got.frequent_words.len(), 1);
        assert_eq!((got.frequent_words[0].word.as_str(), got.frequent_words[0].count), ("word", 2380));
    }
}
