//! `verify` reports the first record that was tampered with, whatever was done.

use super::calls;
use crate::postgres_schema::PostgresSchema;
use octo_ports::{ChainAnchor, StoreError, Stores};

/// Name, SQL, and the chain and record where it is detected.
type Tampering = (&'static str, &'static str, Option<&'static str>);

const DETECTED_TAMPERING: &[Tampering] = &[
    ("nothing", "SELECT 1", None),
    (
        "edit one",
        "UPDATE audit SET record = '\\x00' WHERE chain = 'two' AND seq = 7",
        Some("`two` is broken at record 7"),
    ),
    (
        "edit the first",
        "UPDATE audit SET record = '' WHERE chain = 'one' AND seq = 1",
        Some("`one` is broken at record 1"),
    ),
    (
        "edit a hash",
        "UPDATE audit SET hash = '' WHERE chain = 'one' AND seq = 7",
        Some("`one` is broken at record 7"),
    ),
    ("delete one", "DELETE FROM audit WHERE chain = 'one' AND seq = 7", Some("`one` is broken at record 7")),
    ("delete the first", "DELETE FROM audit WHERE seq = 1", Some("`one` is broken at record 1")),
    (
        "cut off the end",
        "DELETE FROM audit WHERE chain = 'two' AND seq > 17",
        Some("`two` is broken at record 18"),
    ),
    ("delete a chain", "DELETE FROM audit WHERE chain = 'two'", Some("`two` is broken at record 1")),
    ("delete the end", "DELETE FROM audit_chains WHERE chain = 'two'", Some("`two` is broken at record 0")),
    (
        "move one to the other chain",
        "UPDATE audit SET chain = 'one', seq = 21 WHERE chain = 'two' AND seq = 20",
        Some("`one` is broken at record 21"),
    ),
    (
        "add one with the same number",
        "INSERT INTO audit SELECT chain, seq, at + 1, hash, record FROM audit WHERE chain = 'one' AND seq = 7",
        Some("`one` is broken at record 8"),
    ),
    (
        "put one before",
        "INSERT INTO audit SELECT chain, -9, at, hash, record FROM audit WHERE chain = 'one' AND seq = 7",
        Some("`one` is broken at record 0"),
    ),
    (
        "move the end back",
        "UPDATE audit_chains SET seq = a.seq, hash = a.hash FROM audit a
         WHERE a.chain = 'one' AND a.seq = 17 AND audit_chains.chain = 'one'",
        Some("`one` is broken at record 18"),
    ),
    (
        "prune without a record",
        "UPDATE audit_chains SET pruned_seq = a.seq, pruned_hash = a.hash FROM audit a
         WHERE a.chain = 'one' AND a.seq = 5 AND audit_chains.chain = 'one';
         DELETE FROM audit WHERE chain = 'one' AND seq <= 5",
        Some("`one` is broken at record 5"),
    ),
];

async fn broken(stores: &Stores, anchors: &[ChainAnchor]) -> Option<String> {
    match stores.audit_reader.verify(anchors).await {
        Ok(_) => None,
        Err(StoreError::Corrupt { why, .. }) => Some(why),
        Err(other) => panic!("{other:?}"),
    }
}

struct Log {
    schema: PostgresSchema,
    stores: Stores,
    heads: Vec<ChainAnchor>,
}

impl Log {
    /// Ten calls in each of two chains.
    async fn new() -> Self {
        let schema = PostgresSchema::new().await;
        let stores = schema.stores_of("one");
        calls(&stores, 10).await;
        calls(&schema.stores_of("two"), 10).await;
        stores.audit.flush().await.unwrap();
        schema
            .run("CREATE TABLE saved AS SELECT * FROM audit; CREATE TABLE saved_chains AS SELECT * FROM audit_chains")
            .await;
        let heads = stores.audit_reader.heads().await.unwrap();
        Self { schema, stores, heads }
    }

    /// Changes the log as it was written.
    async fn tamper(&self, sql: &str) {
        let restore = "SET session_replication_role = replica; TRUNCATE audit, audit_chains;
            INSERT INTO audit SELECT * FROM saved; INSERT INTO audit_chains SELECT * FROM saved_chains";
        self.schema.run(&format!("{restore}; {sql}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tampering_is_found_where_it_was_done() {
    let log = Log::new().await;
    for (what, how, shows_at) in DETECTED_TAMPERING {
        log.tamper(how).await;
        for anchors in [&[], &log.heads[..]] {
            let why = broken(&log.stores, anchors).await;
            let is_found = match (&why, shows_at) {
                (Some(why), Some(place)) => why.contains(place),
                (why, place) => why.is_none() && place.is_none(),
            };
            assert!(is_found, "{what}: {why:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_an_anchor_shows() {
    let log = Log::new().await;
    let cut_off = "DELETE FROM audit WHERE chain = 'two' AND seq > 17;
        UPDATE audit_chains SET seq = a.seq, hash = a.hash FROM audit a
        WHERE a.chain = 'two' AND a.seq = 17 AND audit_chains.chain = 'two'";
    let remove = "DELETE FROM audit WHERE chain = 'two'; DELETE FROM audit_chains WHERE chain = 'two'";
    for (how, place) in [(cut_off, "record 18"), (remove, "record 1")] {
        log.tamper(how).await;
        assert_eq!(broken(&log.stores, &[]).await, None, "{how}");
        let why = broken(&log.stores, &log.heads).await.unwrap();
        assert!(why.contains("`two`") && why.contains(place), "{why}");
    }
}
