//! Pruning of the audit log. A record of its own states up to where, so that the rest of the chain can still
//! be verified.

use crate::audit::audit_chains;
use crate::{Durability, SqliteError, database};
use jiff::Timestamp;
use octo_ports::audit_format::{ChainHasher, record_codec};
use octo_ports::retention_clock::{self, RecordsAround};
use octo_ports::{Anchor, Hash, Retention};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// Records removed per transaction, so that no call waits long.
const RECORDS_PER_TRANSACTION: u64 = 20_000;

/// Records may exceed the age limit by this much, to limit the frequency of pruning.
const PRUNE_AGE_SLACK: Duration = Duration::from_secs(60 * 60);

/// The records of a chain: numbers of the first and the last.
struct ChainRange {
    chain: String,
    first: u64,
    last: u64,
}

impl ChainRange {
    const fn count(&self) -> u64 {
        self.last + 1 - self.first
    }
}

/// Removes records beyond the retention and returns their number.
pub(crate) fn prune(dir: &Path, retention: Retention, now: Timestamp) -> Result<u64, SqliteError> {
    if retention.is_unbounded() {
        return Ok(0);
    }
    database::read_audit(dir)?;
    let mut conn = database::open_audit(dir, Durability::Flush)?;
    let mut pruned = 0;
    // Decided once: every pruning adds a record.
    for (chain, wanted) in last_prunable(&conn, retention, now)? {
        while let Some(many) = prune_batch(&mut conn, &chain, wanted, now)? {
            pruned += many;
        }
    }
    Ok(pruned)
}

/// Like `prune`, for periodic calls: waits until many records can be removed at once, since each pruning adds
/// a record.
pub(crate) fn prune_when_due(dir: &Path, retention: Retention, now: Timestamp) -> Result<u64, SqliteError> {
    if retention.is_unbounded() {
        return Ok(0);
    }
    let conn = database::read_audit(dir)?;
    let chains = chain_ranges(&conn)?;
    let count: u64 = chains.iter().map(ChainRange::count).sum();
    let is_full = retention.max_records.is_some_and(|most| count > most);
    let oldest = retention.max_age.and_then(|age| now.checked_sub(age + PRUNE_AGE_SLACK).ok());
    let mut is_old = false;
    for chain in chains.iter().filter(|chain| chain.first < chain.last) {
        let first = ChainRange { chain: chain.chain.clone(), last: chain.first, ..*chain };
        is_old |= match oldest {
            Some(oldest) => last_before(&conn, &first, oldest.as_microsecond())?.is_some(),
            None => false,
        };
    }
    drop(conn);
    if !is_full && !is_old {
        return Ok(0);
    }
    let max_records = retention.max_records.map(|most| most - most / 10);
    prune(dir, Retention { max_records, ..retention }, now)
}

/// `now` without the time that no record accounts for.
pub(crate) fn trusted_now(dir: &Path, now: Timestamp) -> Result<Timestamp, SqliteError> {
    let conn = database::read_audit(dir)?;
    let chains = chain_ranges(&conn)?;
    retention_clock::trusted_now(now, |moment| {
        let mut around = RecordsAround::default();
        for chain in &chains {
            let last = last_before(&conn, chain, moment.as_microsecond())?;
            let next = last.map_or(chain.first, |last| last + 1);
            let (before, after) = (last.map(|seq| time_of(&conn, chain, seq)), Some(next));
            let after = after.filter(|seq| *seq <= chain.last).map(|seq| time_of(&conn, chain, seq));
            around = around.merge(RecordsAround { before: before.transpose()?, after: after.transpose()? });
        }
        Ok(around)
    })
}

fn chain_ranges(conn: &Connection) -> Result<Vec<ChainRange>, SqliteError> {
    let mut ranges = Vec::new();
    for chain in audit_chains::names(conn)? {
        if let Some((first, last)) = audit_chains::ends(conn, &chain)? {
            ranges.push(ChainRange { chain, first: first.seq, last: last.seq });
        }
    }
    Ok(ranges)
}

/// The last record of each chain that is beyond the retention.
fn last_prunable(
    conn: &Connection,
    retention: Retention,
    now: Timestamp,
) -> Result<Vec<(String, u64)>, SqliteError> {
    let chains = chain_ranges(conn)?;
    let oldest = retention.max_age.and_then(|age| now.checked_sub(age).ok());
    let too_many = match retention.max_records {
        Some(most) => oldest_beyond(conn, &chains, most)?,
        None => Vec::new(),
    };
    let mut prunable = Vec::new();
    for (index, chain) in chains.into_iter().enumerate() {
        let by_age = match oldest {
            Some(oldest) => last_of_old(conn, &chain, oldest)?,
            None => None,
        };
        let by_number = too_many.get(index).copied().flatten();
        prunable.extend(by_number.max(by_age).map(|last| (chain.chain, last)));
    }
    Ok(prunable)
}

