//! The documents of an index in the order of their relevance for a query.

use super::FieldIndex;
use super::change::name_key;
use super::postings::{NamedPlace, Place, Posting, PostingList, TermId};
use crate::field_words::split_words;
use crate::tokenize::is_stop_word;
use crate::{idf, stem};
use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Bytes of a query that are read.
const MAX_QUERY_BYTES: usize = 4 * 1024;
/// Terms of a query that are looked up.
const MAX_QUERY_TERMS: usize = 64;
/// Longer queries are no names.
const MAX_NAME_BYTES: usize = 256;
/// Hits that are sorted at first.
const FIRST_SORTED_COUNT: usize = 32;
/// Documents that are less similar to the query match only by their words.
const MIN_SIMILARITY: f32 = 0.2;
/// Similarity of a document that matches the words best, where similarities are not known: about that of a good match.
const ASSUMED_SIMILARITY: f32 = 0.5;
/// Documents of a group that a name finds. Spellings are alike in any number of ways.
const MAX_NAMED_PER_GROUP: usize = 2;

/// A document that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit<'a> {
    pub group: &'a str,
    pub name: &'a str,
    /// Position among the documents of its group, as they were put.
    pub position: usize,
    /// Comparable within one ranking only.
    pub score: f32,
    /// The query is the name, or the name with that of the group, in any spelling.
    pub is_exact: bool,
}

/// How the name of a document is like the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameMatch {
    /// Another spelling: it differs in case and punctuation.
    Alike,
    Same,
}

/// The scores of all documents for one query.
pub struct Ranking<'a> {
    index: &'a FieldIndex,
    /// Scores by number of the document.
    scores: Vec<f32>,
    /// Numbers of the documents whose name is the query, in order.
    named: Vec<(usize, NameMatch)>,
}

impl<'a> Ranking<'a> {
    pub(super) fn new(index: &'a FieldIndex, query: &str) -> Self {
        let mut ranking = Self { index, scores: vec![0.0; index.len()], named: Vec::new() };
        let mut frequencies = vec![0.0; index.len()];
        for term in query_terms(query) {
            let postings = index.postings.get(&term).map(PostingList::as_slice).unwrap_or_default();
            ranking.add_term(postings, &mut frequencies);
        }
        ranking.named = named_documents(index, query);
        ranking
    }

    /// The ranking by words and by meaning. `similarities` returns those of the documents of a group to the query, from -1 to
    /// 1, if they are known; `weight` is their share of the score, from 0 to 1. Groups whose similarities are not known
    /// are neither pushed up nor down.
    #[must_use]
    pub fn blended(mut self, weight: f32, mut similarities: impl FnMut(&str) -> Option<Vec<f32>>) -> Self {
        let best = self.scores.iter().copied().fold(f32::EPSILON, f32::max);
        let of_words = (1.0 - weight) / best;
        let index = self.index;
        for group in index.group_names() {
            let numbers = self.group_numbers(group);
            let scores = self.scores.get_mut(numbers).unwrap_or_default();
            let similarities = similarities(group);
            let scale =
                if similarities.is_some() { of_words } else { of_words + weight * ASSUMED_SIMILARITY / best };
            scores.iter_mut().for_each(|score| *score *= scale);
            for (score, similarity) in scores.iter_mut().zip(similarities.unwrap_or_default()) {
                if similarity >= MIN_SIMILARITY || *score > 0.0 {
                    *score += weight * similarity.max(0.0);
                }
            }
        }
        self
    }

    /// The documents that match, best first; equal ones in the order of their names. The work is done as far as the
    /// iterator is read.
    pub fn hits(&self) -> impl Iterator<Item = Hit<'a>> + use<'a> {
        self.hits_in(|_| true)
    }

    /// The documents of some groups that match.
    pub fn hits_in<F: Fn(&str) -> bool>(&self, is_included: F) -> impl Iterator<Item = Hit<'a>> + use<'a, F> {
        let groups = self.index.group_names().filter(|group| is_included(group));
        let candidates =
            groups.flat_map(|group| self.group_numbers(group)).map(|number| self.candidate(number));
        let rest = candidates.filter(|found| found.score > 0.0 || found.name_match.is_some()).collect();
        BestFirst {
            index: self.index,
            order: FieldIndex::compare,
            rest,
            sorted: Vec::new(),
            count: FIRST_SORTED_COUNT,
        }
    }

    /// All documents of a group, best first, then those that do not match in their own order. The work is done as far as
    /// the iterator is read.
    pub fn group_hits(&self, group: &str) -> impl Iterator<Item = Hit<'a>> + use<'a> {
        let rest = self.group_numbers(group).map(|number| self.candidate(number)).collect();
        BestFirst {
            index: self.index,
            order: |_, one, other| one.compare_score(other).then(one.number.cmp(&other.number)),
            rest,
            sorted: Vec::new(),
            count: FIRST_SORTED_COUNT,
        }
    }

    fn group_numbers(&self, group: &str) -> Range<usize> {
        self.index.slots_by_name.get(group).map_or(0..0, |slot| self.index.slot_numbers(*slot))
    }

    fn candidate(&self, number: usize) -> Candidate {
        let score = self.scores.get(number).copied().unwrap_or_default();
        let named = self.named.binary_search_by_key(&number, |(number, _)| *number).ok();
        let named = named.and_then(|at| self.named.get(at));
        Candidate { number, score, name_match: named.map(|(_, name_match)| *name_match) }
    }

