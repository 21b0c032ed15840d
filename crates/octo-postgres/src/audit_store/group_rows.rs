//! Rows of a group of records, chained to the end of their chain.

use super::audit_partitions::Month;
use crate::value::{Value, typed};
use octo_ports::audit_format::{ChainHasher, record_codec};
use octo_ports::{Anchor, Hash};
use std::collections::BTreeSet;
use tokio_postgres::{Client, Error};

/// Moves the end of the chain and adds the rows, or does neither if the chain has another end. It names the schema, so
/// that it needs no settings and can be a transaction by itself.
pub(crate) fn append_sql(schema: &str) -> String {
    format!("SELECT \"{schema}\".audit_append($1, $2, $3, $4, $5, $6, $7, $8)")
}

pub(crate) struct GroupRows<'a> {
    before: Anchor,
    /// The end of the chain with these rows.
    pub(crate) head: Anchor,
    times: Vec<i64>,
    hashes: Vec<Hash>,
    records: Vec<&'a [u8]>,
}

impl<'a> GroupRows<'a> {
    pub(crate) fn new(
        hasher: &mut ChainHasher,
        before: Anchor,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Self {
        let mut rows =
            Self { before, head: before, times: Vec::new(), hashes: Vec::new(), records: Vec::new() };
        for record in records {
            rows.head = Anchor { seq: rows.head.seq + 1, hash: hasher.hash(rows.head.hash, record) };
            rows.times.push(time(record));
            rows.hashes.push(rows.head.hash);
            rows.records.push(record);
        }
        rows
    }

    /// Time of the last record.
    pub(crate) fn last_time(&self) -> i64 {
        self.times.last().copied().unwrap_or_default()
    }

    /// Returns whether the rows were added. `sql` is from [`append_sql`].
    pub(crate) async fn append(
        &self,
        client: &Client,
        sql: &str,
        chain: &str,
        writer: &[u8],
    ) -> Result<bool, Error> {
        let hashes: Vec<&[u8]> = self.hashes.iter().map(|hash| hash.0.as_slice()).collect();
        let (before, head) = (self.before.hash.0.as_slice(), self.head.hash.0.as_slice());
        let values: [&dyn Value; 8] = [
            &chain,
            &self.before.seq.cast_signed(),
            &before,
            &head,
            &self.times,
            &hashes,
            &self.records,
            &writer,
        ];
        let answer = client.query_typed(sql, &typed(&values)).await?;
        answer.first().map_or(Ok(false), |row| row.try_get(0))
    }
}

/// The months of records.
pub(crate) fn months<'a>(records: impl Iterator<Item = &'a [u8]>) -> BTreeSet<Month> {
    records.map(|record| Month::of(time(record))).collect()
}

pub(crate) fn time(record: &[u8]) -> i64 {
    record_codec::micros(record).unwrap_or_default()
}