/// The last of the oldest records of each chain, without which there are as many as the limit allows.
fn oldest_beyond(
    conn: &Connection,
    chains: &[ChainRange],
    most: u64,
) -> Result<Vec<Option<u64>>, SqliteError> {
    let count: u64 = chains.iter().map(ChainRange::count).sum();
    let excess = count.saturating_sub(most.max(1));
    if excess == 0 {
        return Ok(Vec::new());
    }
    if let [only] = chains {
        return Ok(vec![Some(only.first + excess - 1)]);
    }
    let before = |moment| -> Result<Vec<Option<u64>>, SqliteError> {
        chains.iter().map(|chain| last_before(conn, chain, moment)).collect()
    };
    // The first moment before which there are so many.
    let (mut low, mut high) = (0, i64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        let older = before(middle)?.into_iter().zip(chains);
        let older: u64 = older.map(|(last, chain)| last.map_or(0, |last| last + 1 - chain.first)).sum();
        if older < excess {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    before(low)
}

/// Removes some of the oldest records up to this one; `None` if there are none left.
fn prune_batch(
    conn: &mut Connection,
    chain: &str,
    wanted: u64,
    now: Timestamp,
) -> Result<Option<u64>, SqliteError> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some((first, head)) = audit_chains::ends(&change, chain)? else { return Ok(None) };
    // The newest record is kept, so that the chain has an end.
    let last = wanted.min(first.seq + RECORDS_PER_TRANSACTION - 1).min(head.seq.saturating_sub(1));
    if last < first.seq {
        return Ok(None);
    }
    let rows = audit_chains::rows(chain);
    let find = format!("SELECT hash FROM {rows} AND seq = ?2");
    let hash = change.query_row(&find, (chain, last.cast_signed()), |row| row.get(0))?;
    let anchor = Anchor { seq: last, hash: Hash(hash) };
    let mut record = Vec::new();
    record_codec::encode_prune(&mut record, now.as_microsecond(), anchor);
    let next = ChainHasher::default().hash(head.hash, &record);
    let seq = (head.seq + 1).cast_signed();
    change.execute(audit_chains::insert_sql(chain), (chain, seq, next.0.as_slice(), &record))?;
    set_pruned(&change, chain, last.cast_signed())?;
    change.execute(&format!("DELETE FROM {rows} AND seq <= ?2"), (chain, last.cast_signed()))?;
    change.commit()?;
    Ok(Some(last + 1 - first.seq))
}

/// Permits the removal of records up to this one.
pub(crate) fn set_pruned(conn: &Connection, chain: &str, last: i64) -> rusqlite::Result<()> {
    if chain != audit_chains::OWN {
        let put = "INSERT OR REPLACE INTO chains_pruned (chain, seq) VALUES (?1, ?2)";
        return conn.execute(put, (chain, last)).map(drop);
    }
    conn.execute("DELETE FROM audit_pruned", ())?;
    conn.execute("INSERT INTO audit_pruned (seq) VALUES (?1)", [last]).map(drop)
}

/// The last of the records at the start of a chain that are all older than this. After a change of the clock, the times of
/// records are not in order.
fn last_of_old(conn: &Connection, chain: &ChainRange, oldest: Timestamp) -> Result<Option<u64>, SqliteError> {
    let Some(last) = last_before(conn, chain, oldest.as_microsecond())? else { return Ok(None) };
    let rows = audit_chains::rows(&chain.chain);
    let mut find =
        conn.prepare_cached(&format!("SELECT seq, record FROM {rows} AND seq <= ?2 ORDER BY seq"))?;
    let mut rows = find.query((&chain.chain, last.cast_signed()))?;
    while let Some(row) = rows.next()? {
        let record = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        if record_codec::micros(record).is_none_or(|at| at >= oldest.as_microsecond()) {
            let first_to_keep = row.get::<_, i64>(0)?.cast_unsigned();
            return Ok(first_to_keep.checked_sub(1).filter(|last| *last >= chain.first));
        }
    }
    Ok(Some(last))
}

/// When a record was written.
fn time_of(conn: &Connection, chain: &ChainRange, seq: u64) -> Result<Timestamp, SqliteError> {
    let find = format!("SELECT record FROM {} AND seq = ?2", audit_chains::rows(&chain.chain));
    let mut find = conn.prepare_cached(&find)?;
    let record: Vec<u8> = find.query_row((&chain.chain, seq.cast_signed()), |row| row.get(0))?;
    let at = record_codec::micros(&record).and_then(|at| Timestamp::from_microsecond(at).ok());
    Ok(at.unwrap_or(Timestamp::MIN))
}

/// The last record before a time in microseconds since 1970. Records are ordered by time except for clock changes, so
/// this is a binary search.
fn last_before(conn: &Connection, chain: &ChainRange, moment: i64) -> Result<Option<u64>, SqliteError> {
    let find = format!("SELECT record FROM {} AND seq = ?2", audit_chains::rows(&chain.chain));
    let mut find = conn.prepare_cached(&find)?;
    let mut is_before = |seq: u64| -> Result<bool, SqliteError> {
        let record: Vec<u8> = find.query_row((&chain.chain, seq.cast_signed()), |row| row.get(0))?;
        Ok(record_codec::micros(&record).is_some_and(|at| at < moment))
    };
    let (mut low, mut high) = (chain.first, chain.last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low.checked_sub(1).filter(|last| *last >= chain.first))
}

/// Start of the chain: after the last pruned record, according to the newest record about pruning.
pub(crate) fn chain_start(conn: &Connection, chain: &str) -> Result<Option<Anchor>, SqliteError> {
    let rows = audit_chains::rows(chain);
    let first: Option<i64> =
        conn.query_row(&format!("SELECT min(seq) FROM {rows}"), [chain], |row| row.get(0))?;
    let Some(before) = first.map(|first| first - 1).filter(|before| *before > 0) else { return Ok(None) };
    let mut prunings =
        conn.prepare(&format!("SELECT record FROM {rows} AND substr(record, 2, 1) = ?2 ORDER BY seq DESC"))?;
    let mut rows = prunings.query((chain, [record_codec::PRUNE].as_slice()))?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?;
        if let Some(anchor) =
            record_codec::pruned(bytes).filter(|anchor| anchor.seq == before.cast_unsigned())
        {
            return Ok(Some(anchor));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_reader::AuditConnection;
    use crate::audit::audit_verify::verify;
    use crate::{Options, Store};
    use octo_ports::AuditLog;
    use octo_ports::RecordKind;
    use octo_ports::conformance::call_samples as sample;

    async fn store_with_calls(dir: &Path, calls: usize) -> Store {
        let store = Store::open(dir, Options::default()).unwrap();
        for _ in 0..calls {
            let opening = sample::opening("time_now");
            let id = opening.id;
            AuditLog::open(&store, opening).await.unwrap();
            store.close(sample::closing(id));
        }
        store.flush().await.unwrap();
        store
    }

    #[tokio::test]
    async fn what_is_left_of_the_chain_still_holds() {
        let temp = tempfile::tempdir().unwrap();
        let store = store_with_calls(temp.path(), 50).await;
        let head = verify(temp.path(), None).unwrap().head;
        let keep = |most| Retention { max_records: Some(most), ..Retention::default() };
        assert_eq!(prune(temp.path(), keep(40), Timestamp::now()).unwrap(), 60);
        let verified = verify(temp.path(), Some(head)).unwrap();
        assert_eq!((verified.records, verified.pruned.unwrap().seq), (41, 60));
        let last = AuditConnection::open(temp.path()).unwrap().tail(1).unwrap().remove(0);
        assert_eq!((last.kind, last.seq), (RecordKind::Prune, 101));
        // Again, with records in between and the older prune record removed.
        drop(store);
        drop(store_with_calls(temp.path(), 50).await);
        assert_eq!(prune(temp.path(), keep(10), Timestamp::now()).unwrap(), 131);
        let verified = verify(temp.path(), None).unwrap();
        assert_eq!((verified.records, verified.head.seq, verified.pruned.unwrap().seq), (11, 202, 191));
        assert!(verify(temp.path(), Some(head)).is_err(), "that record is gone");
        assert_eq!(prune(temp.path(), Retention::default(), Timestamp::now()).unwrap(), 0);
    }

    #[tokio::test]
    async fn records_are_pruned_by_age() {
        let temp = tempfile::tempdir().unwrap();
        drop(store_with_calls(temp.path(), 5).await);
        let by_age = |age| Retention { max_age: Some(age), ..Retention::default() };
        let now = Timestamp::now();
        assert_eq!(prune(temp.path(), by_age(Duration::from_secs(60)), now).unwrap(), 0);
        let later = now.checked_add(Duration::from_secs(3_600)).unwrap();
        assert_eq!(prune(temp.path(), by_age(Duration::from_secs(60)), later).unwrap(), 10);
        assert_eq!(verify(temp.path(), None).unwrap().records, 2);
    }

    #[tokio::test]
    async fn records_that_were_taken_out_otherwise_are_missed() {
        let temp = tempfile::tempdir().unwrap();
        drop(store_with_calls(temp.path(), 5).await);
        let conn = database::open_audit(temp.path(), Durability::Flush).unwrap();
        assert!(conn.execute("DELETE FROM audit WHERE seq <= 4", ()).is_err());
        conn.execute("INSERT INTO audit_pruned VALUES (4)", ()).unwrap();
        conn.execute("DELETE FROM audit WHERE seq <= 4", ()).unwrap();
        assert!(verify(temp.path(), None).is_err(), "no record tells of it");
    }
}
