//! A list of one kind of items, with their definitions as clients get them.

use crate::catalogue::item::Entry;
use octo_model::Json;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

#[derive(Default)]
pub struct RenderedList {
    pub entries: Vec<Entry>,
    pub rendered: Vec<Json>,
    /// Positions of the items, by listed name.
    positions: OnceLock<HashMap<Box<str>, usize>>,
    /// Rendered pages, created on first request.
    pages: Mutex<HashMap<usize, Json>>,
}

impl RenderedList {
    pub fn new(entries: Vec<Entry>) -> Self {
        let rendered = entries.iter().map(|entry| entry.definition().to_json()).collect();
        Self { entries, rendered, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a rendered page.
    pub fn page(&self, number: usize, make: impl FnOnce() -> Json) -> Json {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.entry(number).or_insert_with(make).clone()
    }

    pub fn items(&self) -> impl Iterator<Item = (&Entry, &Json)> {
        self.entries.iter().zip(&self.rendered)
    }

    /// Returns the item with this listed name.
    pub fn find(&self, name: &str) -> Option<(&Entry, &Json)> {
        let positions = self.positions.get_or_init(|| {
            let names = self.entries.iter().map(|entry| Box::from(&*entry.listed_name));
            names.enumerate().map(|(at, name)| (name, at)).collect()
        });
        let at = *positions.get(name)?;
        Some((self.entries.get(at)?, self.rendered.get(at)?))
    }

    fn additions<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Entry, &'a Json)> {
        other.items().filter(|(entry, _)| self.find(&entry.listed_name).is_none())
    }

    /// Whether another list has items that this one does not have.
    pub fn lacks_items_of(&self, other: &Self) -> bool {
        self.additions(other).next().is_some()
    }

    /// This list, and after it the items of another one that it does not have, up to a number.
    pub fn with_additions(&self, other: &Self, max: usize) -> Self {
        let (mut entries, mut rendered) = (self.entries.clone(), self.rendered.clone());
        for (entry, json) in self.additions(other).take(max) {
            entries.push(entry.clone());
            rendered.push(json.clone());
        }
        Self { entries, rendered, ..Self::default() }
    }

    /// Whether both have the same items with the same definitions, in any order.
    pub fn has_same_items(&self, other: &Self) -> bool {
        let is_same = |(entry, json): (&Entry, &Json)| {
            self.find(&entry.listed_name).is_some_and(|(_, own)| own == json)
        };
        self.len() == other.len() && (self.rendered == other.rendered || other.items().all(is_same))
    }

    /// Bytes of all definitions.
    pub fn bytes(&self) -> usize {
        self.rendered.iter().map(|json| json.as_str().len()).sum()
    }
}
