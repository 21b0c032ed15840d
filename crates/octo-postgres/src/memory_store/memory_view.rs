//! Entities at a point in time. Row-level security restricts what an index can look up: conditions must compare
//! columns with values, not with results of functions such as `id * 2`, which are therefore computed in subqueries of their
//! own (`OFFSET 0` keeps them apart).

use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::Principal;
use octo_ports::memory::backend::{EntityHead, FactRow, LinkScope, NO_END, NOW, timestamp};
use octo_ports::memory::{EntityRelation, FactOrigin, KnownFact};
use octo_ports::{Port, StoreResult};
use octo_search::first_row;
use std::collections::HashMap;
use tokio_postgres::Row;

/// The id of the memory's owner, which is NULL if nothing was ever written.
pub(super) const OWNER: &str = "(SELECT id FROM me)";
const WITH_OWNER: &str =
    "WITH me AS MATERIALIZED (SELECT id FROM memory_owners WHERE tenant = $1 AND subject = $2)";

/// Number of the first value beside those that each statement has.
const FIRST_VALUE: usize = 5;

/// An entity with some of its observations, newest first.
pub(super) struct EntityFacts {
    pub(super) head: EntityHead,
    pub(super) facts: Vec<FactRow>,
}

/// The time at which a memory is read, and what is excluded. Each statement sees a state of its own.
#[derive(Clone, Copy)]
pub(super) struct MemoryView<'a> {
    pub(super) database: &'a Database,
    pub(super) principal: &'a Principal,
    /// `NOW`, or microseconds since 1970.
    pub(super) at: i64,
    pub(super) stated_only: bool,
}

impl MemoryView<'_> {
    pub(super) const fn is_now(&self) -> bool {
        self.at == NOW
    }

    /// Condition on entities that exist at the time.
    pub(super) fn is_valid(&self) -> String {
        if self.is_now() { format!("until = {NO_END}") } else { "since <= $3 AND until > $3".to_owned() }
    }

    /// `$1` and `$2` are the owner, `$3` the time and `$4` the last origin; the given values follow.
    pub(super) async fn read(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        let origin = FactOrigin::max_code(self.stated_only);
        let mut all: Vec<&dyn Value> = Vec::with_capacity(FIRST_VALUE + values.len());
        let common: [&dyn Value; FIRST_VALUE - 1] =
            [&self.principal.tenant, &self.principal.subject, &self.at, &origin];
        all.extend(common);
        all.extend(values);
        let sql = format!("{WITH_OWNER} {sql}");
        self.database.read(Port::Memory, Scope::Tenant(&self.principal.tenant), &sql, &all).await
    }

    /// Entities with up to `$5` of their newest observations. `source` selects rows of entities, with their position
    /// `n`, and may use values from `$6`.
    pub(super) async fn entities(
        &self,
        source: &str,
        limit: usize,
        values: &[&dyn Value],
    ) -> StoreResult<Vec<EntityFacts>> {
        let rows_per_entity = first_row(1);
        let kind = match self.is_now() {
            true => "e.kind".to_owned(),
            false => former_kind("kind"),
        };
        let fact_count = match self.is_now() && !self.stated_only {
            true => "SELECT h.facts AS count".to_owned(),
            false => format!(
                "SELECT count(*) AS count FROM memory_facts WHERE owner = {OWNER}
                 AND id BETWEEN h.first_row AND h.last_row AND since <= $3 AND until > $3 AND origin <= $4"
            ),
        };
        let sql = format!(
            "SELECT h.id, h.name, h.kind, c.count, h.since, h.updated,
                f.id, f.text, f.origin, f.source, f.call, f.since
             FROM (
                SELECT e.n, e.id, e.name, {kind} AS kind, e.facts, e.since, e.updated,
                    e.id * {rows_per_entity} AS first_row, (e.id + 1) * {rows_per_entity} - 1 AS last_row
                FROM ({source}) e OFFSET 0
             ) h
             CROSS JOIN LATERAL ({fact_count}) c
             LEFT JOIN LATERAL (
                SELECT id, text, origin, source, call, since FROM memory_facts
                WHERE owner = {OWNER} AND id BETWEEN h.first_row AND h.last_row
                AND since <= $3 AND until > $3 AND origin <= $4 ORDER BY id DESC LIMIT $5
             ) f ON true
             ORDER BY h.n, f.id DESC"
        );
        let limit = limit_value(limit);
        let mut all: Vec<&dyn Value> = vec![&limit];
        all.extend(values);
        Ok(group(&self.read(&sql, &all).await?))
    }

    /// Those of the entities that existed, in the given order.
    pub(super) async fn by_ids(&self, ids: Vec<i64>, limit: usize) -> StoreResult<Vec<EntityFacts>> {
        let source = format!(
            "SELECT e.*, n FROM unnest($6::int8[]) WITH ORDINALITY AS wanted (wanted_id, n)
             JOIN memory_entities e ON e.owner = {OWNER} AND e.id = wanted_id WHERE {}",
            self.is_valid()
        );
        self.entities(&source, limit, &[&ids]).await
    }

    /// Observations by their rows, as far as they were valid, in the order of their rows.
    pub(super) async fn facts(&self, rows: Vec<i64>) -> StoreResult<Vec<FactRow>> {
        let sql = format!(
            "SELECT id, text, origin, source, call, since FROM memory_facts
             WHERE owner = {OWNER} AND id = ANY ($5) AND since <= $3 AND until > $3 AND origin <= $4 ORDER BY id"
        );
        let rows = self.read(&sql, &[&rows]).await?;
        Ok(rows.iter().filter_map(|row| fact_from_row(row, 0)).collect())
    }

    /// The relations of entities.
    pub(super) async fn relations(
        &self,
        entities: Vec<i64>,
        scope: LinkScope,
    ) -> StoreResult<HashMap<i64, Vec<EntityRelation>>> {
        let mut relations: HashMap<i64, Vec<EntityRelation>> = HashMap::new();
        if entities.is_empty() || scope == LinkScope::None {
            return Ok(relations);
        }
        let side = |is_outward: bool| {
            let (this, other, order) = match is_outward {
                true => ("source", "target", "l.relation, l.target, l.until, l.id"),
                false => ("target", "source", "l.until, l.id"),
            };
            format!(
                "(SELECT {is_outward} AS outward, l.relation, e.name, row_number() OVER (ORDER BY {order}) AS n
                 FROM memory_links l JOIN memory_entities e ON e.owner = l.owner AND e.id = l.{other}
                 WHERE l.owner = {OWNER} AND l.{this} = wanted.id AND l.since <= $3 AND l.until > $3
                 ORDER BY {order} LIMIT $6)"
            )
        };
        let sides = match scope {
            LinkScope::AllOutward => side(true),
            _ => format!("{} UNION ALL {}", side(true), side(false)),
        };
        let sql = format!(
            "SELECT wanted.id, l.outward, l.relation, l.name FROM unnest($5::int8[]) AS wanted (id)
             CROSS JOIN LATERAL ({sides}) l ORDER BY l.outward DESC, l.n"
        );
        for row in self.read(&sql, &[&entities, &scope.limit()]).await? {
            let relation = EntityRelation { outward: row.get(1), relation: row.get(2), other: row.get(3) };
            relations.entry(row.get(0)).or_default().push(relation);
        }
        Ok(relations)
    }
}

