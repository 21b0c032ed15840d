//! Reading the audit log.

use super::{audit_prune, audit_verify};
use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use jiff::Timestamp;
use octo_model::BoxFuture;
use octo_ports::audit_format::chain_merge::{ChainItems, next_item};
use octo_ports::audit_format::{BrokenChain, record_codec};
use octo_ports::{
    Anchor, AuditCursor, AuditReader, AuditRecord, ChainAnchor, Hash, Port, Retention, StoreError,
    StoreResult, Verified,
};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio_postgres::Row;

/// Maximum records per answer.
const MAX_RECORDS: usize = 10_000;
/// Of each chain, if there are many.
const MIN_RECORDS_PER_CHAIN: i64 = 100;

/// The newest of all chains, from the first of each chain among them.
const TAIL: &str = "WITH newest AS (
        SELECT chain, min(seq) AS seq FROM (
            SELECT key.chain, key.seq
            FROM audit_chains AS head CROSS JOIN LATERAL (
                SELECT chain, seq, at FROM audit
                WHERE chain = head.chain AND seq > head.pruned_seq ORDER BY seq DESC LIMIT $1
            ) AS key
            ORDER BY key.at DESC, key.chain DESC, key.seq DESC LIMIT $1
        ) AS keys GROUP BY chain
    )
    SELECT item.chain, item.seq, item.hash, item.record, NULL::int8
    FROM newest CROSS JOIN LATERAL (
        SELECT chain, seq, hash, record FROM audit
        WHERE chain = newest.chain AND seq >= newest.seq ORDER BY seq DESC LIMIT $1
    ) AS item
    ORDER BY item.chain, item.seq";

/// The next records of each chain that has some.
const AFTER: &str = "WITH active AS (
        SELECT head.chain, greatest(head.pruned_seq, cursor.seq) AS seq
        FROM audit_chains AS head
        LEFT JOIN unnest($1::text[], $2::int8[]) AS cursor (chain, seq) ON cursor.chain = head.chain
        WHERE head.seq > greatest(head.pruned_seq, cursor.seq)
    ), share AS (
        SELECT greatest($3 / greatest(count(*), 1), $4) AS records FROM active
    )
    SELECT item.chain, item.seq, item.hash, item.record, share.records
    FROM active CROSS JOIN share CROSS JOIN LATERAL (
        SELECT chain, seq, hash, record FROM audit
        WHERE chain = active.chain AND seq > active.seq ORDER BY seq LIMIT (SELECT records FROM share)
    ) AS item
    ORDER BY item.chain, item.seq";

pub(crate) struct PostgresAuditReader(Arc<Database>);

impl PostgresAuditReader {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self(database)
    }

    async fn records(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<AuditRecord>> {
        let rows = self.0.read(Port::AuditReader, Scope::AllTenants, sql, values).await?;
        let mut chains: Vec<ChainItems<AuditRecord>> = Vec::new();
        for row in &rows {
            let (record, share): (_, Option<i64>) = (record_of(row)?, row.get(4));
            let is_next = |chain: &ChainItems<AuditRecord>| {
                chain.items.back().is_some_and(|last| last.chain == record.chain)
            };
            if !chains.last().is_some_and(is_next) {
                chains.push(ChainItems { items: VecDeque::new(), is_cut: false });
            }
            if let Some(chain) = chains.last_mut() {
                chain.items.push_back(record);
                chain.is_cut = share.is_some_and(|share| chain.items.len() as i64 >= share);
            }
        }
        Ok(std::iter::from_fn(|| next_item(&mut chains, |record| record.at.as_microsecond())).collect())
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> Hash {
    Hash::from_bytes(bytes).unwrap_or_default()
}

fn record_of(row: &Row) -> StoreResult<AuditRecord> {
    let (chain, seq): (String, i64) = (row.get(0), row.get(1));
    let seq = seq.cast_unsigned();
    match record_codec::decode(row.get(3)) {
        Ok(record) => Ok(AuditRecord { chain, seq, hash: hash_of(row.get(2)).to_string(), ..record }),
        Err(why) => {
            let broken = BrokenChain { chain, seq, reason: why.to_owned() };
            Err(StoreError::corrupt(Port::AuditReader, broken))
        }
    }
}

impl AuditReader for PostgresAuditReader {
    fn tail(&self, count: usize) -> BoxFuture<'_, StoreResult<Vec<AuditRecord>>> {
        Box::pin(async move {
            let count = count.min(MAX_RECORDS);
            let mut records = self.records(TAIL, &[&(count as i64)]).await?;
            Ok(records.split_off(records.len().saturating_sub(count)))
        })
    }

    fn after<'a>(&'a self, cursor: &'a AuditCursor) -> BoxFuture<'a, StoreResult<Vec<AuditRecord>>> {
        Box::pin(async move {
            let (chains, seqs): (Vec<&str>, Vec<i64>) =
                cursor.iter().map(|(chain, seq)| (chain, seq.cast_signed())).unzip();
            let values: [&dyn Value; 4] = [&chains, &seqs, &(MAX_RECORDS as i64), &MIN_RECORDS_PER_CHAIN];
            let mut records = self.records(AFTER, &values).await?;
            records.truncate(MAX_RECORDS);
            Ok(records)
        })
    }

    fn heads(&self) -> BoxFuture<'_, StoreResult<Vec<ChainAnchor>>> {
        Box::pin(async move {
            let heads = "SELECT chain, seq, hash FROM audit_chains WHERE seq > 0 ORDER BY chain";
            let rows = self.0.read(Port::AuditReader, Scope::AllTenants, heads, &[]).await?;
            if rows.is_empty() {
                return Err(StoreError::NotFound(Port::AuditReader));
            }
            let head = |row: &Row| ChainAnchor {
                chain: row.get(0),
                anchor: Anchor { seq: row.get::<_, i64>(1).cast_unsigned(), hash: hash_of(row.get(2)) },
            };
            Ok(rows.iter().map(head).collect())
        })
    }

    fn verify<'a>(&'a self, anchors: &'a [ChainAnchor]) -> BoxFuture<'a, StoreResult<Vec<Verified>>> {
        Box::pin(audit_verify::verify(&self.0, anchors))
    }

    fn trusted_now(&self, now: Timestamp) -> BoxFuture<'_, StoreResult<Timestamp>> {
        Box::pin(audit_prune::trusted_now(&self.0, now))
    }

    fn prune(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(audit_prune::prune(&self.0, retention, now))
    }

    fn prune_when_due(&self, retention: Retention, now: Timestamp) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(audit_prune::prune_when_due(&self.0, retention, now))
    }
}
