//! Relevance of an entity for the words of a query: BM25 over its name, type and observations.

use super::memory_view::{EntityHead, FactRow};
use super::tokenize::{normalize_name, tokenize};
use octo_search::term_weight;
use std::collections::HashMap;

/// Typical lengths, in words.
const TYPICAL_NAME_LEN: f64 = 2.0;
const TYPICAL_KIND_LEN: f64 = 1.0;
const TYPICAL_FACT_LEN: f64 = 12.0;
/// A word in the name weighs more than one in an observation.
const NAME_WEIGHT: f64 = 3.0;
const KIND_WEIGHT: f64 = 1.0;
/// Words that occur in the same observation.
const SAME_FACT_WEIGHT: f64 = 0.4;
/// The whole name occurs in the query.
const NAME_IN_QUERY_WEIGHT: f64 = 1.5;
/// The query is the name.
const EXACT_NAME_BONUS: f64 = 20.0;
/// Weight of a prefix match.
const PREFIX_WEIGHT: f64 = 0.5;

/// A word of the query.
pub(super) struct Term {
    pub(super) stem: String,
    /// Inverse document frequency.
    pub(super) idf: f64,
    /// Not a known word; words with this prefix match.
    pub(super) is_prefix: bool,
}

pub(super) struct EntityScore {
    pub(super) score: f64,
    /// One per observation.
    pub(super) facts: Vec<f64>,
}

pub(super) fn score(text: &str, terms: &[Term], head: &EntityHead, facts: &[FactRow]) -> EntityScore {
    let (name, kind) = (WordCounts::new(&head.name), WordCounts::new(&head.kind));
    let bags: Vec<WordCounts> = facts.iter().map(|seen| WordCounts::new(&seen.fact.text)).collect();
    let mut total = 0.0;
    let mut each = vec![0.0; bags.len()];
    for term in terms {
        let mut best: f64 = 0.0;
        for (bag, sum) in bags.iter().zip(&mut each) {
            let weight = bag.weight(term, TYPICAL_FACT_LEN);
            *sum += term.idf * weight;
            best = best.max(weight);
        }
        let own = NAME_WEIGHT
            .mul_add(name.weight(term, TYPICAL_NAME_LEN), KIND_WEIGHT * kind.weight(term, TYPICAL_KIND_LEN));
        total += term.idf * (own + best);
    }
    total += SAME_FACT_WEIGHT * each.iter().copied().fold(0.0, f64::max);
    total += name_bonus(text, terms, head, &name);
    EntityScore { score: total, facts: each }
}

fn name_bonus(text: &str, terms: &[Term], head: &EntityHead, name: &WordCounts) -> f64 {
    if normalize_name(text) == normalize_name(&head.name) {
        return EXACT_NAME_BONUS;
    }
    let idf_of = |word: &String| terms.iter().find(|term| term.stem == *word).map(|term| term.idf);
    let named: Option<f64> = name.counts.keys().map(idf_of).sum();
    NAME_IN_QUERY_WEIGHT * named.unwrap_or_default()
}

/// The words of a text with their frequencies.
struct WordCounts {
    counts: HashMap<String, f64>,
    length: f64,
}

impl WordCounts {
    fn new(text: &str) -> Self {
        let (mut counts, mut length) = (HashMap::new(), 0.0);
        for word in tokenize(text) {
            *counts.entry(word).or_default() += 1.0;
            length += 1.0;
        }
        Self { counts, length }
    }

    fn weight(&self, term: &Term, usual: f64) -> f64 {
        let count = match term.is_prefix {
            false => self.counts.get(&term.stem).copied().unwrap_or_default(),
            true => {
                let begin = self.counts.iter().filter(|(word, _)| word.starts_with(&term.stem));
                PREFIX_WEIGHT * begin.map(|(_, count)| count).sum::<f64>()
            }
        };
        term_weight(count, self.length, usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_a_word_and_a_shorter_text_count_more() {
        let term = |stem: &str| Term { stem: stem.to_owned(), idf: 1.0, is_prefix: false };
        let weight = |text: &str| WordCounts::new(text).weight(&term("tea"), TYPICAL_FACT_LEN);
        assert!(weight("tea tea") > weight("tea"));
        assert!(weight("tea") > weight("tea and a very long story of other things entirely"));
        assert_eq!(weight("coffee"), 0.0);
        let beginning = Term { is_prefix: true, ..term("cof") };
        assert!(WordCounts::new("coffee").weight(&beginning, TYPICAL_FACT_LEN) > 0.0);
    }
}
