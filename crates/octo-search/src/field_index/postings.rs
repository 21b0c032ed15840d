//! Where terms occur.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// Hash of a term: 64 bits are enough to tell the terms of an index apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TermId(u64);

impl TermId {
    pub(super) fn new(term: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        term.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A document: the slot of its group and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub slot: u32,
    pub document: u32,
}

impl Place {
    /// The text of a group.
    pub(super) fn group_text(slot: u32) -> Self {
        Self { slot, document: u32::MAX }
    }

    pub(super) fn is_group_text(self) -> bool {
        self.document == u32::MAX
    }
}

/// A document by the key of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedPlace {
    pub key: TermId,
    pub place: Place,
}

/// A term in a document, or in the text of a group, which belongs to all its documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub place: Place,
    /// Weighted.
    pub frequency: f32,
}

/// The documents with a term. Most terms occur once.
#[derive(Debug, Clone)]
pub(super) enum PostingList {
    One(Posting),
    Many(Arc<[Posting]>),
}

impl PostingList {
    pub(super) fn new(postings: Vec<Posting>) -> Option<Self> {
        match postings.as_slice() {
            [] => None,
            [posting] => Some(Self::One(*posting)),
            _ => Some(Self::Many(postings.into())),
        }
    }

    pub(super) fn as_slice(&self) -> &[Posting] {
        match self {
            Self::One(posting) => std::slice::from_ref(posting),
            Self::Many(postings) => postings,
        }
    }
}
