//! Reading the audit beside whoever writes it.

use crate::chain::{Anchor, Hash};
use crate::record::Record;
use crate::{BrokenChain, StoreError, database, record_codec};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::Path;

/// How many records one answer holds at most.
const MAX_RECORDS: usize = 10_000;

/// A connection that can only read.
pub struct AuditReader {
    conn: Connection,
}

impl AuditReader {
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { conn: database::read_audit(dir)? })
    }

    /// The last records, oldest first; at most ten thousand.
    pub fn tail(&self, count: usize) -> Result<Vec<Record>, StoreError> {
        let mut records =
            self.records("SELECT seq, hash, record FROM audit ORDER BY seq DESC LIMIT ?2", 0, count)?;
        records.reverse();
        Ok(records)
    }

    /// The records after `seq`, oldest first; at most ten thousand, so ask again until there are none.
    pub fn after(&self, seq: u64) -> Result<Vec<Record>, StoreError> {
        self.records(
            "SELECT seq, hash, record FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            seq,
            MAX_RECORDS,
        )
    }

    /// Where the chain ends now: to be noted elsewhere.
    pub fn head(&self) -> Result<Anchor, StoreError> {
        let mut last = self.conn.prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?;
        let head =
            last.query_row((), |row| Ok(Anchor { seq: seq_of(row)?, hash: Hash(row.get(1)?) })).optional()?;
        Ok(head.unwrap_or_default())
    }

    fn records(&self, sql: &str, after: u64, count: usize) -> Result<Vec<Record>, StoreError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((after.cast_signed(), count.min(MAX_RECORDS).cast_signed() as i64))?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            records.push(record_of(row)?);
        }
        Ok(records)
    }
}

fn seq_of(row: &Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(0).map(i64::cast_unsigned)
}

fn record_of(row: &Row<'_>) -> Result<Record, StoreError> {
    let seq = seq_of(row)?;
    let bytes = row.get_ref(2)?.as_bytes().map_err(rusqlite::Error::from)?;
    let record = record_codec::decode(bytes).map_err(|why| BrokenChain { seq, why: why.to_owned() })?;
    Ok(Record { seq, hash: Hash(row.get(1)?).to_string(), ..record })
}
