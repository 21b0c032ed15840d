//! A change of an index: groups are put and removed, and the lists of their terms are written anew.

use super::postings::{NamedPlace, Place, Posting, PostingList, TermId};
use super::vocabulary::Vocabulary;
use super::{Document, Field, FieldIndex, FieldSettings, Group, IndexedDocument, Segment};
use crate::field_words::identifier_key;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Times that a word counts in a field: who repeats it more often is not found more easily.
const MAX_OCCURRENCES: usize = 3;

pub(super) struct Change {
    index: FieldIndex,
    vocabulary: Vocabulary,
    added: HashMap<TermId, Vec<Posting>>,
    added_names: Vec<NamedPlace>,
    /// By slot whether its old postings go.
    is_emptied: Vec<bool>,
    /// The terms of these postings.
    emptied_terms: HashSet<TermId>,
}

/// The key of a whole name, if it has any letters or digits.
pub(super) fn name_key(name: &str) -> Option<TermId> {
    let key = identifier_key(name);
    (!key.is_empty()).then(|| TermId::new(&key))
}

impl Change {
    pub(super) fn new(index: FieldIndex) -> Self {
        Self {
            is_emptied: vec![false; index.segments.len()],
            index,
            vocabulary: Vocabulary::default(),
            added: HashMap::new(),
            added_names: Vec::new(),
            emptied_terms: HashSet::new(),
        }
    }

    /// Adds a group; one of the same name is replaced.
    pub(super) fn put(&mut self, group: Group) {
        self.remove(&group.name);
        let slot = self.free_slot();
        let settings = self.index.settings;
        let (mut name, mut shared) = (Vec::new(), Vec::new());
        self.read(Field::GroupName, &group.name, &mut name);
        self.read(Field::GroupText, &group.text, &mut shared);
        let mut documents = Vec::with_capacity(group.documents.len());
        let mut terms = BTreeSet::new();
        for (document, at) in group.documents.into_iter().zip(0_u32..) {
            let place = Place { slot, document: at };
            let mut own = name.clone();
            self.read_document(&document, &mut own);
            let length = weighted_length(&settings, &own);
            for (term, posting) in postings(&settings, place, own) {
                terms.insert(term);
                self.added.entry(term).or_default().push(posting);
            }
            let full_name = format!("{}__{}", group.name, document.name);
            let keys = BTreeSet::from([name_key(&document.name), name_key(&full_name)]);
            self.added_names.extend(keys.into_iter().flatten().map(|key| NamedPlace { key, place }));
            documents.push(IndexedDocument { name: document.name.into(), length });
        }
        let length = weighted_length(&settings, &shared);
        // Once, however many documents there are.
        for (term, posting) in postings(&settings, Place::group_text(slot), shared) {
            terms.insert(term);
            self.added.entry(term).or_default().push(posting);
        }
        let segment = Segment {
            name: group.name.clone().into(),
            length,
            documents: documents.into(),
            terms: terms.into_iter().collect(),
        };
        self.index.slots_by_name.insert(group.name.into(), slot);
        if let Some(place) = self.index.segments.get_mut(slot as usize) {
            *place = Some(Arc::new(segment));
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(slot) = self.index.slots_by_name.remove(name) else { return };
        let place = self.index.segments.get_mut(slot as usize);
        let Some(segment) = place.and_then(Option::take) else { return };
        if let Some(is_emptied) = self.is_emptied.get_mut(slot as usize) {
            *is_emptied = true;
        }
        for term in &segment.terms {
            self.emptied_terms.insert(*term);
            // The group may have been put by this same change.
            if let Some(postings) = self.added.get_mut(term) {
                postings.retain(|posting| posting.place.slot != slot);
            }
        }
        self.added_names.retain(|named| named.place.slot != slot);
    }

    /// The index with the change.
    pub(super) fn finish(mut self) -> FieldIndex {
        let stays = |place: Place| !self.is_emptied.get(place.slot as usize).copied().unwrap_or_default();
        for term in self.emptied_terms {
            self.added.entry(term).or_default();
        }
        for (term, added) in self.added {
            let known = self.index.postings.get(&term).map(PostingList::as_slice).unwrap_or_default();
            let mut postings = Vec::with_capacity(known.len() + added.len());
            postings.extend(known.iter().filter(|posting| stays(posting.place)));
            postings.extend(added);
            match PostingList::new(postings) {
                Some(list) => self.index.postings.insert(term, list),
                None => self.index.postings.remove(&term),
            };
        }
        self.index.names.retain(|named| stays(named.place));
        self.index.names.append(&mut self.added_names);
        self.index.names.sort();
        self.index.update_factors();
        self.index
    }

    fn free_slot(&mut self) -> u32 {
        let free = self.index.segments.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.index.segments.push(None);
            self.index.segments.len() - 1
        });
        u32::try_from(slot).unwrap_or(u32::MAX)
    }

    fn read_document(&mut self, document: &Document, terms: &mut Vec<(TermId, Field)>) {
        for (field, text) in [
            (Field::Name, &document.name),
            (Field::Description, &document.description),
            (Field::ParameterNames, &document.parameter_names),
            (Field::ParameterTexts, &document.parameter_texts),
            (Field::Aliases, &document.aliases),
        ] {
            self.read(field, text, terms);
        }
    }

    /// Reads a field that has a weight.
    fn read(&mut self, field: Field, text: &str, terms: &mut Vec<(TermId, Field)>) {
        if self.index.settings.weight(field) > 0.0 {
            self.vocabulary.read(field, text, terms);
        }
    }
}

fn weighted_length(settings: &FieldSettings, terms: &[(TermId, Field)]) -> f32 {
    terms.iter().map(|(_, field)| settings.weight(*field)).sum()
}

/// One posting for each term of a document, or of the text of a group.
fn postings(
    settings: &FieldSettings,
    place: Place,
    mut terms: Vec<(TermId, Field)>,
) -> impl Iterator<Item = (TermId, Posting)> {
    // Sums must not depend on anything but the document.
    terms.sort_unstable();
    let mut postings: Vec<(TermId, Posting)> = Vec::new();
    let (mut last, mut occurrences) = (None, 0);
    for (term, field) in terms {
        if postings.last().is_none_or(|(last, _)| *last != term) {
            postings.push((term, Posting { place, frequency: 0.0 }));
        }
        occurrences = if last == Some((term, field)) { occurrences + 1 } else { 1 };
        last = Some((term, field));
        if let Some((_, posting)) = postings.last_mut().filter(|_| occurrences <= MAX_OCCURRENCES) {
            posting.frequency += settings.weight(field);
        }
    }
    postings.into_iter()
}
