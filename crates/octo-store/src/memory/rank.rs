//! How well an entity fits the words of a question: BM25 over its name, its type and its observations.

use super::look::{Head, Seen};
use super::words::{fold, words};
use std::collections::HashMap;

/// How soon further occurrences of a word count less, and how much longer texts do.
const K1: f64 = 1.2;
const B: f64 = 0.5;
/// Usual lengths, in words.
const NAME_LENGTH: f64 = 2.0;
const KIND_LENGTH: f64 = 1.0;
const FACT_LENGTH: f64 = 12.0;
/// A word of the name says more than a word of an observation.
const NAME: f64 = 3.0;
const KIND: f64 = 1.0;
/// Words that stand together in one observation.
const TOGETHER: f64 = 0.4;
/// The whole name stands in the question.
const NAMED: f64 = 1.5;
/// The question is the name.
const SAME: f64 = 20.0;
/// What a word counts of which the question has only the beginning.
const BEGINNING: f64 = 0.5;

/// A word of the question.
pub(super) struct Term {
    pub(super) stem: String,
    /// How telling it is: the rarer the more.
    pub(super) idf: f64,
    /// It is no known word; those that begin with it count.
    pub(super) beginning: bool,
}

/// How telling a word is that this many of all entities have.
pub(super) fn idf(all: f64, having: f64) -> f64 {
    ((all - having).max(0.0) + 0.5).mul_add(1.0 / (having + 0.5), 1.0).ln()
}

pub(super) struct Scored {
    pub(super) score: f64,
    /// One for each observation.
    pub(super) facts: Vec<f64>,
}

pub(super) fn score(text: &str, terms: &[Term], head: &Head, facts: &[Seen]) -> Scored {
    let (name, kind) = (Bag::new(&head.name), Bag::new(&head.kind));
    let bags: Vec<Bag> = facts.iter().map(|seen| Bag::new(&seen.fact.text)).collect();
    let mut total = 0.0;
    let mut each = vec![0.0; bags.len()];
    for term in terms {
        let mut best: f64 = 0.0;
        for (bag, sum) in bags.iter().zip(&mut each) {
            let weight = bag.weight(term, FACT_LENGTH);
            *sum += term.idf * weight;
            best = best.max(weight);
        }
        let own = NAME.mul_add(name.weight(term, NAME_LENGTH), KIND * kind.weight(term, KIND_LENGTH));
        total += term.idf * (own + best);
    }
    total += TOGETHER * each.iter().copied().fold(0.0, f64::max);
    total += name_bonus(text, terms, head, &name);
    Scored { score: total, facts: each }
}

fn name_bonus(text: &str, terms: &[Term], head: &Head, name: &Bag) -> f64 {
    if fold(text) == fold(&head.name) {
        return SAME;
    }
    let idf_of = |word: &String| terms.iter().find(|term| term.stem == *word).map(|term| term.idf);
    let named: Option<f64> = name.counts.keys().map(idf_of).sum();
    NAMED * named.unwrap_or_default()
}

/// The words of a text and how often each occurs.
struct Bag {
    counts: HashMap<String, f64>,
    length: f64,
}

impl Bag {
    fn new(text: &str) -> Self {
        let (mut counts, mut length) = (HashMap::new(), 0.0);
        for word in words(text) {
            *counts.entry(word).or_default() += 1.0;
            length += 1.0;
        }
        Self { counts, length }
    }

    fn weight(&self, term: &Term, usual: f64) -> f64 {
        let count = match term.beginning {
            false => self.counts.get(&term.stem).copied().unwrap_or_default(),
            true => {
                let begin = self.counts.iter().filter(|(word, _)| word.starts_with(&term.stem));
                BEGINNING * begin.map(|(_, count)| count).sum::<f64>()
            }
        };
        if count == 0.0 {
            return 0.0;
        }
        let long = B.mul_add(self.length / usual, 1.0 - B);
        count * (K1 + 1.0) / K1.mul_add(long, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_tell_more_and_every_word_tells_something() {
        assert!(idf(1e6, 1.0) > idf(1e6, 1e3));
        assert!(idf(10.0, 10.0) > 0.0);
        assert!(idf(10.0, 20.0) > 0.0);
    }

    #[test]
    fn more_of_a_word_and_a_shorter_text_count_more() {
        let term = |stem: &str| Term { stem: stem.to_owned(), idf: 1.0, beginning: false };
        let weight = |text: &str| Bag::new(text).weight(&term("tea"), FACT_LENGTH);
        assert!(weight("tea tea") > weight("tea"));
        assert!(weight("tea") > weight("tea and a very long story of other things entirely"));
        assert_eq!(weight("coffee"), 0.0);
        let beginning = Term { beginning: true, ..term("cof") };
        assert!(Bag::new("coffee").weight(&beginning, FACT_LENGTH) > 0.0);
    }
}