    /// Adds to the scores of the documents that have a term. `frequencies` are zero before and after.
    fn add_term(&mut self, postings: &[Posting], frequencies: &mut [f32]) {
        let index = self.index;
        let mut having = Vec::new();
        let mut add = |number: usize, frequency: f32| {
            let Some(sum) = frequencies.get_mut(number) else { return };
            if *sum == 0.0 {
                having.push(number);
            }
            *sum += frequency;
        };
        for Posting { place, frequency } in postings {
            if place.is_group_text() {
                let factor = index.group_factors.get(place.slot as usize).copied().unwrap_or_default();
                index.slot_numbers(place.slot).for_each(|number| add(number, frequency * factor));
            } else if let Some(number) = index.number(*place) {
                let factor = index.document_factors.get(number).copied().unwrap_or_default();
                add(number, frequency * factor);
            }
        }
        let k1 = index.settings.k1;
        let most = idf(index.len() as f64, having.len() as f64) as f32 * (k1 + 1.0);
        for number in having {
            let Some((score, frequency)) = self.scores.get_mut(number).zip(frequencies.get_mut(number))
            else {
                continue;
            };
            let frequency = std::mem::take(frequency);
            *score += most * frequency / (frequency + k1);
        }
    }
}

/// The documents whose name is the query, with their numbers, in order: a few of each group.
fn named_documents(index: &FieldIndex, query: &str) -> Vec<(usize, NameMatch)> {
    let query = query.trim();
    let Some(key) = Some(query).filter(|query| query.len() <= MAX_NAME_BYTES).and_then(name_key) else {
        return Vec::new();
    };
    let first = index.names.partition_point(|named| named.key < key);
    let places = index.names.iter().skip(first).take_while(|named| named.key == key);
    let mut named: Vec<(Place, NameMatch)> =
        places.map(|NamedPlace { place, .. }| (*place, index.name_match(*place, query))).collect();
    named.sort_unstable_by_key(|(place, name_match)| (Reverse(*name_match), *place));
    let mut counts: HashMap<u32, usize> = HashMap::new();
    named.retain(|(place, _)| {
        let count = counts.entry(place.slot).or_default();
        *count += 1;
        *count <= MAX_NAMED_PER_GROUP
    });
    let mut numbers: Vec<(usize, NameMatch)> =
        named.iter().filter_map(|(place, name_match)| Some((index.number(*place)?, *name_match))).collect();
    numbers.sort_unstable();
    numbers
}

/// The terms of a query, each one once, without stop words unless there is nothing else.
fn query_terms(query: &str) -> Vec<TermId> {
    let query = query.get(..query.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
    let (mut terms, mut stop_words) = (Vec::new(), Vec::new());
    split_words(query, |word| {
        if is_stop_word(word) {
            stop_words.push(TermId::new(word));
        } else {
            terms.push(TermId::new(&stem(word)));
        }
    });
    let mut terms = if terms.is_empty() { stop_words } else { terms };
    let mut seen = HashSet::new();
    terms.retain(|term| seen.len() < MAX_QUERY_TERMS && seen.insert(*term));
    terms
}

/// A document that matches.
struct Candidate {
    number: usize,
    score: f32,
    name_match: Option<NameMatch>,
}

impl Candidate {
    fn compare_score(&self, other: &Self) -> Ordering {
        other.name_match.cmp(&self.name_match).then_with(|| other.score.total_cmp(&self.score))
    }
}

impl FieldIndex {
    /// Numbers of the documents of a group.
    fn slot_numbers(&self, slot: u32) -> Range<usize> {
        let count = self.segment(slot).map_or(0, |segment| segment.documents.len());
        self.number(Place { slot, document: 0 }).map_or(0..0, |first| first..first + count)
    }

    fn hit(&self, candidate: &Candidate) -> Option<Hit<'_>> {
        let Place { slot, document } = self.place(candidate.number)?;
        let segment = self.segment(slot)?;
        let position = document as usize;
        let name = &segment.documents.get(position)?.name;
        Some(Hit {
            group: &segment.name,
            name,
            position,
            score: candidate.score,
            is_exact: candidate.name_match.is_some(),
        })
    }

    /// How a name with the key of the query is like it.
    fn name_match(&self, place: Place, query: &str) -> NameMatch {
        let segment = self.segment(place.slot);
        let document = segment.and_then(|segment| segment.documents.get(place.document as usize));
        let is_same = segment.zip(document).is_some_and(|(segment, document)| {
            let rest = query.strip_suffix(&*document.name);
            let group =
                |rest: &str| ["__", ":"].iter().any(|mark| rest.strip_suffix(mark) == Some(&segment.name));
            rest.is_some_and(|rest| rest.is_empty() || group(rest))
        });
        if is_same { NameMatch::Same } else { NameMatch::Alike }
    }

    /// The order of the ranking.
    fn compare(&self, one: &Candidate, other: &Candidate) -> Ordering {
        let name = |candidate| self.hit(candidate).map(|hit| (hit.group, hit.name, hit.position));
        one.compare_score(other).then_with(|| name(one).cmp(&name(other)))
    }
}

/// Candidates in order. Only the best of the rest are sorted, four times as many each time.
struct BestFirst<'a> {
    index: &'a FieldIndex,
    order: fn(&FieldIndex, &Candidate, &Candidate) -> Ordering,
    rest: Vec<Candidate>,
    /// Best last.
    sorted: Vec<Candidate>,
    count: usize,
}

impl<'a> Iterator for BestFirst<'a> {
    type Item = Hit<'a>;

    fn next(&mut self) -> Option<Hit<'a>> {
        if self.sorted.is_empty() {
            let order = |one: &Candidate, other: &Candidate| (self.order)(self.index, one, other);
            if self.count < self.rest.len() {
                self.rest.select_nth_unstable_by(self.count, order);
            }
            self.sorted.extend(self.rest.drain(..self.count.min(self.rest.len())));
            self.sorted.sort_unstable_by(|one, other| order(other, one));
            self.count *= 4;
        }
        self.index.hit(&self.sorted.pop()?)
    }
}
