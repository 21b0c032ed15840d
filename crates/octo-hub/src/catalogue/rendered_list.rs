//! A list of one kind of items, with their definitions as clients get them.

use crate::catalogue::item::Entry;
use octo_model::Json;
use std::collections::{HashMap, HashSet};
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

#[derive(Default)]
struct Additions<'a> {
    items: Vec<(&'a Entry, &'a Json)>,
    of_known_sources: usize,
}

impl RenderedList {
    pub fn new(entries: Vec<Entry>, render: impl Fn(&Entry) -> Json) -> Self {
        let rendered = entries.iter().map(render).collect();
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

    /// Items of another list that this one does not have: all of new sources, and up to a number of known ones.
    fn additions<'a>(&'a self, other: &'a Self, room: usize) -> Additions<'a> {
        let known: HashSet<&str> = self.entries.iter().map(Entry::source_name).collect();
        let mut additions = Additions::default();
        for (entry, json) in other.items().filter(|(entry, _)| self.find(&entry.listed_name).is_none()) {
            let is_known = known.contains(entry.source_name());
            if is_known && additions.of_known_sources == room {
                continue;
            }
            additions.of_known_sources += usize::from(is_known);
            additions.items.push((entry, json));
        }
        additions
    }

    /// Whether another list has items that can be appended.
    pub fn lacks_items_of(&self, other: &Self, room: usize) -> bool {
        !self.additions(other, room).items.is_empty()
    }

    /// This list, and after it the items of another one that it does not have. Also returns how many of them are of sources
    /// that it had already; these are at most `room`.
    pub fn with_additions(&self, other: &Self, room: usize) -> (Self, usize) {
        let additions = self.additions(other, room);
        let (mut entries, mut rendered) = (self.entries.clone(), self.rendered.clone());
        for (entry, json) in additions.items {
            entries.push(entry.clone());
            rendered.push(json.clone());
        }
        (Self { entries, rendered, ..Self::default() }, additions.of_known_sources)
    }

    /// Whether both have the same items with the same definitions, in any order.
    pub fn has_same_items(&self, other: &Self) -> bool {
        let is_same = |(entry, json): (&Entry, &Json)| {
            self.find(&entry.listed_name).is_some_and(|(_, own)| own == json)
        };
        self.len() == other.len() && (self.rendered == other.rendered || other.items().all(is_same))
    }

    /// Whether there are tools that agents do not see.
    pub fn has_tools_for_apps(&self) -> bool {
        self.entries.iter().any(|entry| !entry.item.app.is_for_model)
    }

    /// Bytes of all definitions.
    pub fn bytes(&self) -> usize {
        self.rendered.iter().map(|json| json.as_str().len()).sum()
    }
}
