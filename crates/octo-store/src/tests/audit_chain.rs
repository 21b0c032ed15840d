//! `verify` reports the first record that was tampered with, whatever was done.

use super::{calls, store};
use crate::SqliteError;
use crate::audit::audit_verify::verify;
use aws_lc_rs::digest::{SHA256, digest};
use octo_ports::audit_format::BrokenChain;
use octo_ports::{Anchor, Verified};
use rusqlite::Connection;
use std::path::Path;

/// Ten calls.
const RECORDS: u64 = 20;

struct Audit {
    dir: tempfile::TempDir,
    head: Anchor,
}

impl Audit {
    async fn written() -> Self {
        let dir = tempfile::tempdir().unwrap();
        calls(&store(dir.path()), RECORDS as usize / 2).await;
        let Verified { records, head, .. } = verify(dir.path(), None).unwrap();
        assert_eq!((records, head.seq), (RECORDS, RECORDS));
        Self { dir, head }
    }

    fn open(&self) -> Connection {
        let conn = Connection::open(self.dir.path().join("octoprox.db")).unwrap();
        conn.execute_batch(
            "DROP TRIGGER IF EXISTS audit_never_changes; DROP TRIGGER IF EXISTS audit_never_shrinks;",
        )
        .unwrap();
        conn
    }
}

fn broken_at(dir: &Path, anchor: Option<Anchor>) -> Option<u64> {
    match verify(dir, anchor) {
        Ok(_) => None,
        Err(SqliteError::Broken(BrokenChain { seq, .. })) => Some(seq),
        Err(other) => panic!("{other}"),
    }
}

/// Changes a record and recomputes everything after it, as an attacker would.
fn forge(conn: &Connection, from: i64) {
    conn.execute("UPDATE audit SET record = zeroblob(length(record)) WHERE seq = ?1", [from]).unwrap();
    let mut before: [u8; 32] =
        conn.query_row("SELECT hash FROM audit WHERE seq = ?1", [from - 1], |row| row.get(0)).unwrap();
    for seq in from..=RECORDS as i64 {
        let record: Vec<u8> =
            conn.query_row("SELECT record FROM audit WHERE seq = ?1", [seq], |row| row.get(0)).unwrap();
        before = digest(&SHA256, &[&before[..], &record].concat()).as_ref().try_into().unwrap();
        conn.execute("UPDATE audit SET hash = ?2 WHERE seq = ?1", (seq, before)).unwrap();
    }
}

/// Name, SQL, and the record where it is detected.
type Tampering = (&'static str, &'static str, Option<u64>);

const DETECTED_TAMPERING: &[Tampering] = &[
    ("nothing", "", None),
    ("edit one", "UPDATE audit SET record = zeroblob(length(record)) WHERE seq = 7", Some(7)),
    ("edit the first", "UPDATE audit SET record = x'' WHERE seq = 1", Some(1)),
    ("edit the last", "UPDATE audit SET record = x'' WHERE seq = 20", Some(20)),
    ("edit a hash", "UPDATE audit SET hash = zeroblob(32) WHERE seq = 7", Some(7)),
    ("shorten a hash", "UPDATE audit SET hash = x'' WHERE seq = 7", Some(7)),
    ("delete one", "DELETE FROM audit WHERE seq = 7", Some(7)),
    ("delete the first", "DELETE FROM audit WHERE seq = 1", Some(1)),
    ("cut out some", "DELETE FROM audit WHERE seq BETWEEN 5 AND 9", Some(5)),
    (
        "delete one and close the gap",
        "DELETE FROM audit WHERE seq = 7; UPDATE audit SET seq = seq - 1 WHERE seq > 7",
        Some(7),
    ),
    (
        "cut off the beginning and renumber",
        "DELETE FROM audit WHERE seq < 5; UPDATE audit SET seq = seq - 4",
        Some(1),
    ),
    (
        "swap two rows",
        "UPDATE audit SET seq = 99 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 6;
         UPDATE audit SET seq = 6 WHERE seq = 99",
        Some(5),
    ),
    (
        "swap two records and leave the hashes",
        "CREATE TEMP TABLE kept AS SELECT seq, record FROM audit;
         UPDATE audit SET record = (SELECT record FROM kept WHERE seq = 12) WHERE seq = 5;
         UPDATE audit SET record = (SELECT record FROM kept WHERE seq = 5) WHERE seq = 12",
        Some(5),
    ),
    (
        "slip one in",
        "UPDATE audit SET seq = -seq WHERE seq >= 10; UPDATE audit SET seq = 1 - seq WHERE seq < 0;
         INSERT INTO audit SELECT 10, hash, record FROM audit WHERE seq = 3",
        Some(10),
    ),
    ("put one before", "INSERT INTO audit SELECT 0, hash, record FROM audit WHERE seq = 3", Some(0)),
    ("put one far before", "INSERT INTO audit SELECT -9, hash, record FROM audit WHERE seq = 3", Some(0)),
    ("add one", "INSERT INTO audit SELECT 21, hash, record FROM audit WHERE seq = 20", Some(21)),
    ("add one behind a gap", "INSERT INTO audit SELECT 30, hash, record FROM audit WHERE seq = 20", Some(21)),
];

#[tokio::test]
async fn every_tampering_is_found_where_it_was_done() {
    for (what, how, shows_at) in DETECTED_TAMPERING {
        let audit = Audit::written().await;
        audit.open().execute_batch(how).unwrap();
        for anchor in [None, Some(audit.head)] {
            assert_eq!(broken_at(audit.dir.path(), anchor), *shows_at, "{what}, anchor {anchor:?}");
        }
    }
}

#[tokio::test]
async fn a_cut_off_end_shows_with_an_anchor() {
    for (what, how, shows_at) in
        [("some", "DELETE FROM audit WHERE seq > 17", Some(18)), ("all", "DELETE FROM audit", Some(1))]
    {
        let audit = Audit::written().await;
        audit.open().execute_batch(how).unwrap();
        assert_eq!(broken_at(audit.dir.path(), None), None, "{what}");
        assert_eq!(broken_at(audit.dir.path(), Some(audit.head)), shows_at, "{what}");
    }
}

#[tokio::test]
async fn a_chain_computed_anew_shows_with_an_anchor() {
    let audit = Audit::written().await;
    forge(&audit.open(), 7);
    assert_eq!(broken_at(audit.dir.path(), None), None);
    assert_eq!(broken_at(audit.dir.path(), Some(audit.head)), Some(RECORDS));
}

#[tokio::test]
async fn an_older_anchor_still_holds() {
    let audit = Audit::written().await;
    calls(&store(audit.dir.path()), 3).await;
    let Verified { records, head, .. } = verify(audit.dir.path(), Some(audit.head)).unwrap();
    assert_eq!((records, head.seq), (RECORDS + 6, RECORDS + 6));
    assert_eq!(verify(audit.dir.path(), Some(Anchor::default())).unwrap().records, records);
    let foreign = Anchor { seq: 0, hash: head.hash };
    assert_eq!(broken_at(audit.dir.path(), Some(foreign)), Some(0));
}

#[tokio::test]
async fn a_damaged_page_is_a_broken_chain() {
    let dir = tempfile::tempdir().unwrap();
    calls(&store(dir.path()), 200).await;
    let file = dir.path().join("octoprox.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xee);
    std::fs::write(&file, bytes).unwrap();
    let seq = broken_at(dir.path(), None).unwrap();
    assert!((2..400).contains(&seq), "{seq}");
}
