//! In-memory memories. Words are matched literally, without stemming or ranking.

use super::ready;
use crate::memory::{
    DEFAULT_KIND, Dump, EndedFact, EntityPage, EntityRelation, EntitySummary, ForgetTarget, KnownEntity,
    KnownFact, Link, LinkResult, MAX_FACTS, MemoryCaller, MemoryQuery, MemoryStore, NameMatch, NewEntity,
    PageRequest, QueryResult, Removal, UpsertResult,
};
use crate::{Limit, StoreError, StoreResult};
use jiff::Timestamp;
use octo_model::{BoxFuture, Principal};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct InMemoryMemory(Mutex<HashMap<Principal, Graph>>);

/// An item with its period of validity.
#[derive(Clone)]
struct Dated<T> {
    item: T,
    since: Timestamp,
    until: Option<Timestamp>,
}

impl<T> Dated<T> {
    fn holds(&self, at: Option<Timestamp>) -> bool {
        match at {
            None => self.until.is_none(),
            Some(at) => self.since <= at && self.until.is_none_or(|until| at < until),
        }
    }
}

#[derive(Default, Clone)]
struct Graph {
    entities: Vec<Dated<Entity>>,
    links: Vec<Dated<Link>>,
}

#[derive(Clone)]
struct Entity {
    name: String,
    kind: String,
    updated: Timestamp,
    facts: Vec<Dated<KnownFact>>,
}

