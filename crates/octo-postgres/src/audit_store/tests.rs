//! Records of other times: pruning by months, and clocks that jump.

use super::{PostgresAuditLog, PostgresAuditReader, now_micros};
use crate::database::Database;
use crate::postgres_schema::PostgresSchema;
use jiff::{Timestamp, ToSpan};
use octo_ports::conformance::call_samples::opening;
use octo_ports::{AuditCursor, AuditReader, RecordKind, Retention};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Log {
    schema: Arc<PostgresSchema>,
    log: PostgresAuditLog,
    reader: PostgresAuditReader,
}

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

impl Log {
    async fn new() -> Self {
        Self::of(&Arc::new(PostgresSchema::new().await), "one")
    }

    fn of(schema: &Arc<PostgresSchema>, node: &str) -> Self {
        let database = Arc::new(Database::new(&schema.options).unwrap());
        let options = crate::PostgresOptions { node: node.to_owned(), ..schema.options.clone() };
        let log = PostgresAuditLog::new(Arc::clone(&database), &options).unwrap();
        Self { schema: Arc::clone(schema), log, reader: PostgresAuditReader::new(database) }
    }

    /// Records starts of calls at these times.
    async fn record(&self, times: impl IntoIterator<Item = i64>) {
        for at in times {
            self.log.writer.queue.open(at, &opening("time_now")).unwrap().wait().await.unwrap();
        }
    }

