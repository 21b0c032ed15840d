//! The entities that a change names, as they are and as they become. Written at once at the end of the change.

use super::change_statement::{ChangeStatement, KindCounts, WordList, row_words};
use super::memory_transaction::{MemoryOwner, MemoryTransaction};
use super::name_key::name_key;
use octo_ports::memory::backend::{NO_END, quota_size, select_by_name};
use octo_ports::memory::{DEFAULT_KIND, Fact, MAX_FACTS, NameMatch};
use octo_ports::{Limit, StoreError, StoreResult};
use octo_search::{first_row, last_row, normalize_name};
use std::collections::{HashMap, HashSet};

/// Place of an entity in a batch.
pub(super) type EntityIndex = usize;

pub(super) struct EntityDraft {
    pub(super) id: i64,
    pub(super) name: String,
    folded: String,
    pub(super) kind: String,
    /// Before this change; the entity is new without one.
    kind_before: Option<String>,
    fact_count: i64,
    last_row: i64,
    /// Current observations, as far as this change has the same.
    known_facts: HashSet<String>,
    is_changed: bool,
}

#[derive(Default)]
struct NewFacts {
    rows: Vec<i64>,
    texts: Vec<String>,
    origins: Vec<i64>,
    sources: Vec<Option<String>>,
}

#[derive(Default)]
struct FormerKinds {
    entities: Vec<i64>,
    kinds: Vec<String>,
    keys: Vec<String>,
}

#[derive(Default)]
pub(super) struct EntityBatch {
    entities: Vec<EntityDraft>,
    by_key: HashMap<String, Vec<EntityIndex>>,
    facts: NewFacts,
    former_kinds: FormerKinds,
    words: WordList,
    /// Bytes by which the memory grows.
    pub(super) grown: i64,
}

