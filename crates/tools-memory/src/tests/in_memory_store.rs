//! Minimal in-memory store for the tools.

use octo_ports::StoreResult;
use octo_toolkit::BoxFuture;
use octo_toolkit::memory::{
    DEFAULT_KIND, Dump, EndedFact, EntityPage, EntityRelation, EntitySummary, ForgetTarget, KnownEntity,
    KnownFact, Link, LinkResult, MemoryCaller, MemoryQuery, MemoryStore, NameMatch, NewEntity, PageRequest,
    QueryResult, Removal, UpsertResult,
};
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub struct InMemoryStore(Mutex<Content>);

#[derive(Default)]
struct Content {
    entities: Vec<KnownEntity>,
    ended: Vec<EndedFact>,
    links: Vec<Link>,
}

impl InMemoryStore {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().entities.is_empty()
    }

    /// All contents, in a comparable form.
    pub fn summary(&self) -> Vec<String> {
        let content = self.lock();
        let entities = content.entities.iter().map(|known| {
            let facts: Vec<&str> = known.facts.iter().map(|fact| fact.text.as_str()).collect();
            format!("{} {} {facts:?}", known.name, known.kind)
        });
        let mut all: Vec<String> =
            entities.chain(content.links.iter().map(|link| format!("{link:?}"))).collect();
        all.sort();
        all
    }
}

impl Content {
    fn upsert(&mut self, new: &NewEntity, call: &str) -> UpsertResult {
        let at = self.entities.iter().position(|known| known.name == new.name);
        let created = at.is_none();
        let at = at.unwrap_or_else(|| {
            self.entities.push(KnownEntity {
                name: new.name.clone(),
                kind: DEFAULT_KIND.to_owned(),
                facts: Vec::new(),
                fact_count: 0,
                links: Vec::new(),
                links_left_out: false,
                created: jiff::Timestamp::UNIX_EPOCH,
                updated: jiff::Timestamp::UNIX_EPOCH,
                score: None,
            });
            self.entities.len() - 1
        });
        let known = &mut self.entities[at];
        known.kind = new.kind.clone().unwrap_or_else(|| known.kind.clone());
        let before = known.facts.len();
        for fact in &new.facts {
            if known.facts.iter().all(|there| there.text != fact.text) {
                let (text, origin, source) = (fact.text.clone(), fact.origin, fact.source.clone());
                known.facts.push(KnownFact {
                    text,
                    origin,
                    source,
                    since: known.created,
                    call: call.to_owned(),
                });
            }
        }
        known.fact_count = known.facts.len() as u64;
        UpsertResult {
            name: new.name.clone(),
            created,
            added: (known.facts.len() - before) as u64,
            kind_was: None,
        }
    }

    fn with_links(&self, known: &KnownEntity, inward: bool) -> KnownEntity {
        let tie = |link: &Link| {
            let outward = link.source == known.name;
            let other = if outward { &link.target } else { &link.source };
            EntityRelation { relation: link.relation.clone(), other: other.clone(), outward }
        };
        let touches = |link: &&Link| link.source == known.name || (inward && link.target == known.name);
        KnownEntity { links: self.links.iter().filter(touches).map(tie).collect(), ..known.clone() }
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, StoreResult<T>> {
    Box::pin(async move { Ok(value) })
}

impl MemoryStore for InMemoryStore {
    fn upsert(
        &self,
        asker: MemoryCaller,
        entities: Vec<NewEntity>,
        _: NameMatch,
    ) -> BoxFuture<'_, StoreResult<Vec<UpsertResult>>> {
        let call = asker.call.to_string();
        ready(entities.iter().map(|new| self.lock().upsert(new, &call)).collect())
    }

    fn link(
        &self,
        asker: MemoryCaller,
        links: Vec<Link>,
        _: NameMatch,
    ) -> BoxFuture<'_, StoreResult<LinkResult>> {
        let mut linked = LinkResult::default();
        let mut content = self.lock();
        for link in links {
            for name in [&link.source, &link.target] {
                let new = NewEntity { name: name.clone(), kind: None, facts: Vec::new() };
                if content.upsert(&new, &asker.call.to_string()).created {
                    linked.created.push(name.clone());
                }
            }
            match content.links.contains(&link) {
                true => linked.skipped += 1,
                false => {
                    linked.added += 1;
                    content.links.push(link);
                }
            }
        }
        ready(linked)
    }