/// Names that differ only in case and whitespace have the same folded form.
fn folded(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Ends or erases matching items; returns their number.
fn take<T>(
    items: &mut Vec<Dated<T>>,
    removal: Removal,
    now: Timestamp,
    fits: impl Fn(&Dated<T>) -> bool,
) -> u64 {
    let mut count = 0;
    items.retain_mut(|dated| {
        let gone = (removal == Removal::Erased || dated.until.is_none()) && fits(dated);
        count += u64::from(gone);
        if gone {
            dated.until = Some(now);
        }
        !(gone && removal == Removal::Erased)
    });
    count
}

impl Graph {
    /// A match by folded name must be the only one, and of the same type if one is given.
    fn find(&self, name: &str, kind: Option<&str>, names: NameMatch) -> Option<usize> {
        let live = || self.entities.iter().enumerate().filter(|(_, known)| known.holds(None));
        let exact = live().find(|(_, known)| known.item.name == name);
        let alike = || {
            let mut alike = live().filter(|(_, known)| folded(&known.item.name) == folded(name));
            let only = alike.next().filter(|_| alike.next().is_none());
            only.filter(|(_, known)| kind.is_none_or(|kind| folded(kind) == folded(&known.item.kind)))
        };
        let found = exact.or_else(|| (names == NameMatch::Alike).then(alike).flatten());
        found.map(|(at, _)| at)
    }

    fn upsert(&mut self, new: &NewEntity, names: NameMatch, call: &str) -> StoreResult<UpsertResult> {
        let now = Timestamp::now();
        let found = self.find(&new.name, new.kind.as_deref(), names);
        let at = found.unwrap_or(self.entities.len());
        if found.is_none() {
            let kind = DEFAULT_KIND.to_owned();
            let item = Entity { name: new.name.clone(), kind, updated: now, facts: Vec::new() };
            self.entities.push(Dated { item, since: now, until: None });
        }
        let Some(Dated { item: known, .. }) = self.entities.get_mut(at) else {
            return Err(StoreError::internal("an entity has disappeared"));
        };
        let kind = new.kind.clone().unwrap_or_else(|| known.kind.clone());
        let before = std::mem::replace(&mut known.kind, kind);
        let mut added = 0;
        for fact in &new.facts {
            let mut live = known.facts.iter().filter(|known| known.until.is_none());
            if live.clone().any(|known| known.item.text == fact.text) {
                continue;
            }
            if live.nth(MAX_FACTS - 1).is_some() {
                return Err(StoreError::Full(Limit::Facts(known.name.clone())));
            }
            let (text, origin, source) = (fact.text.clone(), fact.origin, fact.source.clone());
            let item = KnownFact { text, origin, source, since: now, call: call.to_owned() };
            known.facts.push(Dated { item, since: now, until: None });
            added += 1;
        }
        known.updated = now;
        let kind_was = (found.is_some() && before != known.kind).then_some(before);
        Ok(UpsertResult { name: known.name.clone(), created: found.is_none(), added, kind_was })
    }

    fn history(&self, name: &str, limit: usize) -> Vec<EndedFact> {
        let named = self.entities.iter().filter(|known| folded(&known.item.name) == folded(name));
        let ended = |entity: &Dated<Entity>, fact: &Dated<KnownFact>| {
            let until = fact.until.or(entity.until)?;
            Some(EndedFact { entity: entity.item.name.clone(), fact: fact.item.clone(), until })
        };
        let all =
            named.flat_map(|entity| entity.item.facts.iter().filter_map(move |fact| ended(entity, fact)));
        let mut all: Vec<EndedFact> = all.collect();
        all.sort_by_key(|ended| Reverse(ended.until));
        all.truncate(limit);
        all
    }

    fn link(
        &mut self,
        mut link: Link,
        names: NameMatch,
        call: &str,
        done: &mut LinkResult,
    ) -> StoreResult<()> {
        for name in [&mut link.source, &mut link.target] {
            let new = NewEntity { name: name.clone(), kind: None, facts: Vec::new() };
            let known = self.upsert(&new, names, call)?;
            if known.created {
                done.created.push(known.name.clone());
            }
            *name = known.name;
        }
        if self.links.iter().any(|known| known.holds(None) && known.item == link) {
            done.skipped += 1;
        } else {
            done.added += 1;
            self.links.push(Dated { item: link, since: Timestamp::now(), until: None });
        }
        Ok(())
    }

    fn shown(&self, known: &Dated<Entity>, query: &MemoryQuery, inward: bool) -> KnownEntity {
        let entity = &known.item;
        let facts = entity.facts.iter().filter(|fact| fact.holds(query.at)).map(|fact| fact.item.clone());
        let mut facts: Vec<KnownFact> =
            facts.filter(|fact| !query.stated_only || fact.origin.as_str() == "stated").collect();
        let fact_count = facts.len() as u64;
        facts.truncate(query.facts);
        let links = self.links.iter().filter(|link| query.links && link.holds(query.at));
        let relation = |link: &Link| {
            let outward = link.source == entity.name;
            let other = if outward { &link.target } else { &link.source };
            let touches = outward || (inward && link.target == entity.name);
            touches.then(|| EntityRelation { relation: link.relation.clone(), other: other.clone(), outward })
        };
        KnownEntity {
            name: entity.name.clone(),
            kind: entity.kind.clone(),
            facts,
            fact_count,
            links: links.filter_map(|link| relation(&link.item)).collect(),
            links_left_out: false,
            created: known.since,
            updated: entity.updated,
            score: None,
        }
    }

    fn query(&self, query: &MemoryQuery) -> QueryResult {
        let words: Vec<String> =
            query.text.iter().flat_map(|text| text.split_whitespace()).map(str::to_lowercase).collect();
        let holds = self.entities.iter().filter(|known| known.holds(query.at));
        let fits = holds
            .filter(|known| query.name.as_ref().is_none_or(|name| folded(name) == folded(&known.item.name)))
            .filter(|known| query.kind.as_ref().is_none_or(|kind| folded(kind) == folded(&known.item.kind)));
        let everything = MemoryQuery { facts: usize::MAX, ..query.clone() };
        let found = fits.filter(|known| {
            let shown = self.shown(known, &everything, true);
            let texts = shown.facts.iter().map(|fact| fact.text.as_str()).chain([&*shown.name, &shown.kind]);
            let text = texts.collect::<Vec<_>>().join(" ").to_lowercase();
            query.text.is_none() || words.iter().any(|word| text.contains(word))
        });
        let found: Vec<KnownEntity> = found.map(|known| self.shown(known, query, true)).collect();
        let total = found.len() as u64;
        QueryResult {
            entities: found.into_iter().take(query.limit).collect(),
            total,
            ..QueryResult::default()
        }
    }

    fn list(&self, page: &PageRequest) -> EntityPage {
        let mut live: Vec<&Entity> =
            self.entities.iter().filter(|known| known.holds(None)).map(|known| &known.item).collect();
        let mut counts: HashMap<&str, u64> = HashMap::new();
        live.iter().for_each(|known| *counts.entry(&known.kind).or_default() += 1);
        let mut kinds: Vec<(String, u64)> =
            counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        kinds.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        live.retain(|known| page.kind.as_ref().is_none_or(|kind| folded(kind) == folded(&known.kind)));
        live.sort_by(|one, two| one.name.cmp(&two.name));
        let total = live.len() as u64;
        let summary = |known: &Entity| EntitySummary {
            name: known.name.clone(),
            kind: known.kind.clone(),
            fact_count: known.facts.iter().filter(|fact| fact.holds(None)).count() as u64,
            updated: known.updated,
        };
        let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
        let entities = live.into_iter().skip(skipped).take(page.limit).map(summary).collect();
        EntityPage { entities, total, kinds }
    }

    fn delete(&mut self, names: Vec<String>, removal: Removal) -> Vec<String> {
        let now = Timestamp::now();
        let gone = |name: &String| {
            let count = take(&mut self.entities, removal, now, |known| known.item.name == *name);
            take(&mut self.links, removal, now, |link| {
                count > 0 && (link.item.source == *name || link.item.target == *name)
            });
            count > 0
        };
        names.into_iter().filter(gone).collect()
    }

    fn forget(&mut self, what: &ForgetTarget, removal: Removal) -> u64 {
        let now = Timestamp::now();
        match what {
            ForgetTarget::Link(link) => take(&mut self.links, removal, now, |known| known.item == *link),
            ForgetTarget::Fact { entity, text } => {
                let known = self.entities.iter_mut().filter(|known| known.item.name == *entity);
                let facts = known.map(|known| &mut known.item.facts);
                facts.map(|facts| take(facts, removal, now, |fact| fact.item.text == *text)).sum()
            }
        }
    }

    fn dump(&self, after: i64, limit: usize) -> Dump {
        let everything = MemoryQuery { links: true, facts: usize::MAX, ..MemoryQuery::default() };
        let first = usize::try_from(after).unwrap_or(usize::MAX);
        let part = self.entities.iter().enumerate().skip(first).filter(|(_, known)| known.holds(None));
        let part: Vec<(usize, KnownEntity)> =
            part.take(limit).map(|(at, known)| (at, self.shown(known, &everything, false))).collect();
        let next = part.last().map(|(at, _)| *at as i64 + 1);
        Dump { entities: part.into_iter().map(|(_, known)| known).collect(), next }
    }
}

impl InMemoryMemory {
    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, Graph>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Default>(&self, asker: &MemoryCaller, look: impl FnOnce(&Graph) -> T) -> StoreResult<T> {
        Ok(self.lock().get(&asker.principal).map(look).unwrap_or_default())
    }

    /// Applies the whole change, or nothing.
    fn write<T>(
        &self,
        asker: &MemoryCaller,
        change: impl FnOnce(&mut Graph) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let mut all = self.lock();
        let graph = all.entry(asker.principal.clone()).or_default();
        let mut changed = graph.clone();
        let done = change(&mut changed)?;
        *graph = changed;
        Ok(done)
    }
}

impl MemoryStore for InMemoryMemory {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        let call = asker.call.to_string();
        ready(
            self.write(&asker, |graph| entities.iter().map(|new| graph.upsert(new, names, &call)).collect()),
        )
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        names: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        let call = asker.call.to_string();
        ready(self.write(&asker, |graph| {
            let mut done = LinkResult::default();
            links.into_iter().try_for_each(|link| graph.link(link, names, &call, &mut done))?;
            Ok(done)
        }))
    }

    fn query(&self, asker: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        ready(self.read(&asker, |graph| graph.query(&question)))
    }

    fn history(
        &self,
        asker: MemoryCaller,
        name: String,
        limit: usize,
    ) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        ready(self.read(&asker, |graph| graph.history(&name, limit)))
    }

    fn list(&self, asker: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        ready(self.read(&asker, |graph| graph.list(&page)))
    }

    fn delete(
        &self,
        asker: MemoryCaller,
        names: Vec<String>,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        ready(self.write(&asker, |graph| Ok(graph.delete(names, removal))))
    }

    fn forget(
        &self,
        asker: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        ready(self.write(&asker, |graph| Ok(graph.forget(&what, removal))))
    }

    fn dump(&self, asker: MemoryCaller, after: i64, limit: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        ready(self.read(&asker, |graph| graph.dump(after, limit)))
    }
}
