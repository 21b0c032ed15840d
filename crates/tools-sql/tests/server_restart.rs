//! The server restarts under load.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and restarts the server behind the tools"
)]

mod postgres_fixture;

use octo_grants::sql::SqlSpec;
use octo_toolkit::Kind;
use postgres_fixture::{PostgresCluster, TestDatabase, bench, spec};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_fifty_callers_is_an_outage_and_no_more() {
    let cluster = Arc::new(PostgresCluster::start("restart"));
    let database = TestDatabase::create_on(&cluster.admin(), "busy").await;
    let hub = Arc::new(bench(&SqlSpec { sessions: 16, ..spec(&database.owner) }));
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (hub, stop) = (Arc::clone(&hub), Arc::clone(&stop));
            tokio::spawn(async move {
                let (mut good, mut bad) = (0usize, BTreeMap::<&str, usize>::new());
                while !stop.load(Ordering::Relaxed) {
                    let sql = "SELECT count(*), pg_sleep(0.01) FROM generate_series(1, 1000)";
                    match hub.call("db_query", json!({"sql": sql, "timeout_s": 8})).await {
                        Ok(answer) => {
                            assert_eq!(answer["rows"][0][0], json!(1000));
                            good += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind, Kind::Unavailable, "{error:?}");
                            assert!(error.retry_after.is_some(), "{error:?}");
                            *bad.entry(error.kind.as_str()).or_insert(0) += 1;
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    }
                }
                (good, bad)
            })
        })
        .collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let cluster = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || cluster.run_script("restart")).await.unwrap();
    }
    let up = Instant::now();
    while hub.call("db_query", json!({"sql": "SELECT 1"})).await.is_err() {
        assert!(up.elapsed() < Duration::from_secs(5), "the pool does not recover");
    }
    let recovered = up.elapsed();
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut good, mut bad) = (0, 0);
    for caller in callers {
        let (answered, refused) = caller.await.unwrap();
        good += answered;
        bad += refused.values().sum::<usize>();
    }
    println!("{good} answered, {bad} unavailable, recovered within {recovered:?}");
    assert!(good > 0 && bad > 0, "{good} {bad}");
    for _ in 0..50 {
        hub.call("db_query", json!({"sql": "SELECT 1"})).await.expect("no session of before is given out");
    }
}
