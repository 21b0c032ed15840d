//! Pruning of the audit log. A record of its own states up to where, so that the rest of the chain can still
//! be verified.

use crate::{Durability, SqliteError, database};
use jiff::Timestamp;
use octo_ports::audit_format::{ChainHasher, record_codec};
use octo_ports::{Anchor, Hash, Retention};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// Records removed per transaction, so that no call waits long.
const RECORDS_PER_TRANSACTION: u64 = 20_000;

/// Records may exceed the age limit by this much, to limit the frequency of pruning.
const PRUNE_AGE_SLACK: Duration = Duration::from_secs(60 * 60);

/// Removes records beyond the retention and returns their number.
pub(crate) fn prune(dir: &Path, retention: Retention, now: Timestamp) -> Result<u64, SqliteError> {
    if retention.is_unbounded() {
        return Ok(0);
    }
    database::read_audit(dir)?;
    let mut conn = database::open_audit(dir, Durability::Flush)?;
    // Decided once: every pruning adds a record.
    let Some(wanted) = last_prunable(&conn, retention, now)? else { return Ok(0) };
    let mut pruned = 0;
    while let Some(many) = prune_batch(&mut conn, wanted, now)? {
        pruned += many;
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
    let (Some(first), Some(head)) = (chain_end(&conn, "ASC")?, chain_end(&conn, "DESC")?) else {
        return Ok(0);
    };
    let is_full = retention.max_records.is_some_and(|most| head.seq - first.seq >= most);
    let oldest = retention.max_age.and_then(|age| now.checked_sub(age + PRUNE_AGE_SLACK).ok());
    let is_old = match oldest {
        Some(oldest) => last_before(&conn, first.seq, first.seq, oldest)?.is_some(),
        None => false,
    };
    drop(conn);
    if !is_full && !is_old {
        return Ok(0);
    }
    let max_records = retention.max_records.map(|most| most - most / 10);
    prune(dir, Retention { max_records, ..retention }, now)
}

/// One end of the chain.
fn chain_end(conn: &Connection, order: &str) -> Result<Option<Anchor>, SqliteError> {
    let sql = format!("SELECT seq, hash FROM audit ORDER BY seq {order} LIMIT 1");
    let end = conn.query_row(&sql, (), |row| {
        Ok(Anchor { seq: row.get::<_, i64>(0)?.cast_unsigned(), hash: Hash(row.get(1)?) })
    });
    Ok(end.optional()?)
}

/// The last record beyond the retention.
fn last_prunable(
    conn: &Connection,
    retention: Retention,
    now: Timestamp,
) -> Result<Option<u64>, SqliteError> {
    let (Some(first), Some(head)) = (chain_end(conn, "ASC")?, chain_end(conn, "DESC")?) else {
        return Ok(None);
    };
    let by_number = retention.max_records.and_then(|most| head.seq.checked_sub(most.max(1)));
    let by_age = match retention.max_age.and_then(|age| now.checked_sub(age).ok()) {
        Some(oldest) => last_before(conn, first.seq, head.seq, oldest)?,
        None => None,
    };
    Ok(by_number.max(by_age).filter(|last| *last >= first.seq))
}

/// Removes some of the oldest records up to this one; `None` if there are none left.
fn prune_batch(conn: &mut Connection, wanted: u64, now: Timestamp) -> Result<Option<u64>, SqliteError> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (Some(first), Some(head)) = (chain_end(&change, "ASC")?, chain_end(&change, "DESC")?) else {
        return Ok(None);
    };
    // The newest record is kept, so that the chain has an end.
    let last = wanted.min(first.seq + RECORDS_PER_TRANSACTION - 1).min(head.seq.saturating_sub(1));
    if last < first.seq {
        return Ok(None);
    }
    let hash =
        change.query_row("SELECT hash FROM audit WHERE seq = ?1", [last.cast_signed()], |row| row.get(0))?;
    let anchor = Anchor { seq: last, hash: Hash(hash) };
    let mut record = Vec::new();
    record_codec::encode_prune(&mut record, now.as_microsecond(), anchor);
    let next = ChainHasher::default().hash(head.hash, &record);
    let seq = (head.seq + 1).cast_signed();
    change.execute(
        "INSERT INTO audit (seq, hash, record) VALUES (?1, ?2, ?3)",
        (seq, next.0.as_slice(), &record),
    )?;
    change.execute("DELETE FROM audit_pruned", ())?;
    change.execute("INSERT INTO audit_pruned (seq) VALUES (?1)", [last.cast_signed()])?;
    change.execute("DELETE FROM audit WHERE seq <= ?1", [last.cast_signed()])?;
    change.commit()?;
    Ok(Some(last + 1 - first.seq))
}

/// The last record before a point in time. Records are ordered by time except for clock changes, so this is a
/// binary search.
fn last_before(
    conn: &Connection,
    first: u64,
    head: u64,
    moment: Timestamp,
) -> Result<Option<u64>, SqliteError> {
    let is_before = |seq: u64| -> Result<bool, SqliteError> {
        let record: Vec<u8> =
            conn.query_row("SELECT record FROM audit WHERE seq = ?1", [seq.cast_signed()], |row| row.get(0))?;
        Ok(record_codec::timestamp(&record).is_some_and(|at| at < moment))
    };
    let (mut low, mut high) = (first, head + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low.checked_sub(1).filter(|last| *last >= first))
}

/// Start of the chain: after the last pruned record, according to the newest record about pruning.
pub(crate) fn chain_start(conn: &Connection) -> Result<Option<Anchor>, SqliteError> {
    let first: Option<i64> = conn.query_row("SELECT min(seq) FROM audit", (), |row| row.get(0))?;
    let Some(before) = first.map(|first| first - 1).filter(|before| *before > 0) else { return Ok(None) };
    let mut prunings =
        conn.prepare("SELECT record FROM audit WHERE substr(record, 2, 1) = ?1 ORDER BY seq DESC")?;
    let mut rows = prunings.query([[record_codec::PRUNE].as_slice()])?;
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
    use crate::tests as sample;
    use crate::{Options, Store};
    use octo_ports::AuditLog;
    use octo_ports::RecordKind;

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
