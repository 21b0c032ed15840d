//! Reading the audit log concurrently with its writer.

use crate::audit::{audit_chains, audit_prune, audit_verify};
use crate::{SqliteError, database};
use jiff::Timestamp;
use octo_model::BoxFuture;
use octo_ports::audit_format::chain_merge::{ChainItems, next_item};
use octo_ports::audit_format::{BrokenChain, record_codec};
use octo_ports::{
    Anchor, AuditCursor, AuditReader, AuditRecord, ChainAnchor, Hash, Port, Retention, StoreError,
    StoreResult, Verified,
};
use rusqlite::{Connection, Row};
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

    /// The last records of all chains, oldest first; at most ten thousand.
    pub fn tail(&self, count: usize) -> Result<Vec<AuditRecord>, SqliteError> {
        let (count, mut chains) = (count.min(MAX_RECORDS), Vec::new());
        for chain in audit_chains::names(&self.conn)? {
            let sql = format!(
                "SELECT seq, hash, record FROM {} AND seq > ?2 ORDER BY seq DESC LIMIT ?3",
                audit_chains::rows(&chain)
            );
            let newest = self.records(&sql, &chain, 0, count)?;
            chains.push(ChainItems { items: newest.into_iter().rev().collect(), is_cut: false });
        }
        let mut records = merge(chains);
        Ok(records.split_off(records.len().saturating_sub(count)))
    }

    /// The records after this position, oldest first; at most ten thousand, so repeat until there are none.
    pub fn after(&self, cursor: &AuditCursor) -> Result<Vec<AuditRecord>, SqliteError> {
        let (names, mut chains) = (audit_chains::names(&self.conn)?, Vec::new());
        let share = MAX_RECORDS / names.len().max(1) + 1;
        for chain in names {
            let sql = format!(
                "SELECT seq, hash, record FROM {} AND seq > ?2 ORDER BY seq LIMIT ?3",
                audit_chains::rows(&chain)
            );
            let next = self.records(&sql, &chain, cursor.seq(&chain), share)?;
            chains.push(ChainItems { is_cut: next.len() >= share, items: next.into() });
        }
        let mut records = merge(chains);
        records.truncate(MAX_RECORDS);
        Ok(records)
    }

    /// The current end of the log's own chain.
    pub fn head(&self) -> Result<Anchor, SqliteError> {
        Ok(audit_chains::head(&self.conn, audit_chains::OWN)?)
    }

    /// The current ends of all chains, to be stored elsewhere.
    fn heads(&self) -> Result<Vec<ChainAnchor>, SqliteError> {
        let names = audit_chains::names(&self.conn)?.into_iter();
        let head = |chain: String| Ok(ChainAnchor { anchor: audit_chains::head(&self.conn, &chain)?, chain });
        names.map(head).collect()
    }

    fn records(
        &self,
        sql: &str,
        chain: &str,
        after: u64,
        count: usize,
    ) -> Result<Vec<AuditRecord>, SqliteError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((chain, after.cast_signed(), count.cast_signed() as i64))?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            records.push(record_of(chain, row)?);
        }
        Ok(records)
    }
}

fn merge(mut chains: Vec<ChainItems<AuditRecord>>) -> Vec<AuditRecord> {
    std::iter::from_fn(|| next_item(&mut chains, |record| record.at.as_microsecond())).collect()
}

fn record_of(chain: &str, row: &Row<'_>) -> Result<AuditRecord, SqliteError> {
    let (chain, seq) = (chain.to_owned(), row.get::<_, i64>(0)?.cast_unsigned());
    let bytes = row.get_ref(2)?.as_bytes().map_err(rusqlite::Error::from)?;
    match record_codec::decode(bytes) {
        Ok(record) => Ok(AuditRecord { chain, seq, hash: Hash(row.get(1)?).to_string(), ..record }),
        Err(why) => Err(BrokenChain { chain, seq, reason: why.to_owned() }.into()),
    }
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
        let cursor = cursor.clone();
        self.run(move |dir| AuditConnection::open(dir)?.after(&cursor))
    }

    fn heads(&self) -> BoxFuture<'_, StoreResult<Vec<ChainAnchor>>> {
        self.run(|dir| AuditConnection::open(dir)?.heads())
    }

    fn verify<'a>(&'a self, anchors: &'a [ChainAnchor]) -> BoxFuture<'a, StoreResult<Vec<Verified>>> {
        let anchors = anchors.to_vec();
        self.run(move |dir| audit_verify::verify_all(dir, &anchors))
    }

    fn trusted_now(&self, now: Timestamp) -> BoxFuture<'_, StoreResult<Timestamp>> {
        self.run(move |dir| audit_prune::trusted_now(dir, now))
    }

    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        self.run(move |dir| audit_prune::prune(dir, retention, now))
    }

    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        self.run(move |dir| audit_prune::prune_when_due(dir, retention, now))
    }
}
