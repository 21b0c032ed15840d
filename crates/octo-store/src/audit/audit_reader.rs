//! Reading the audit log concurrently with its writer.

use crate::audit::{audit_prune, audit_verify};
use crate::{SqliteError, database};
use jiff::Timestamp;
use octo_model::BoxFuture;
use octo_ports::audit_format::chain_verifier::{anchors_of, verify_missing_chains};
use octo_ports::audit_format::{BrokenChain, record_codec};
use octo_ports::{
    Anchor, AuditCursor, AuditReader, AuditRecord, ChainAnchor, Hash, Port, Retention, StoreError,
    StoreResult, Verified,
};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::{Path, PathBuf};

/// Maximum records per answer.
const MAX_RECORDS: usize = 10_000;

/// A read-only connection.
pub struct AuditConnection {
    conn: Connection,
}

impl AuditConnection {
    pub fn open(dir: &Path) -> Result<Self, SqliteError> {
        Ok(Self { conn: database::read_audit(dir)? })
    }

    /// The last records, oldest first; at most ten thousand.
    pub fn tail(&self, count: usize) -> Result<Vec<AuditRecord>, SqliteError> {
        let mut records =
            self.records("SELECT seq, hash, record FROM audit ORDER BY seq DESC LIMIT ?2", 0, count)?;
        records.reverse();
        Ok(records)
    }

    /// The records after `seq`, oldest first; at most ten thousand, so repeat until there are none.
    pub fn after(&self, seq: u64) -> Result<Vec<AuditRecord>, SqliteError> {
        self.records(
            "SELECT seq, hash, record FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            seq,
            MAX_RECORDS,
        )
    }

    /// The current end of the chain, to be stored elsewhere.
    pub fn head(&self) -> Result<Anchor, SqliteError> {
        let mut last = self.conn.prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?;
        let head =
            last.query_row((), |row| Ok(Anchor { seq: seq_of(row)?, hash: Hash(row.get(1)?) })).optional()?;
        Ok(head.unwrap_or_default())
    }

    fn records(&self, sql: &str, after: u64, count: usize) -> Result<Vec<AuditRecord>, SqliteError> {
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

fn record_of(row: &Row<'_>) -> Result<AuditRecord, SqliteError> {
    let seq = seq_of(row)?;
    let bytes = row.get_ref(2)?.as_bytes().map_err(rusqlite::Error::from)?;
    let record = record_codec::decode(bytes).map_err(|why| BrokenChain {
        chain: String::new(),
        seq,
        reason: why.to_owned(),
    })?;
    Ok(AuditRecord { seq, hash: Hash(row.get(1)?).to_string(), ..record })
}

/// The audit log of a directory. Each request reopens the file, so that a log that is replaced or created
/// later is found.
pub(crate) struct SqliteAuditReader(PathBuf);

impl SqliteAuditReader {
    pub(crate) fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, SqliteError> + Send + 'static,
    ) -> BoxFuture<'_, StoreResult<T>> {
        let dir = self.0.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&dir)).await;
            done.map_err(StoreError::internal)?.map_err(reader_error)
        })
    }
}

fn reader_error(error: SqliteError) -> StoreError {
    match error {
        SqliteError::Missing { .. } => StoreError::NotFound(Port::AuditReader),
        SqliteError::Broken(broken) => StoreError::corrupt(Port::AuditReader, broken),
        other => StoreError::unavailable(Port::AuditReader, format!("{other}. {}", other.hint())),
    }
}

impl AuditReader for SqliteAuditReader {
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>> {
        self.run(move |dir| AuditConnection::open(dir)?.tail(count))
    }

    fn after<'a>(&'a self, cursor: &'a AuditCursor) -> BoxFuture<'a, StoreResult<Vec<AuditRecord>>> {
        let seq = cursor.seq("");
        self.run(move |dir| AuditConnection::open(dir)?.after(seq))
    }

    fn heads(&self) -> BoxFuture<'_, StoreResult<Vec<ChainAnchor>>> {
        self.run(|dir| Ok(vec![AuditConnection::open(dir)?.head()?.into()]))
    }

    fn verify<'a>(&'a self, anchors: &'a [ChainAnchor]) -> BoxFuture<'a, StoreResult<Vec<Verified>>> {
        let anchors = anchors.to_vec();
        self.run(move |dir| {
            let verified = audit_verify::verify(dir, anchors_of("", &anchors))?;
            verify_missing_chains(&anchors, str::is_empty)?;
            Ok(vec![verified])
        })
    }

    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        self.run(move |dir| audit_prune::prune(dir, retention, now))
    }

    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        self.run(move |dir| audit_prune::prune_when_due(dir, retention, now))
    }
}
