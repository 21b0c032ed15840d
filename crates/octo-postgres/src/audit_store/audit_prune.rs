//! Pruning. A record of each chain states up to where, so that the rest can still be verified; from then on readers
//! ignore the pruned records. Their rows are removed afterwards: whole months by dropping the partition.

use super::audit_partitions::{self, Month, MonthValues};
use super::audit_reader::hash_of;
use super::audit_verify::corrupt;
use crate::database::Database;
use crate::transaction::{Scope, Transaction};
use jiff::Timestamp;
use octo_ports::audit_format::chain_merge::{ChainItems, next_item};
use octo_ports::audit_format::{BrokenChain, ChainHasher, record_codec};
use octo_ports::{Anchor, Port, Retention, StoreResult};
use std::collections::BTreeMap;
use std::time::Duration;

const PORT: Port = Port::AuditReader;
/// Rows removed per transaction.
const ROWS_PER_TRANSACTION: i64 = 20_000;
/// Records may exceed the age limit by this much, to limit the frequency of pruning.
const PRUNE_AGE_SLACK: Duration = Duration::from_secs(60 * 60);
/// Times that are compared to find the oldest records of several chains.
const MAX_SAMPLES: i64 = 1000;

/// A chain with records that can be pruned: numbers of the first and the last.
struct ChainRange {
    chain: String,
    first: i64,
    last: i64,
}

/// Removes records beyond the retention and returns their number.
pub(super) async fn prune(database: &Database, retention: Retention, now: Timestamp) -> StoreResult<u64> {
    if retention.is_unbounded() {
        return Ok(0);
    }
    let mut search = database.begin(PORT, Scope::AllTenants).await?;
    // Decided once: every pruning adds a record.
    let last = last_prunable(&mut search, retention, now).await?;
    search.commit().await?;
    let mut pruned = 0;
    for (chain, last) in last {
        pruned += prune_chain(database, &chain, last, now).await?;
    }
    remove_rows(database, now).await?;
    Ok(pruned)
}

/// The earlier of `now` and the time of the database server: a node with a wrong clock does not prune the log of all.
pub(super) async fn trusted_now(database: &Database, now: Timestamp) -> StoreResult<Timestamp> {
    let server = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
    let rows = database.read(PORT, Scope::AllTenants, server, &[]).await?;
    let server = rows.first().and_then(|row| Timestamp::from_microsecond(row.get(0)).ok());
    Ok(server.map_or(now, |server| server.min(now)))
}