/// A column of the type that entity `e` had at the time.
pub(super) fn former_kind(column: &str) -> String {
    format!(
        "coalesce((SELECT k.{column} FROM memory_former_kinds k
         WHERE k.owner = e.owner AND k.entity = e.id AND k.until > $3 ORDER BY k.until, k.id LIMIT 1), e.{column})"
    )
}

pub(super) fn limit_value(limit: impl TryInto<i64>) -> i64 {
    limit.try_into().unwrap_or(i64::MAX)
}

/// Rows of one entity are adjacent.
fn group(rows: &[Row]) -> Vec<EntityFacts> {
    let mut entities: Vec<EntityFacts> = Vec::new();
    for row in rows {
        let id: i64 = row.get(0);
        let fact = fact_from_row(row, 6);
        match entities.last_mut() {
            Some(entity) if entity.head.id == id => entity.facts.extend(fact),
            _ => {
                let (name, kind, fact_count) = (row.get(1), row.get(2), row.get(3));
                let head = EntityHead { id, name, kind, fact_count, since: row.get(4), updated: row.get(5) };
                entities.push(EntityFacts { head, facts: fact.into_iter().collect() });
            }
        }
    }
    entities
}

/// From six columns. `None` for an entity without observations.
pub(super) fn fact_from_row(row: &Row, first: usize) -> Option<FactRow> {
    let fact = KnownFact {
        text: row.get::<_, Option<String>>(first + 1)?,
        origin: FactOrigin::from_code(row.get(first + 2)),
        source: row.get(first + 3),
        call: row.get(first + 4),
        since: timestamp(row.get(first + 5)),
    };
    Some(FactRow { row: row.get(first), fact })
}
