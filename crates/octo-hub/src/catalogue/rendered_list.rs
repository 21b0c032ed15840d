//! A list of one kind of items, with their definitions as clients get them.

use crate::apps::app_tool::without_apps;
use crate::catalogue::client_features::ClientFeatures;
use crate::catalogue::item::Entry;
use crate::catalogue::surface::{ListedTools, Structure, Surface};
use octo_model::{ItemKind, Json, JsonObject};
use octo_toolkit::TEXT_ONLY_META_KEY;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Who a list is for, which decides what it has and how that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ListVariant {
    pub features: ClientFeatures,
    /// For MCP clients; without one, all items are listed with their whole definitions.
    pub surface: Option<(Surface, Structure)>,
}

/// A list for one kind of clients.
#[derive(Default)]
pub struct VariantList {
    /// Positions in the whole list.
    pub positions: Vec<usize>,
    pub rendered: Vec<Json>,
    /// Rendered pages, created on first request.
    pages: Mutex<HashMap<usize, Json>>,
}

impl VariantList {
    /// Returns a rendered page.
    pub fn page(&self, number: usize, make: impl FnOnce() -> Json) -> Json {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.entry(number).or_insert_with(make).clone()
    }
}

#[derive(Default)]
pub struct RenderedList {
    pub entries: Vec<Entry>,
    pub rendered: Vec<Json>,
    /// Whether each item is of a source without an app, as of when it was listed.
    without_app: Vec<bool>,
    /// The list as clients get it, created on first request.
    variants: Mutex<HashMap<ListVariant, Arc<VariantList>>>,
    /// Positions of the items, by listed name.
    positions: OnceLock<HashMap<Box<str>, usize>>,
}

#[derive(Default)]
struct Additions<'a> {
    /// Positions in the other list.
    positions: Vec<usize>,
    /// How many of them are of sources that the list had already.
    of_known_sources: BTreeMap<&'a str, usize>,
}

impl RenderedList {
    pub fn new(entries: Vec<Entry>) -> Self {
        let rendered = entries.iter().map(Entry::rendered).collect();
        let apps = entries.iter().filter(|entry| entry.item.app.is_part_of_app).map(Entry::source_name);
        let apps: HashSet<&str> = apps.collect();
        let is_without =
            |entry: &Entry| entry.item.kind == ItemKind::Tool && !apps.contains(entry.source_name());
        let without_app = entries.iter().map(is_without).collect();
        Self { entries, rendered, without_app, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The list for a client. One that shows apps is told which tools no app may call: it takes all servers behind the hub
    /// for one.
    pub fn variant(&self, variant: ListVariant, listed: &ListedTools) -> Arc<VariantList> {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let made = variants.entry(variant).or_insert_with(|| Arc::new(self.make_variant(variant, listed)));
        Arc::clone(made)
    }

    fn make_variant(
        &self,
        ListVariant { features, surface }: ListVariant,
        listed: &ListedTools,
    ) -> VariantList {
        let mut made = VariantList::default();
        let items = self.items().zip(&self.without_app).enumerate();
        for (at, ((entry, json), without_app)) in items {
            let is_tool = entry.item.kind == ItemKind::Tool;
            let is_on_surface = |(surface, _): (Surface, _)| !is_tool || surface.lists(listed, entry);
            if !features.lists(entry) || !surface.is_none_or(is_on_surface) {
                continue;
            }
            let mut json = json.clone();
            if let Some((_, structure)) = surface.filter(|_| is_tool) {
                json = for_models(entry, json, structure);
            }
            if features.apps && *without_app {
                json = without_apps(&json);
            }
            made.positions.push(at);
            made.rendered.push(json);
        }
        made
    }

    pub fn items(&self) -> impl Iterator<Item = (&Entry, &Json)> {
        self.entries.iter().zip(&self.rendered)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let positions = self.positions.get_or_init(|| {
            let names = self.entries.iter().map(|entry| Box::from(&*entry.listed_name));
            names.enumerate().map(|(at, name)| (name, at)).collect()
        });
        positions.get(name).copied()
    }

    /// Returns the item with this listed name.
    pub fn find(&self, name: &str) -> Option<(&Entry, &Json)> {
        let at = self.position(name)?;
        Some((self.entries.get(at)?, self.rendered.get(at)?))
    }

    /// Items of another list that this one does not have: all of new sources, and up to a number of each known one.
    fn additions<'a>(&self, other: &'a Self, room: impl Fn(&str) -> usize) -> Additions<'a> {
        let known: HashSet<&str> = self.entries.iter().map(Entry::source_name).collect();
        let mut additions = Additions::default();
        for (at, entry) in other.entries.iter().enumerate() {
            let source = entry.source_name();
            if self.find(&entry.listed_name).is_some() {
                continue;
            }
            if known.contains(source) {
                let added = additions.of_known_sources.entry(source).or_default();
                if *added == room(source) {
                    continue;
                }
                *added += 1;
            }
            additions.positions.push(at);
        }
        additions
    }

    /// Whether another list has items that can be appended.
    pub fn lacks_items_of(&self, other: &Self, room: impl Fn(&str) -> usize) -> bool {
        !self.additions(other, room).positions.is_empty()
    }

    /// This list, and after it the items of another one that it does not have. Also returns how many were added per source
    /// that it had already; these are at most `room`.
    pub fn with_additions<'a>(
        &self,
        other: &'a Self,
        room: impl Fn(&str) -> usize,
    ) -> (Self, BTreeMap<&'a str, usize>) {
        let additions = self.additions(other, room);
        let (mut entries, mut rendered) = (self.entries.clone(), self.rendered.clone());
        let mut without_app = self.without_app.clone();
        for at in additions.positions {
            entries.extend(other.entries.get(at).cloned());
            rendered.extend(other.rendered.get(at).cloned());
            without_app.extend(other.without_app.get(at));
        }
        (Self { entries, rendered, without_app, ..Self::default() }, additions.of_known_sources)
    }

    /// Whether both have the same items with the same definitions, in any order.
    pub fn has_same_items(&self, other: &Self) -> bool {
        let is_same = |((entry, json), without_app): ((&Entry, &Json), &bool)| {
            let at = self.position(&entry.listed_name);
            at.is_some_and(|at| {
                self.rendered.get(at) == Some(json) && self.without_app.get(at) == Some(without_app)
            })
        };
        self.len() == other.len() && other.items().zip(&other.without_app).all(is_same)
    }

    /// Bytes of all definitions.
    pub fn bytes(&self) -> usize {
        self.rendered.iter().map(|json| json.as_str().len()).sum()
    }
}

/// The definition of a tool as MCP clients get it: without the schema of structured results that they do not get.
pub fn for_models(entry: &Entry, definition: Json, structure: Structure) -> Json {
    let is_text_only = entry.item.is_text_only();
    if structure == Structure::On && !is_text_only {
        return definition;
    }
    let Ok(mut members) = definition.members() else { return definition };
    members.remove("outputSchema");
    if is_text_only {
        remove_text_only_mark(&mut members);
    }
    members.to_json()
}

/// Removes the mark of definitions and results whose structure is not for models. Returns whether there was one.
pub fn remove_text_only_mark(members: &mut JsonObject) -> bool {
    let mut meta = members.object("_meta");
    if !meta.is_true(TEXT_ONLY_META_KEY) {
        return false;
    }
    meta.remove(TEXT_ONLY_META_KEY);
    if meta.is_empty() {
        members.remove("_meta");
    } else {
        members.set("_meta", meta);
    }
    true
}