    async fn partitions(&self) -> Vec<String> {
        let schema = self.schema.options.schema.as_str();
        let admin = crate::postgres_schema::client(&self.schema.admin).await;
        let names = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = ($1 || '.audit')::regclass ORDER BY relname";
        let rows = admin.query(names, &[&schema]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn seqs(&self) -> Vec<u64> {
        let records = self.reader.after(&AuditCursor::default()).await.unwrap();
        records.iter().map(|record| record.seq).collect()
    }
}

fn by_age(days: u32) -> Retention {
    Retention { max_age: Some(DAY * days), max_records: None }
}

fn by_number(most: u64) -> Retention {
    Retention { max_records: Some(most), max_age: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_months_are_dropped_and_the_rest_is_deleted() {
    let log = Log::new().await;
    let days = ["2027-01-10", "2027-01-20", "2027-02-10", "2027-02-20", "2027-03-10", "2027-03-20"];
    log.record(days.map(|day| micros(&format!("{day}T12:00:00Z")))).await;
    let head = log.reader.heads().await.unwrap();
    let now: Timestamp = "2027-03-25T12:00:00Z".parse().unwrap();
    assert_eq!(log.reader.prune(by_age(40), now).await.unwrap(), 3);
    assert_eq!(log.seqs().await, [4, 5, 6, 7]);
    let partitions = log.partitions().await;
    assert!(!partitions.contains(&"audit_2027_01".to_owned()), "{partitions:?}");
    assert!(partitions.contains(&"audit_2027_02".to_owned()), "{partitions:?}");
    assert_eq!(log.schema.count("SELECT count(*) FROM audit").await, 4, "the rows of February are gone");
    let [verified] = &log.reader.verify(&head).await.unwrap()[..] else { panic!("not one chain") };
    assert_eq!((verified.records, verified.pruned.unwrap().seq), (4, 3));
    // Everything: the chain goes on after the record of its pruning, and that is not pruned by itself.
    let later = now.checked_add(800.hours()).unwrap();
    assert_eq!(log.reader.prune(by_age(1), later).await.unwrap(), 4);
    for retention in [by_age(1), by_number(1)] {
        let even_later = later.checked_add(800.hours()).unwrap();
        assert_eq!(log.reader.prune(retention, even_later).await.unwrap(), 0);
        assert_eq!(log.reader.prune_when_due(retention, even_later).await.unwrap(), 0);
    }
    assert_eq!(log.seqs().await, [8]);
    log.record([micros("2027-03-26T12:00:00Z")]).await;
    assert_eq!(log.reader.verify(&[]).await.unwrap()[0].head.seq, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_of_all_chains_are_pruned_first() {
    let log = Log::new().await;
    let other = Log::of(&log.schema, "two");
    let start = micros("2027-01-10T12:00:00Z");
    log.record((0..30).map(|step| start + step * 10)).await;
    other.record((0..10).map(|step| start + 200 + step * 10)).await;
    let now: Timestamp = "2027-01-10T13:00:00Z".parse().unwrap();
    assert_eq!(log.reader.prune(by_number(15), now).await.unwrap(), 25);
    let records = log.reader.after(&AuditCursor::default()).await.unwrap();
    let kept: Vec<_> = records.iter().filter(|record| record.kind == RecordKind::Open).collect();
    assert_eq!(kept.len(), 15);
    let oldest = kept.iter().map(|record| record.at.as_microsecond()).min().unwrap();
    assert!((start + 220..=start + 240).contains(&oldest), "{}", oldest - start);
    log.reader.verify(&[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn periodic_pruning_waits_until_it_is_worth_it() {
    let log = Log::new().await;
    let now: Timestamp = "2027-01-10T12:00:00Z".parse().unwrap();
    log.record((0..20).map(|step| now.as_microsecond() + step)).await;
    assert_eq!(log.reader.prune_when_due(by_number(20), now).await.unwrap(), 0);
    log.record([now.as_microsecond() + 20]).await;
    assert_eq!(log.reader.prune_when_due(by_number(20), now).await.unwrap(), 3);
    let almost = now.checked_add(24.hours()).unwrap();
    assert_eq!(log.reader.prune_when_due(by_age(1), almost).await.unwrap(), 0);
    let older = now.checked_add(26.hours()).unwrap();
    assert!(log.reader.prune_when_due(by_age(1), older).await.unwrap() > 0);
    log.reader.verify(&[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_finds_its_partition() {
    let log = Log::new().await;
    let now = now_micros();
    log.record([now, 0, now, micros("2099-07-01T00:00:00Z"), micros("1999-12-31T23:59:59Z"), now]).await;
    assert_eq!(log.seqs().await, [1, 2, 3, 4, 5, 6], "in the order of the chain, whatever the times");
    let tail = log.reader.tail(3).await.unwrap();
    assert_eq!(tail.iter().map(|record| record.seq).collect::<Vec<_>>(), [4, 5, 6]);
    let partitions = log.partitions().await;
    for table in ["audit_1970_01", "audit_2099_07", "audit_1999_12"] {
        assert!(partitions.contains(&table.to_owned()), "{table} of {partitions:?}");
    }
    assert_eq!(log.reader.verify(&[]).await.unwrap()[0].records, 6);
    // Partitions of the wrong times go with their records.
    let later = Timestamp::from_microsecond(now).unwrap().checked_add(1.hours()).unwrap();
    assert_eq!(log.reader.prune(by_number(1), later).await.unwrap(), 5);
    let partitions = log.partitions().await;
    assert!(!partitions.iter().any(|table| table.contains("2099") || table.contains("19")), "{partitions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_was_dropped_is_created_again() {
    let log = Log::new().await;
    let (january, february) = (micros("2027-01-10T12:00:00Z"), micros("2027-02-10T12:00:00Z"));
    log.record([january, february]).await;
    let now = Timestamp::from_microsecond(february).unwrap();
    assert_eq!(log.reader.prune(by_age(10), now).await.unwrap(), 1);
    assert!(!log.partitions().await.contains(&"audit_2027_01".to_owned()));
    log.record([january]).await;
    assert_eq!(log.seqs().await, [2, 3, 4]);
    log.reader.verify(&[]).await.unwrap();
}

/// A long verification must not stop the writers, nor be stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_delays_neither_new_months_nor_pruning() {
    let log = Log::new().await;
    let (january, march) = (micros("2027-01-10T12:00:00Z"), micros("2027-03-10T12:00:00Z"));
    log.record([january, january]).await;
    let reader = crate::postgres_schema::client(&log.schema.admin).await;
    let schema = log.schema.options.schema.as_str();
    reader.batch_execute(&format!("BEGIN; SELECT * FROM {schema}.audit")).await.unwrap();
    let began = std::time::Instant::now();
    log.record([march]).await;
    let now = Timestamp::from_microsecond(march).unwrap();
    assert_eq!(log.reader.prune(by_age(10), now).await.unwrap(), 2);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(log.seqs().await, [3, 4]);
    assert_eq!(log.schema.count("SELECT count(*) FROM audit").await, 2);
    assert!(log.partitions().await.contains(&"audit_2027_01".to_owned()), "it is in use by the reader");
    reader.batch_execute("COMMIT").await.unwrap();
    log.record([march]).await;
    assert_eq!(log.reader.prune(by_number(1), now).await.unwrap(), 2);
    assert!(!log.partitions().await.contains(&"audit_2027_01".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_is_written_and_pruned_can_be_verified() {
    let log = Log::new().await;
    let now = now_micros();
    // Not more at once than may wait.
    for _ in 0..9 {
        let open = |_| log.log.writer.queue.open(now, &opening("time_now")).unwrap();
        let groups: Vec<_> = (0..5_000).map(open).collect();
        groups.last().unwrap().wait().await.unwrap();
    }
    let later = Timestamp::from_microsecond(now).unwrap().checked_add(1.hours()).unwrap();
    let change = async {
        for most in (1..=20).rev() {
            log.reader.prune(by_number(most * 2_000), later).await.unwrap();
            log.record([now; 5]).await;
        }
    };
    let verify = async {
        let mut verified = Vec::new();
        while verified.last() != Some(&2_006) {
            verified.push(log.reader.verify(&[]).await.unwrap()[0].records);
        }
        verified
    };
    let ((), verified) =
        tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(change, verify) }).await.unwrap();
    assert!(verified.len() >= 2, "{verified:?}");
}