impl EntityBatch {
    /// Reads the current entities of all names, and which of the observations they have.
    pub(super) async fn load<'a>(
        transaction: &mut MemoryTransaction,
        names: impl IntoIterator<Item = &'a str>,
        facts: Vec<&'a str>,
    ) -> StoreResult<Self> {
        let keys: HashSet<String> = names.into_iter().map(name_key).collect();
        let keys: Vec<String> = keys.into_iter().collect();
        let rows_per_entity = first_row(1);
        let sql = format!(
            "WITH found AS MATERIALIZED (
                SELECT id, name, folded, kind, facts, last_row, id * {rows_per_entity} AS first_fact
                FROM memory_entities WHERE owner = $1 AND folded = ANY ($2) AND until = {NO_END}
             )
             SELECT id, name, folded, kind, facts, last_row, ARRAY(
                SELECT f.text FROM memory_facts f WHERE cardinality($3) > 0 AND f.owner = $1 AND f.until = {NO_END}
                AND f.id BETWEEN found.first_fact AND found.last_row AND f.text = ANY ($3)
             )
             FROM found ORDER BY id"
        );
        let mut batch = Self::default();
        for row in transaction.query(&sql, &[&keys, &facts]).await? {
            let kind: String = row.get(3);
            batch.add(EntityDraft {
                id: row.get(0),
                name: row.get(1),
                folded: row.get(2),
                kind_before: Some(kind.clone()),
                kind,
                fact_count: row.get(4),
                last_row: row.get(5),
                known_facts: row.get::<_, Vec<String>>(6).into_iter().collect(),
                is_changed: false,
            });
        }
        Ok(batch)
    }

    fn add(&mut self, entity: EntityDraft) -> EntityIndex {
        let index = self.entities.len();
        self.by_key.entry(entity.folded.clone()).or_default().push(index);
        self.entities.push(entity);
        index
    }

    pub(super) fn get(&self, index: EntityIndex) -> StoreResult<&EntityDraft> {
        self.entities.get(index).ok_or_else(missing)
    }

    fn get_mut(&mut self, index: EntityIndex) -> StoreResult<&mut EntityDraft> {
        self.entities.get_mut(index).ok_or_else(missing)
    }

    /// The current entity of a name. A match by folded name must be the only one, and of the same type if one is given.
    pub(super) fn find(&self, name: &str, names: NameMatch, kind: Option<&str>) -> Option<EntityIndex> {
        let indexes = self.by_key.get(&name_key(name)).into_iter().flatten();
        let alike = indexes.filter_map(|index| self.entities.get(*index).map(|entity| (*index, entity)));
        let is_of_kind = |(_, entity): &(EntityIndex, &EntityDraft)| {
            kind.is_none_or(|kind| normalize_name(kind) == normalize_name(&entity.kind))
        };
        let found = select_by_name(alike, name, names, |(_, entity)| &entity.name, is_of_kind);
        found.map(|(index, _)| index)
    }

    pub(super) fn create(&mut self, owner: &mut MemoryOwner, name: &str, kind: Option<&str>) -> EntityIndex {
        owner.last_entity += 1;
        self.grown += quota_size(name);
        self.add(EntityDraft {
            id: owner.last_entity,
            name: name.to_owned(),
            folded: name_key(name),
            kind: kind.unwrap_or(DEFAULT_KIND).to_owned(),
            kind_before: None,
            fact_count: 0,
            last_row: first_row(owner.last_entity),
            known_facts: HashSet::new(),
            is_changed: false,
        })
    }

    /// Sets the type, and returns the previous one if it changes.
    pub(super) fn set_kind(&mut self, index: EntityIndex, kind: &str) -> StoreResult<Option<String>> {
        let entity = self.get_mut(index)?;
        entity.is_changed = true;
        if normalize_name(kind) == normalize_name(&entity.kind) {
            return Ok(None);
        }
        let (id, before) = (entity.id, std::mem::replace(&mut entity.kind, kind.to_owned()));
        self.former_kinds.entities.push(id);
        self.former_kinds.keys.push(name_key(&before));
        self.former_kinds.kinds.push(before.clone());
        Ok(Some(before))
    }

    /// Adds the observations that do not exist yet; returns their number.
    pub(super) fn add_facts(&mut self, index: EntityIndex, facts: &[Fact]) -> StoreResult<u64> {
        let entity = self.entities.get_mut(index).ok_or_else(missing)?;
        entity.is_changed = true;
        let mut added = 0;
        for fact in facts {
            if !entity.known_facts.insert(fact.text.clone()) {
                continue;
            }
            if entity.fact_count >= MAX_FACTS as i64 || entity.last_row >= last_row(entity.id) {
                return Err(StoreError::Full(Limit::Facts(entity.name.clone())));
            }
            (entity.fact_count, entity.last_row, added) =
                (entity.fact_count + 1, entity.last_row + 1, added + 1);
            self.facts.rows.push(entity.last_row);
            self.facts.texts.push(fact.text.clone());
            self.facts.origins.push(fact.origin.code());
            self.facts.sources.push(fact.source.clone());
            self.words.add(entity.last_row, row_words(&[&fact.text]));
            self.grown += quota_size(&fact.text);
        }
        Ok(added)
    }

    /// Adds all changes to the statement.
    pub(super) fn write(mut self, owner: &MemoryOwner, changes: &mut ChangeStatement) {
        let (mut kinds, mut removed) = (KindCounts::default(), WordList::default());
        for entity in &self.entities {
            let words = row_words(&[&entity.name, &entity.kind]);
            let row = first_row(entity.id);
            match &entity.kind_before {
                None => {
                    kinds.add(&entity.kind, 1);
                    self.words.add(row, words);
                }
                Some(before) if *before != entity.kind => {
                    kinds.add(before, -1);
                    kinds.add(&entity.kind, 1);
                    let before = row_words(&[&entity.name, before]);
                    removed.add(row, before.difference(&words).cloned());
                    self.words.add(row, words.difference(&before).cloned());
                }
                Some(_) => {}
            }
        }
        let (new, known): (Vec<_>, Vec<_>) =
            self.entities.into_iter().partition(|entity| entity.kind_before.is_none());
        insert_entities(&new, changes);
        update_entities(&known, changes);
        insert_former_kinds(self.former_kinds, changes);
        insert_facts(self.facts, owner, changes);
        changes.count_kinds(kinds);
        changes.remove_words(removed, false);
        changes.add_words(self.words);
    }
}

