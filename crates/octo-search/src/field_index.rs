//! BM25F: full-text search over documents with weighted fields, in groups that are replaced one at a time. An index is
//! an immutable snapshot: a change makes a new one that shares everything else, and a search takes no lock.
//!
//! The fields of a document have one length together, but the text of its group has its own: a server that says much
//! about itself does not push its tools down.

mod change;
mod postings;
mod ranking;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use ranking::{Hit, Ranking};

use change::Change;
use postings::{NamedPlace, Place, PostingList, TermId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Number of fields.
pub const FIELD_COUNT: usize = 7;

/// A field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Name,
    Description,
    GroupName,
    GroupText,
    ParameterNames,
    ParameterTexts,
    Aliases,
}

/// Parameters of the ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldSettings {
    /// Saturation of the weighted frequency of a word.
    pub k1: f32,
    /// Normalization by length, from 0 to 1.
    pub b: f32,
    /// Weights, in the order of [`Field`]. A field without weight is not searched.
    pub weights: [f32; FIELD_COUNT],
}

impl Default for FieldSettings {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75, weights: [3.0, 1.0, 1.5, 0.5, 0.5, 0.3, 0.6] }
    }
}

impl FieldSettings {
    fn weight(&self, field: Field) -> f32 {
        self.weights.get(field as usize).copied().unwrap_or_default()
    }
}

/// What is indexed of a document: a tool of a server.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub name: String,
    pub description: String,
    /// With the values that parameters may have.
    pub parameter_names: String,
    pub parameter_texts: String,
    /// Synonyms, and other names.
    pub aliases: String,
}

/// Documents that are replaced together: a server with its tools.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Identifies the group, and is searched.
    pub name: String,
    /// What the server says about itself.
    pub text: String,
    pub documents: Vec<Document>,
}

/// A group in an index.
#[derive(Debug)]
struct Segment {
    name: Box<str>,
    /// Weighted number of words in the text of the group.
    length: f32,
    documents: Box<[IndexedDocument]>,
    /// The terms of its postings.
    terms: Box<[TermId]>,
}

#[derive(Debug)]
struct IndexedDocument {
    name: Box<str>,
    /// Weighted number of words in all other fields.
    length: f32,
}

/// A snapshot of an index.
#[derive(Debug, Clone, Default)]
pub struct FieldIndex {
    settings: FieldSettings,
    slots_by_name: BTreeMap<Box<str>, u32>,
    /// Segments by slot. The slot of a removed group is used again.
    segments: Vec<Option<Arc<Segment>>>,
    postings: HashMap<TermId, PostingList>,
    /// Documents by the keys of their names, in order.
    names: Vec<NamedPlace>,
    /// For each slot the number of documents before it.
    bases: Vec<u32>,
    /// Factors for the length of each document, and of each group by slot.
    document_factors: Vec<f32>,
    group_factors: Vec<f32>,
}

impl FieldIndex {
    pub fn new(settings: FieldSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.document_factors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.document_factors.is_empty()
    }

    /// Names of the groups in order.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.slots_by_name.keys().map(AsRef::as_ref)
    }

    /// The index with these groups added; a group of the same name is replaced.
    #[must_use]
    pub fn with_groups(&self, groups: impl IntoIterator<Item = Group>) -> Self {
        let mut change = Change::new(self.clone());
        for group in groups {
            change.put(group);
        }
        change.finish()
    }

    /// The index without this group.
    #[must_use]
    pub fn without_group(&self, name: &str) -> Self {
        let mut change = Change::new(self.clone());
        change.remove(name);
        change.finish()
    }

    /// Ranks all documents for a query.
    pub fn rank(&self, query: &str) -> Ranking<'_> {
        Ranking::new(self, query)
    }

    /// The best documents for a query, of those that are visible.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        is_visible: impl FnMut(&Hit<'_>) -> bool,
    ) -> Vec<Hit<'_>> {
        self.rank(query).hits().filter(is_visible).take(limit).collect()
    }

    fn segment(&self, slot: u32) -> Option<&Segment> {
        self.segments.get(slot as usize)?.as_deref()
    }

    /// Number of a document among all.
    fn number(&self, place: Place) -> Option<usize> {
        Some(*self.bases.get(place.slot as usize)? as usize + place.document as usize)
    }

    /// The document with this number.
    fn place(&self, number: usize) -> Option<Place> {
        let after = self.bases.partition_point(|base| *base as usize <= number);
        let slot = after.checked_sub(1)?;
        let document = number - *self.bases.get(slot)? as usize;
        Some(Place { slot: u32::try_from(slot).ok()?, document: u32::try_from(document).ok()? })
    }

    /// Numbers the documents and computes the factors anew, after a change of the segments.
    fn update_factors(&mut self) {
        let b = self.settings.b;
        let segments = || self.segments.iter().map(Option::as_deref);
        let documents = || segments().flatten().flat_map(|segment| &segment.documents);
        let average = average_length(documents().map(|document| document.length));
        self.document_factors =
            documents().map(|document| length_factor(b, document.length, average)).collect();
        let average = average_length(segments().flatten().map(|segment| segment.length));
        let group_length = |segment: Option<&Segment>| segment.map_or(average, |segment| segment.length);
        self.group_factors =
            segments().map(|segment| length_factor(b, group_length(segment), average)).collect();
        let mut count = 0;
        let bases = segments().map(|segment| {
            let base = count;
            count += segment.map_or(0, |segment| segment.documents.len());
            u32::try_from(base).unwrap_or(u32::MAX)
        });
        self.bases = bases.collect();
    }
}

/// Average of the lengths above zero. Lengths are summed as whole thousandths: the sum must not depend on their order.
fn average_length(lengths: impl Iterator<Item = f32>) -> f32 {
    let (sum, count) = lengths.filter(|length| *length > 0.0).fold((0_u64, 0_u64), |(sum, count), length| {
        (sum.saturating_add((length * 1000.0) as u64), count + 1)
    });
    if sum == 0 { 1.0 } else { (sum as f64 / count as f64 / 1000.0) as f32 }
}

/// What a weighted frequency is multiplied by in a text of this length.
fn length_factor(b: f32, length: f32, average: f32) -> f32 {
    1.0 / b.mul_add(length / average, 1.0 - b).max(f32::EPSILON)
}