    fn query(&self, _: MemoryCaller, question: MemoryQuery) -> BoxFuture<'_, StoreResult<QueryResult>> {
        let content = self.lock();
        let fits = |known: &&KnownEntity| {
            let text = question.text.as_ref().map(|text| text.to_lowercase());
            question.name.as_ref().is_none_or(|name| *name == known.name)
                && text.is_none_or(|text| {
                    known.facts.iter().any(|fact| fact.text.to_lowercase().contains(&text))
                })
        };
        let entities: Vec<KnownEntity> =
            content.entities.iter().filter(fits).map(|known| content.with_links(known, true)).collect();
        ready(QueryResult { total: entities.len() as u64, entities, ..QueryResult::default() })
    }

    fn history(&self, _: MemoryCaller, name: String, _: usize) -> BoxFuture<'_, StoreResult<Vec<EndedFact>>> {
        let of_entity = |ended: &&EndedFact| ended.entity == name;
        ready(self.lock().ended.iter().rev().filter(of_entity).cloned().collect())
    }

    fn list(&self, _: MemoryCaller, page: PageRequest) -> BoxFuture<'_, StoreResult<EntityPage>> {
        let content = self.lock();
        let brief = |known: &KnownEntity| EntitySummary {
            name: known.name.clone(),
            kind: known.kind.clone(),
            fact_count: known.fact_count,
            updated: known.updated,
        };
        let entities = content.entities.iter().take(page.limit).map(brief).collect();
        ready(EntityPage { entities, total: content.entities.len() as u64, kinds: Vec::new() })
    }

    fn delete(
        &self,
        _: MemoryCaller,
        names: Vec<String>,
        _: Removal,
    ) -> BoxFuture<'_, StoreResult<Vec<String>>> {
        let mut content = self.lock();
        let there = |name: &String| content.entities.iter().any(|known| known.name == *name);
        let gone: Vec<String> = names.into_iter().filter(there).collect();
        content.entities.retain(|known| !gone.contains(&known.name));
        ready(gone)
    }

    fn forget(
        &self,
        _: MemoryCaller,
        what: ForgetTarget,
        removal: Removal,
    ) -> BoxFuture<'_, StoreResult<u64>> {
        let mut content = self.lock();
        let content = &mut *content;
        let ended = &mut content.ended;
        let before =
            content.links.len() + content.entities.iter().map(|known| known.facts.len()).sum::<usize>();
        match what {
            ForgetTarget::Link(link) => content.links.retain(|there| *there != link),
            ForgetTarget::Fact { entity, text } => {
                let known = content.entities.iter_mut().filter(|known| known.name == entity);
                for known in known {
                    let is_meant = |fact: &KnownFact| fact.text == text;
                    let (past, facts) = known.facts.drain(..).partition::<Vec<_>, _>(is_meant);
                    known.facts = facts;
                    let past = past.into_iter().filter(|_| removal == Removal::Ended);
                    ended.extend(past.map(|fact| EndedFact {
                        entity: entity.clone(),
                        fact,
                        until: jiff::Timestamp::UNIX_EPOCH,
                    }));
                }
            }
        }
        let after =
            content.links.len() + content.entities.iter().map(|known| known.facts.len()).sum::<usize>();
        ready((before - after) as u64)
    }

    fn dump(&self, _: MemoryCaller, after: i64, _: usize) -> BoxFuture<'_, StoreResult<Dump>> {
        let content = self.lock();
        // One at a time, to test continuation as well.
        let at = usize::try_from(after).unwrap();
        let entities: Vec<KnownEntity> =
            content.entities.iter().skip(at).take(1).map(|known| content.with_links(known, false)).collect();
        let next = (!entities.is_empty()).then_some(after + 1);
        ready(Dump { entities, next })
    }
}
