//! Full-text search for operations: BM25 over the texts of each, weighted by field.

use crate::document::OperationSummary;
use crate::operation::ApiOperation;
use crate::tokenize::{synonyms, tokenize};
use octo_search::{idf, term_weight};
use std::collections::HashMap;

/// Weight of a synonym.
const SYNONYM_WEIGHT: f64 = 0.6;
/// Results below this fraction of the best score are dropped.
const MIN_RELATIVE_SCORE: f64 = 0.25;
/// Words of a description that are indexed.
const MAX_DESCRIPTION_WORDS: usize = 60;
/// Bytes of a description that are tokenized.
const MAX_DESCRIPTION_BYTES: usize = 700;

#[derive(Default)]
pub(crate) struct SearchIndex {
    /// Operations per word, with the weight of the word.
    postings: HashMap<String, Vec<(u32, f64)>>,
    lengths: Vec<f64>,
    average_length: f64,
}

pub(crate) struct SearchIndexBuilder(SearchIndex);

impl SearchIndexBuilder {
    pub(crate) fn add(&mut self, listed: &OperationSummary, operation: &ApiOperation) {
        let at = u32::try_from(self.0.lengths.len()).unwrap_or(u32::MAX);
        let mut counts: HashMap<String, f64> = HashMap::new();
        let mut count = |text: &str, weight: f64, most: usize| {
            for word in tokenize(text).into_iter().take(most) {
                *counts.entry(word).or_default() += weight;
            }
        };
        count(&listed.id, 2.0, 40);
        count(&listed.summary, 2.5, 40);
        let (fixed, named) = template(&listed.path);
        count(&fixed, 1.2, 40);
        count(&named, 0.3, 40);
        count(&listed.tags.join(" "), 1.0, 20);
        count(verbs(&listed.method), 0.4, 10);
        let description = &operation.description;
        let begins =
            description.get(..description.floor_char_boundary(MAX_DESCRIPTION_BYTES)).unwrap_or_default();
        count(begins, 0.25, MAX_DESCRIPTION_WORDS);
        for param in operation.params.iter().take(30) {
            count(&param.name, 0.2, 5);
        }
        let length: f64 = counts.values().sum();
        self.0.lengths.push(length);
        for (word, weight) in counts {
            self.0.postings.entry(word).or_default().push((at, weight));
        }
    }

    pub(crate) fn finish(mut self) -> SearchIndex {
        let count = self.0.lengths.len().max(1) as f64;
        self.0.average_length = (self.0.lengths.iter().sum::<f64>() / count).max(1.0);
        self.0
    }
}

/// Fixed segments of a path, and its parameters.
fn template(path: &str) -> (String, String) {
    let named = |part: &&str| part.contains('{');
    let fixed: Vec<&str> = path.split('/').filter(|part| !named(part)).collect();
    let names: Vec<&str> = path.split('/').filter(named).collect();
    (fixed.join(" "), names.join(" "))
}

fn verbs(method: &str) -> &'static str {
    match method {
        "GET" | "HEAD" => "get list read",
        "POST" => "create add post",
        "PUT" => "set replace update put",
        "PATCH" => "update edit patch",
        "DELETE" => "delete remove",
        _ => "",
    }
}

impl SearchIndex {
    pub(crate) fn builder() -> SearchIndexBuilder {
        SearchIndexBuilder(Self::default())
    }

    /// Returns the operations that match words of the question, best first. One whose path or name contains the
    /// question literally comes first.
    pub(crate) fn search<'a>(
        &self,
        question: &str,
        operations: &'a [OperationSummary],
    ) -> Vec<&'a OperationSummary> {
        let mut scores: HashMap<u32, (f64, f64)> = HashMap::new();
        let asked = query_terms(question);
        let total: f64 = asked.len().max(1) as f64;
        for forms in &asked {
            // A word of the question counts once, in its best form.
            let mut best: HashMap<u32, f64> = HashMap::new();
            for (word, weight) in forms {
                for (at, score) in self.bm25_scores(word) {
                    let known = best.entry(at).or_default();
                    *known = known.max(score * weight);
                }
            }
            for (at, score) in best {
                let sum = scores.entry(at).or_default();
                sum.0 += score;
                sum.1 += 1.0;
            }
        }
        let mut found: Vec<(f64, &OperationSummary)> = scores
            .into_iter()
            .filter_map(|(at, (score, covered))| {
                let listed = operations.get(at as usize)?;
                let age = if listed.deprecated || listed.id.ends_with("legacy") { 0.8 } else { 1.0 };
                Some((score * (covered / total) * age, listed))
            })
            .collect();
        let best = found.iter().map(|(score, _)| *score).fold(0.0, f64::max);
        found.retain(|(score, _)| *score >= best * MIN_RELATIVE_SCORE);
        literal(question, operations, best, &mut found);
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.len().cmp(&b.1.path.len())));
        found.into_iter().map(|(_, listed)| listed).collect()
    }

    fn bm25_scores<'a>(&'a self, word: &str) -> impl Iterator<Item = (u32, f64)> + 'a {
        let postings = self.postings.get(word).map(Vec::as_slice).unwrap_or_default();
        let idf = idf(self.lengths.len() as f64, postings.len() as f64);
        postings.iter().map(move |(at, weight)| {
            let length = self.lengths.get(*at as usize).copied().unwrap_or(self.average_length);
            (*at, idf * term_weight(*weight, length, self.average_length))
        })
    }
}

/// Words of a question, each with its forms and synonyms.
fn query_terms(question: &str) -> Vec<Vec<(String, f64)>> {
    let mut seen = Vec::new();
    for word in tokenize(question) {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen.into_iter()
        .map(|word| {
            let others = synonyms(&word).into_iter().map(|other| (other, SYNONYM_WEIGHT));
            let mut forms: Vec<(String, f64)> = others.collect();
            forms.push((word, 1.0));
            forms
        })
        .collect()
}

/// Boosts operations that contain the text literally: a path, a part of one, a name.
fn literal<'a>(
    question: &str,
    operations: &'a [OperationSummary],
    best: f64,
    found: &mut Vec<(f64, &'a OperationSummary)>,
) {
    let text = question.trim().to_lowercase();
    if text.is_empty() || text.contains(' ') && !text.contains('/') {
        return;
    }
    for listed in operations {
        let line = format!("{} {}", listed.method, listed.path).to_lowercase();
        let id = listed.id.to_lowercase();
        if !(line.contains(&text) || id.contains(&text)) {
            continue;
        }
        let bonus = best + if line.ends_with(&text) || id == text { 2.0 } else { 1.0 };
        match found.iter_mut().find(|(_, known)| std::ptr::eq(*known, listed)) {
            Some((score, _)) => *score += bonus,
            None => found.push((bonus, listed)),
        }
    }
}
