//! Entities as they were believed at a moment.

use super::pen::origin;
use super::tables::{ENDLESS, NOW, first_row, last_row};
use super::words::fold;
use jiff::Timestamp;
use octo_grants::memory::{Known, KnownFact, Tie};
use rusqlite::{Connection, OptionalExtension, Row};

/// Most relations that are shown with one entity.
const LINKS: usize = 100;

/// A moment at which a memory is looked at, and what is left out.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) conn: &'a Connection,
    pub(super) owner: i64,
    /// `NOW`, or microseconds since 1970.
    pub(super) at: i64,
    pub(super) stated_only: bool,
}

/// An entity without its observations.
pub(super) struct Head {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) fact_count: i64,
    since: i64,
    pub(super) updated: i64,
}

/// One observation and its row.
pub(super) struct Seen {
    pub(super) row: i64,
    pub(super) fact: KnownFact,
}

pub(super) fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

const HEAD: &str = "id, name, kind, facts, since, updated";

impl<'a> View<'a> {
    pub(super) const fn is_now(&self) -> bool {
        self.at == NOW
    }

    /// The entity with this number, when it was there and is the owner's.
    pub(super) fn head(&self, entity: i64) -> rusqlite::Result<Option<Head>> {
        let sql = format!(
            "SELECT {HEAD} FROM entities WHERE id = ?1 AND owner = ?2 AND since <= ?3 AND until > ?3"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let head = statement.query_row((entity, self.owner, self.at), Self::read).optional()?;
        head.map(|head| self.then(head)).transpose()
    }

    /// Those with this name: the very one, or else all that differ in capitals and spaces alone.
    pub(super) fn named(&self, name: &str) -> rusqlite::Result<Vec<Head>> {
        let sql = format!(
            "SELECT {HEAD} FROM entities WHERE owner = ?1 AND folded = ?2 AND since <= ?3 AND until > ?3"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map((self.owner, fold(name), self.at), Self::read)?;
        let mut alike: Vec<Head> = rows.collect::<rusqlite::Result<_>>()?;
        if let Some(at) = alike.iter().position(|head| head.name == name) {
            alike = vec![alike.swap_remove(at)];
        }
        alike.into_iter().map(|head| self.then(head)).collect()
    }

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Head> {
        let (id, name, kind) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Head { id, name, kind, fact_count: row.get(3)?, since: row.get(4)?, updated: row.get(5)? })
    }

    /// The type that an entity had then.
    pub(super) fn then(&self, mut head: Head) -> rusqlite::Result<Head> {
        if !self.is_now() {
            let sql = "SELECT kind FROM former_kinds WHERE entity = ?1 AND until > ?2 ORDER BY until LIMIT 1";
            let mut former = self.conn.prepare_cached(sql)?;
            if let Some(kind) = former.query_row((head.id, self.at), |row| row.get(0)).optional()? {
                head.kind = kind;
            }
        }
        Ok(head)
    }

    /// The newest observations, newest first.
    pub(super) fn facts(&self, entity: i64, most: usize) -> rusqlite::Result<Vec<Seen>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, text, origin, source, call, since FROM facts
             WHERE id BETWEEN ?1 AND ?2 AND since <= ?3 AND until > ?3 AND origin <= ?4 ORDER BY id DESC LIMIT ?5",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let span = (first_row(entity) + 1, last_row(entity), self.at, self.distant(), most);
        statement.query_map(span, seen)?.collect()
    }

    /// One observation by its row, when it was true.
    pub(super) fn fact(&self, row: i64) -> rusqlite::Result<Option<Seen>> {
        self.conn
            .prepare_cached(
                "SELECT id, text, origin, source, call, since FROM facts
                 WHERE id = ?1 AND since <= ?2 AND until > ?2 AND origin <= ?3",
            )?
            .query_row((row, self.at, self.distant()), seen)
            .optional()
    }

    /// The last origin that is not left out.
    const fn distant(&self) -> i64 {
        if self.stated_only { 0 } else { i64::MAX }
    }

    fn count(&self, head: &Head) -> rusqlite::Result<i64> {
        if self.is_now() && !self.stated_only {
            return Ok(head.fact_count);
        }
        self.conn
            .prepare_cached(
                "SELECT count(*) FROM facts
                 WHERE id BETWEEN ?1 AND ?2 AND since <= ?3 AND until > ?3 AND origin <= ?4",
            )?
            .query_row((first_row(head.id), last_row(head.id), self.at, self.distant()), |row| row.get(0))
    }

    /// An entity with these observations, which are brought into their order.
    pub(super) fn known(&self, head: Head, mut facts: Vec<Seen>, links: Links) -> rusqlite::Result<Known> {
        facts.sort_by_key(|seen| seen.row);
        let fact_count = self.count(&head)?.cast_unsigned();
        let mut ties = self.ties(head.id, links)?;
        let links_left_out = links != Links::AllOutward && ties.len() > LINKS;
        if links_left_out {
            ties.truncate(LINKS);
        }
        let updated = if self.is_now() { head.updated } else { head.updated.min(self.at) };
        Ok(Known {
            name: head.name,
            kind: head.kind,
            facts: facts.into_iter().map(|seen| seen.fact).collect(),
            fact_count,
            links: ties,
            links_left_out,
            created: moment(head.since),
            updated: moment(updated),
            score: None,
        })
    }

    fn ties(&self, entity: i64, links: Links) -> rusqlite::Result<Vec<Tie>> {
        let most = match links {
            Links::None => return Ok(Vec::new()),
            Links::Some => LINKS as i64 + 1,
            Links::AllOutward => ENDLESS,
        };
        let outward = "SELECT l.relation, e.name FROM links l JOIN entities e ON e.id = l.target
             WHERE l.source = ?1 AND l.since <= ?2 AND l.until > ?2 LIMIT ?3";
        let inward = "SELECT l.relation, e.name FROM links l JOIN entities e ON e.id = l.source
             WHERE l.target = ?1 AND l.since <= ?2 AND l.until > ?2 LIMIT ?3";
        let sides: &[(&str, bool)] =
            if links == Links::Some { &[(outward, true), (inward, false)] } else { &[(outward, true)] };
        let mut ties = Vec::new();
        for (sql, outward) in sides {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map((entity, self.at, most), |row| {
                Ok(Tie { relation: row.get(0)?, other: row.get(1)?, outward: *outward })
            })?;
            for tie in rows {
                ties.push(tie?);
            }
        }
        Ok(ties)
    }
}

/// Which relations are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    None,
    Some,
    /// Those that begin here, every one.
    AllOutward,
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Seen> {
    let fact = KnownFact {
        text: row.get(1)?,
        origin: origin(row.get(2)?),
        source: row.get(3)?,
        call: row.get(4)?,
        since: moment(row.get(5)?),
    };
    Ok(Seen { row: row.get(0)?, fact })
}