/// Like `prune`, for periodic calls: waits until many records can be removed at once.
pub(super) async fn prune_when_due(
    database: &Database,
    retention: Retention,
    now: Timestamp,
) -> StoreResult<u64> {
    if retention.is_unbounded() {
        return Ok(0);
    }
    let due = "SELECT coalesce(sum(head.seq - head.pruned_seq), 0)::int8,
            coalesce(bool_or(first.at < $1), false),
            (SELECT coalesce(bool_or(removed_seq < pruned_seq), false) FROM audit_chains)
        FROM audit_chains AS head CROSS JOIN LATERAL (
            SELECT at FROM audit WHERE chain = head.chain AND seq > head.pruned_seq ORDER BY seq LIMIT 1
        ) AS first
        WHERE head.seq > head.pruned_seq AND NOT (head.prune_seq = head.seq AND head.pruned_seq = head.seq - 1)";
    let oldest = retention.max_age.and_then(|age| now.checked_sub(age + PRUNE_AGE_SLACK).ok());
    let oldest = oldest.map(Timestamp::as_microsecond);
    let rows = database.read(PORT, Scope::AllTenants, due, &[&oldest]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let (count, is_old, is_left): (i64, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if is_old || retention.max_records.is_some_and(|most| count.cast_unsigned() > most) {
        let max_records = retention.max_records.map(|most| most - most / 10);
        return prune(database, Retention { max_records, ..retention }, now).await;
    }
    if is_left {
        remove_rows(database, now).await?;
    }
    Ok(0)
}

/// The last record of each chain that is beyond the retention.
async fn last_prunable(
    search: &mut Transaction,
    retention: Retention,
    now: Timestamp,
) -> StoreResult<BTreeMap<String, i64>> {
    // A chain that consists of the record of its pruning stays as it is.
    let chains = "SELECT chain, pruned_seq + 1, seq FROM audit_chains
        WHERE seq > pruned_seq AND NOT (prune_seq = seq AND pruned_seq = seq - 1) ORDER BY chain";
    let rows = search.query(chains, &[]).await?;
    let range =
        |row: &tokio_postgres::Row| ChainRange { chain: row.get(0), first: row.get(1), last: row.get(2) };
    let chains: Vec<ChainRange> = rows.iter().map(range).collect();
    let mut prunable = match retention.max_records {
        Some(most) => oldest_beyond(search, &chains, most).await?,
        None => BTreeMap::new(),
    };
    if let Some(oldest) = retention.max_age.and_then(|age| now.checked_sub(age).ok()) {
        for chain in &chains {
            if let Some(last) = last_before(search, chain, oldest.as_microsecond()).await? {
                let known = prunable.entry(chain.chain.clone()).or_insert(last);
                *known = last.max(*known);
            }
        }
    }
    Ok(prunable)
}

/// The oldest records of all chains, without which there are as many as the limit allows. The times of a sample are
/// compared, unless there is only one chain.
async fn oldest_beyond(
    search: &mut Transaction,
    chains: &[ChainRange],
    most: u64,
) -> StoreResult<BTreeMap<String, i64>> {
    let count: i64 = chains.iter().map(|chain| chain.last + 1 - chain.first).sum();
    let mut excess = count - i64::try_from(most.max(1)).unwrap_or(i64::MAX);
    if excess <= 0 {
        return Ok(BTreeMap::new());
    }
    let step = if chains.len() > 1 { excess / MAX_SAMPLES + 1 } else { excess };
    let names: Vec<&str> = chains.iter().map(|chain| chain.chain.as_str()).collect();
    let first: Vec<i64> = chains.iter().map(|chain| chain.first).collect();
    let last: Vec<i64> = chains.iter().map(|chain| chain.last.min(chain.first + excess - 1)).collect();
    let sample = "SELECT head.chain, sample.seq, sample.seq - head.first + 1, audit.at
        FROM unnest($1::text[], $2::int8[], $3::int8[]) AS head (chain, first, last)
        CROSS JOIN LATERAL (
            SELECT generate_series(head.first + $4 - 1, head.last, $4) UNION SELECT head.last
        ) AS sample (seq)
        JOIN audit ON audit.chain = head.chain AND audit.seq = sample.seq
        ORDER BY head.chain, sample.seq";
    let rows = search.query(sample, &[&names, &first, &last, &step]).await?;
    let mut samples: Vec<ChainItems<(&str, i64, i64, i64)>> = Vec::new();
    for row in &rows {
        let item: (&str, i64, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
        match samples.last_mut() {
            Some(chain) if chain.items.back().is_some_and(|last| last.0 == item.0) => {
                chain.items.push_back(item)
            }
            _ => samples.push(ChainItems { items: [item].into(), is_cut: false }),
        }
    }
    // Last record and number of records for each chain.
    let mut oldest: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    while let Some((chain, seq, records, _)) = next_item(&mut samples, |item| item.3) {
        let before = oldest.get(chain).map_or(0, |(_, records)| *records);
        let surplus = (records - before - excess).max(0);
        oldest.insert(chain.to_owned(), (seq - surplus, records - surplus));
        excess -= records - before - surplus;
        if excess <= 0 {
            break;
        }
    }
    Ok(oldest.into_iter().map(|(chain, (last, _))| (chain, last)).collect())
}

/// The last record before a point in time. Records are ordered by time except for clock changes, so this is a
/// binary search.
async fn last_before(search: &mut Transaction, chain: &ChainRange, moment: i64) -> StoreResult<Option<i64>> {
    let (mut low, mut high) = (chain.first, chain.last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let find = "SELECT at FROM audit WHERE chain = $1 AND seq = $2 LIMIT 1";
        let Some(row) = search.query_opt(find, &[&chain.chain, &middle]).await? else {
            return Err(missing(&chain.chain, middle));
        };
        if row.get::<_, i64>(0) < moment {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let Some(last) = Some(low - 1).filter(|last| *last >= chain.first) else { return Ok(None) };
    // After a change of the clock, the times are not in order: all records up to that one are older.
    let newer = "SELECT min(seq) FROM audit WHERE chain = $1 AND seq BETWEEN $2 AND $3 AND at >= $4";
    let newer = search.query_opt(newer, &[&chain.chain, &chain.first, &last, &moment]).await?;
    let newer: Option<i64> = newer.and_then(|row| row.get(0));
    Ok(newer.map_or(Some(last), |newer| Some(newer - 1).filter(|last| *last >= chain.first)))
}

fn missing(chain: &str, seq: i64) -> octo_ports::StoreError {
    let reason = "it is missing".to_owned();
    corrupt(BrokenChain { chain: chain.to_owned(), seq: seq.cast_unsigned(), reason })
}

/// Records that the chain starts after this record. Returns the number of pruned records.
async fn prune_chain(database: &Database, chain: &str, last: i64, now: Timestamp) -> StoreResult<u64> {
    let mut change = database.begin(PORT, Scope::AllTenants).await?;
    let lock = "SELECT seq, hash, pruned_seq FROM audit_chains WHERE chain = $1 FOR UPDATE";
    let Some(head) = change.query_opt(lock, &[&chain]).await? else { return Ok(0) };
    let (seq, pruned): (i64, i64) = (head.get(0), head.get(2));
    // Another process may have pruned more.
    if last <= pruned {
        return Ok(0);
    }
    let find = "SELECT hash FROM audit WHERE chain = $1 AND seq = $2 LIMIT 1";
    let Some(row) = change.query_opt(find, &[&chain, &last]).await? else { return Err(missing(chain, last)) };
    let anchor = Anchor { seq: last.cast_unsigned(), hash: hash_of(row.get(0)) };
    let (at, mut record) = (now.as_microsecond(), Vec::new());
    record_codec::encode_prune(&mut record, at, anchor);
    let hash = ChainHasher::default().hash(hash_of(head.get(1)), &record);
    change.query(audit_partitions::CREATE, &MonthValues::new(&[Month::of(at)]).as_values()).await?;
    let (hash, pruned_hash) = (hash.0.as_slice(), anchor.hash.0.as_slice());
    let add = "WITH added AS (
            INSERT INTO audit (chain, seq, at, hash, record) VALUES ($1, $2 + 1, $3, $4, $5)
        )
        UPDATE audit_chains SET seq = $2 + 1, prune_seq = $2 + 1, hash = $4, pruned_seq = $6, pruned_hash = $7
        WHERE chain = $1";
    change.execute(add, &[&chain, &seq, &at, &hash, &record, &last, &pruned_hash]).await?;
    change.commit().await?;
    Ok((last - pruned).cast_unsigned())
}

/// Removes the rows of pruned records.
async fn remove_rows(database: &Database, now: Timestamp) -> StoreResult<()> {
    let partitions = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = to_regclass('audit') ORDER BY relname";
    let kept: Vec<String> = Month::ahead_of(now.as_microsecond()).into_iter().map(Month::table).collect();
    for row in database.read(PORT, Scope::AllTenants, partitions, &[]).await? {
        let table: String = row.get(0);
        if !kept.contains(&table) {
            database.write(PORT, Scope::AllTenants, "SELECT audit_drop_partition($1)", &[&table]).await?;
        }
    }
    let left = "SELECT chain FROM audit_chains WHERE removed_seq < pruned_seq ORDER BY chain";
    for row in database.read(PORT, Scope::AllTenants, left, &[]).await? {
        let chain: String = row.get(0);
        while remove_some(database, &chain).await? {}
    }
    Ok(())
}

/// Removes some rows of pruned records of a chain, and returns whether there are more.
async fn remove_some(database: &Database, chain: &str) -> StoreResult<bool> {
    let mut change = database.begin(PORT, Scope::AllTenants).await?;
    change.query("SELECT set_config('octoprox.prune', 'on', true)", &[]).await?;
    // The rows may have gone with their partition.
    let first = "SELECT pruned_seq, (
            SELECT seq FROM audit
            WHERE chain = head.chain AND seq > head.removed_seq AND seq <= head.pruned_seq ORDER BY seq LIMIT 1
        ) FROM audit_chains AS head WHERE chain = $1";
    let Some(row) = change.query_opt(first, &[&chain]).await? else { return Ok(false) };
    let (pruned, first): (i64, Option<i64>) = (row.get(0), row.get(1));
    let last = first.map_or(pruned, |first| pruned.min(first + ROWS_PER_TRANSACTION - 1));
    if let Some(first) = first {
        let delete = "DELETE FROM audit WHERE chain = $1 AND seq BETWEEN $2 AND $3";
        change.execute(delete, &[&chain, &first, &last]).await?;
    }
    let removed = "UPDATE audit_chains SET removed_seq = greatest(removed_seq, $2) WHERE chain = $1";
    change.execute(removed, &[&chain, &last]).await?;
    change.commit().await?;
    Ok(last < pruned)
}
