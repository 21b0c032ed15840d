//! Which observations of an entity are shown, if it has more than a query asks for.

use octo_search::{MIN_PREFIX_CHARS, query_stems, tokenize};
use octo_toolkit::memory::{KnownEntity, KnownFact};

/// The words of a query.
pub struct QueryWords(Vec<String>);

impl QueryWords {
    pub fn new(query: &str) -> Self {
        Self(query_stems(query))
    }

    /// Whether a text has one of the words, or one that begins like it.
    fn is_in(&self, text: &str) -> bool {
        let is_like = |word: &String, of_text: &String| {
            of_text == word || (word.chars().count() >= MIN_PREFIX_CHARS && of_text.starts_with(word))
        };
        tokenize(text).iter().any(|of_text| self.0.iter().any(|word| is_like(word, of_text)))
    }
}

/// Shows the observation that is closest to a query in place of the one that is least similar. Those with a word of the
/// query stay.
pub fn show_fact(
    entity: &mut KnownEntity,
    fact: KnownFact,
    max_facts: usize,
    words: &QueryWords,
    similarity: impl Fn(&KnownFact) -> f32,
) {
    if entity.facts.contains(&fact) {
        return;
    }
    if entity.facts.len() >= max_facts {
        let others = entity.facts.iter().enumerate().filter(|(_, shown)| !words.is_in(&shown.text));
        let least = others.min_by(|(_, one), (_, other)| similarity(one).total_cmp(&similarity(other)));
        let Some((least, _)) = least else { return };
        entity.facts.remove(least);
    }
    entity.facts.push(fact);
    entity.facts.sort_by_key(|fact| fact.since);
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::memory::{DEFAULT_KIND, FactOrigin};

    fn fact(text: &str, second: i64) -> KnownFact {
        KnownFact {
            text: text.to_owned(),
            origin: FactOrigin::Stated,
            source: None,
            since: jiff::Timestamp::from_second(second).unwrap(),
            call: String::new(),
        }
    }

    #[test]
    fn the_closest_observation_is_shown_in_place_of_the_least_similar() {
        // Observations in the order of their time, and how similar they are to the query "green teas".
        let known =
            [("a", 0.9), ("b", 0.5), ("c", 0.1), ("d", 0.3), ("drinks tea", 0.0), ("greenhouse", 0.0)];
        let of = |text: &str| {
            let second = known.iter().position(|(known, _)| *known == text).unwrap();
            fact(text, second as i64)
        };
        let similarity = |fact: &KnownFact| {
            known.iter().find(|(text, _)| *text == fact.text).map_or(0.0, |(_, value)| *value)
        };
        for (shown, closest, max_facts, expected) in [
            (&["b", "c", "d"][..], "a", 3, &["a", "b", "d"][..]),
            (&["b", "drinks tea"], "a", 2, &["a", "drinks tea"]),
            (&["drinks tea", "greenhouse"], "a", 2, &["drinks tea", "greenhouse"]),
            (&["a", "c"], "b", 3, &["a", "b", "c"]),
            (&["a", "b"], "b", 2, &["a", "b"]),
            (&[], "b", 0, &[]),
        ] {
            let mut entity = KnownEntity {
                name: "e".to_owned(),
                kind: DEFAULT_KIND.to_owned(),
                facts: shown.iter().map(|text| of(text)).collect(),
                fact_count: 9,
                links: Vec::new(),
                links_left_out: false,
                created: jiff::Timestamp::UNIX_EPOCH,
                updated: jiff::Timestamp::UNIX_EPOCH,
                score: None,
            };
            show_fact(&mut entity, of(closest), max_facts, &QueryWords::new("green teas"), similarity);
            let texts: Vec<&str> = entity.facts.iter().map(|fact| fact.text.as_str()).collect();
            assert_eq!(texts, expected, "{shown:?} {closest} {max_facts}");
        }
    }
}
