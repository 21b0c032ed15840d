//! Entities at a point in time.

use octo_ports::memory::backend::{EntityHead, FactRow, LinkScope, NOW, exact_or_alike, timestamp};
use octo_ports::memory::{EntityRelation, FactOrigin, KnownEntity, KnownFact};
use octo_search::{first_row, last_row, normalize_name};
use rusqlite::{Connection, OptionalExtension, Row};

/// The time at which a memory is read, and what is excluded.
#[derive(Clone, Copy)]
pub(super) struct MemoryView<'a> {
    pub(super) conn: &'a Connection,
    pub(super) owner: i64,
    /// `NOW`, or microseconds since 1970.
    pub(super) at: i64,
    pub(super) stated_only: bool,
}

const HEAD_COLUMNS: &str = "id, name, kind, facts, since, updated";

impl<'a> MemoryView<'a> {
    pub(super) const fn is_now(&self) -> bool {
        self.at == NOW
    }

    /// The entity with this id, if it existed and belongs to the owner.
    pub(super) fn head(&self, entity: i64) -> rusqlite::Result<Option<EntityHead>> {
        let sql = format!(
            "SELECT {HEAD_COLUMNS} FROM entities WHERE id = ?1 AND owner = ?2 AND since <= ?3 AND until > ?3"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let head = statement.query_row((entity, self.owner, self.at), Self::head_from_row).optional()?;
        head.map(|head| self.at_time(head)).transpose()
    }

    /// Entities with this name: the exact match, or else all that differ only in case and whitespace.
    pub(super) fn by_name(&self, name: &str) -> rusqlite::Result<Vec<EntityHead>> {
        let sql = format!(
            "SELECT {HEAD_COLUMNS} FROM entities WHERE owner = ?1 AND folded = ?2 AND since <= ?3 AND until > ?3 ORDER BY until, id"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map((self.owner, normalize_name(name), self.at), Self::head_from_row)?;
        let alike = exact_or_alike(rows.collect::<rusqlite::Result<_>>()?, name);
        alike.into_iter().map(|head| self.at_time(head)).collect()
    }

    pub(super) fn head_from_row(row: &Row<'_>) -> rusqlite::Result<EntityHead> {
        let (id, name, kind) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(EntityHead { id, name, kind, fact_count: row.get(3)?, since: row.get(4)?, updated: row.get(5)? })
    }

    /// Sets the type that an entity had at the time.
    pub(super) fn at_time(&self, mut head: EntityHead) -> rusqlite::Result<EntityHead> {
        if !self.is_now() {
            let sql =
                "SELECT kind FROM former_kinds WHERE entity = ?1 AND until > ?2 ORDER BY until, id LIMIT 1";
            let mut former = self.conn.prepare_cached(sql)?;
            if let Some(kind) = former.query_row((head.id, self.at), |row| row.get(0)).optional()? {
                head.kind = kind;
            }
        }
        Ok(head)
    }

    /// The newest observations, newest first.
    pub(super) fn facts(&self, entity: i64, most: usize) -> rusqlite::Result<Vec<FactRow>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, text, origin, source, call, since FROM facts
             WHERE id BETWEEN ?1 AND ?2 AND since <= ?3 AND until > ?3 AND origin <= ?4 ORDER BY id DESC LIMIT ?5",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let span = (first_row(entity) + 1, last_row(entity), self.at, self.max_origin(), most);
        statement.query_map(span, fact_from_row)?.collect()
    }

    /// One observation by its row, if it was valid.
    pub(super) fn fact(&self, row: i64) -> rusqlite::Result<Option<FactRow>> {
        self.conn
            .prepare_cached(
                "SELECT id, text, origin, source, call, since FROM facts
                 WHERE id = ?1 AND since <= ?2 AND until > ?2 AND origin <= ?3",
            )?
            .query_row((row, self.at, self.max_origin()), fact_from_row)
            .optional()
    }

    const fn max_origin(&self) -> i64 {
        FactOrigin::max_code(self.stated_only)
    }

    fn count(&self, head: &EntityHead) -> rusqlite::Result<i64> {
        if self.is_now() && !self.stated_only {
            return Ok(head.fact_count);
        }
        self.conn
            .prepare_cached(
                "SELECT count(*) FROM facts
                 WHERE id BETWEEN ?1 AND ?2 AND since <= ?3 AND until > ?3 AND origin <= ?4",
            )?
            .query_row((first_row(head.id), last_row(head.id), self.at, self.max_origin()), |row| row.get(0))
    }

    /// An entity with these observations, which are sorted.
    pub(super) fn build_entity(
        &self,
        head: EntityHead,
        facts: Vec<FactRow>,
        links: LinkScope,
    ) -> rusqlite::Result<KnownEntity> {
        let (fact_count, relations) = (self.count(&head)?, self.relations(head.id, links)?);
        Ok(EntityHead { fact_count, ..head }.into_known(facts, relations, links, self.at))
    }

    fn relations(&self, entity: i64, links: LinkScope) -> rusqlite::Result<Vec<EntityRelation>> {
        let outward = "SELECT l.relation, e.name FROM links l JOIN entities e ON e.id = l.target
             WHERE l.source = ?1 AND l.since <= ?2 AND l.until > ?2
             ORDER BY l.relation, l.target, l.until, l.id LIMIT ?3";
        let inward = "SELECT l.relation, e.name FROM links l JOIN entities e ON e.id = l.source
             WHERE l.target = ?1 AND l.since <= ?2 AND l.until > ?2 ORDER BY l.until, l.id LIMIT ?3";
        let sides: &[(&str, bool)] = match links {
            LinkScope::None => &[],
            LinkScope::Limited => &[(outward, true), (inward, false)],
            LinkScope::AllOutward => &[(outward, true)],
        };
        let mut ties = Vec::new();
        for (sql, outward) in sides {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map((entity, self.at, links.limit()), |row| {
                Ok(EntityRelation { relation: row.get(0)?, other: row.get(1)?, outward: *outward })
            })?;
            for tie in rows {
                ties.push(tie?);
            }
        }
        Ok(ties)
    }
}

pub(super) fn fact_from_row(row: &Row<'_>) -> rusqlite::Result<FactRow> {
    let fact = KnownFact {
        text: row.get(1)?,
        origin: FactOrigin::from_code(row.get(2)?),
        source: row.get(3)?,
        call: row.get(4)?,
        since: timestamp(row.get(5)?),
    };
    Ok(FactRow { row: row.get(0)?, fact })
}