fn missing() -> StoreError {
    StoreError::internal("an entity has disappeared")
}

/// One value per column.
fn columns(entities: &[&EntityDraft], changes: &mut ChangeStatement) -> String {
    let ids = changes.value(entities.iter().map(|entity| entity.id).collect::<Vec<_>>());
    let kinds = changes.value(entities.iter().map(|entity| entity.kind.clone()).collect::<Vec<_>>());
    let keys = changes.value(entities.iter().map(|entity| name_key(&entity.kind)).collect::<Vec<_>>());
    let facts = changes.value(entities.iter().map(|entity| entity.fact_count).collect::<Vec<_>>());
    let last_rows = changes.value(entities.iter().map(|entity| entity.last_row).collect::<Vec<_>>());
    format!("{ids}::int8[], {kinds}::text[], {keys}::text[], {facts}::int8[], {last_rows}::int8[]")
}

fn insert_entities(entities: &[EntityDraft], changes: &mut ChangeStatement) {
    if entities.is_empty() {
        return;
    }
    let columns = columns(&entities.iter().collect::<Vec<_>>(), changes);
    let names = changes.value(entities.iter().map(|entity| entity.name.clone()).collect::<Vec<_>>());
    let folded = changes.value(entities.iter().map(|entity| entity.folded.clone()).collect::<Vec<_>>());
    changes.part(format!(
        "INSERT INTO memory_entities
            (owner, tenant, id, kind, kind_folded, facts, last_row, name, folded, updated, since, until)
         SELECT $1, $2, e.*, $3, $3, {NO_END} FROM unnest({columns}, {names}::text[], {folded}::text[]) AS e"
    ));
}

fn update_entities(entities: &[EntityDraft], changes: &mut ChangeStatement) {
    let changed: Vec<&EntityDraft> = entities.iter().filter(|entity| entity.is_changed).collect();
    if changed.is_empty() {
        return;
    }
    let columns = columns(&changed, changes);
    changes.part(format!(
        "UPDATE memory_entities e
         SET kind = c.kind, kind_folded = c.kind_folded, facts = c.facts, last_row = c.last_row, updated = $3
         FROM unnest({columns}) AS c (id, kind, kind_folded, facts, last_row)
         WHERE e.owner = $1 AND e.id = c.id"
    ));
}

fn insert_former_kinds(former: FormerKinds, changes: &mut ChangeStatement) {
    if former.entities.is_empty() {
        return;
    }
    let (entities, kinds) = (changes.value(former.entities), changes.value(former.kinds));
    let keys = changes.value(former.keys);
    changes.part(format!(
        "INSERT INTO memory_former_kinds (owner, tenant, entity, kind, kind_folded, until)
         SELECT $1, $2, k.*, $3 FROM unnest({entities}::int8[], {kinds}::text[], {keys}::text[]) AS k"
    ));
}

fn insert_facts(facts: NewFacts, owner: &MemoryOwner, changes: &mut ChangeStatement) {
    if facts.rows.is_empty() {
        return;
    }
    let (rows, texts) = (changes.value(facts.rows), changes.value(facts.texts));
    let (origins, sources) = (changes.value(facts.origins), changes.value(facts.sources));
    let call = changes.value(owner.call.clone());
    changes.part(format!(
        "INSERT INTO memory_facts (owner, tenant, id, text, origin, source, call, since, until)
         SELECT $1, $2, f.*, {call}, $3, {NO_END}
         FROM unnest({rows}::int8[], {texts}::text[], {origins}::int8[], {sources}::text[]) AS f"
    ));
}
