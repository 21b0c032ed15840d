//! Relevance of an entity for the words of a query: BM25 over its name, type and observations.

use crate::{normalize_name, term_weight, tokenize};
use std::collections::BTreeMap;

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
pub struct Term {
    pub stem: String,
    /// Inverse document frequency.
    pub idf: f64,
    /// Not a known word; words with this prefix match.
    pub is_prefix: bool,
}

pub struct EntityScore {
    pub score: f64,
    /// One per observation.
    facts: Vec<f64>,
}

impl EntityScore {
    /// Those of the scored observations that match, best first.
    pub fn matching_facts<T>(&self, facts: Vec<T>) -> Vec<T> {
        let scores = self.facts.iter().copied();
        let mut matching: Vec<(f64, T)> = scores.zip(facts).filter(|(score, _)| *score > 0.0).collect();
        matching.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        matching.into_iter().map(|(_, fact)| fact).collect()
    }
}

/// Scores an entity with these observations; `None` if nothing matches.
pub fn score_entity<'a>(
    query: &str,
    terms: &[Term],
    name: &str,
    kind: &str,
    facts: impl IntoIterator<Item = &'a str>,
) -> Option<EntityScore> {
    let (name_words, kind_words) = (WordCounts::new(name), WordCounts::new(kind));
    let bags: Vec<WordCounts> = facts.into_iter().map(WordCounts::new).collect();
    let mut total = 0.0;
    let mut each = vec![0.0; bags.len()];
    for term in terms {
        let mut best: f64 = 0.0;
        for (bag, sum) in bags.iter().zip(&mut each) {
            let weight = bag.weight(term, TYPICAL_FACT_LEN);
            *sum += term.idf * weight;
            best = best.max(weight);
        }
        let own = NAME_WEIGHT.mul_add(
            name_words.weight(term, TYPICAL_NAME_LEN),
            KIND_WEIGHT * kind_words.weight(term, TYPICAL_KIND_LEN),
        );
        total += term.idf * (own + best);
    }
    total += SAME_FACT_WEIGHT * each.iter().copied().fold(0.0, f64::max);
    total += name_bonus(query, terms, name, &name_words);
    (total > 0.0).then_some(EntityScore { score: total, facts: each })
}

fn name_bonus(query: &str, terms: &[Term], name: &str, words: &WordCounts) -> f64 {
    if normalize_name(query) == normalize_name(name) {
        return EXACT_NAME_BONUS;
    }
    let idf_of = |word: &String| terms.iter().find(|term| term.stem == *word).map(|term| term.idf);
    let named: Option<f64> = words.counts.keys().map(idf_of).sum();
    NAME_IN_QUERY_WEIGHT * named.unwrap_or_default()
}

/// The words of a text with their frequencies, in order: sums must not depend on anything else.
struct WordCounts {
    counts: BTreeMap<String, f64>,
    length: f64,
}

impl WordCounts {
    fn new(text: &str) -> Self {
        let (mut counts, mut length) = (BTreeMap::new(), 0.0);
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
