//! Concurrent hubs: nothing is lost or duplicated, and quotas hold.

use super::*;
use crate::postgres_schema::{PostgresSchema, client};
use octo_ports::memory::{ForgetTarget, PageRequest, Removal};
use octo_ports::{Limit, StoreError};
use octo_postgres::{PostgresOptions, postgres};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs the same work on two hubs with several tasks each.
async fn run_on_two_hubs<F: Future<Output = ()> + Send + 'static>(
    options: &PostgresOptions,
    work: impl Fn(Memory, usize) -> F,
) {
    let hubs = [postgres(options).unwrap().memory, postgres(options).unwrap().memory];
    let tasks: Vec<_> = (0..8).map(|task| tokio::spawn(work(hubs[task % 2].clone(), task))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_duplicated() {
    let schema = PostgresSchema::new().await;
    run_on_two_hubs(&schema.options, |memory, task| async move {
        for at in 0..10 {
            let own = entity(&format!("own {task} {at}"), "thing", &[&format!("word{task}x{at}")]);
            let shared =
                entity("Shared", "thing", &[&format!("fact {task} {at}"), "same", &format!("round {at}")]);
            put(&memory, vec![own, shared, entity(&format!("raced {at}"), "thing", &["same"])]).await;
            let links = vec![link(&format!("raced {at}"), "to", &format!("end {at}"))];
            memory.link(ada(), links, NameMatch::Alike).await.unwrap();
            let found = ask(&memory, words(&format!("word{task}x{at}"))).await;
            assert_eq!(found.entities[0].name, format!("own {task} {at}"), "acknowledged, so found");
        }
    })
    .await;
    let memory = schema.stores().memory;
    let shared = ask(&memory, MemoryQuery { facts: 500, ..named("shared") }).await.entities.pop().unwrap();
    assert_eq!((shared.fact_count, shared.facts.len()), (91, 91));
    let texts: BTreeSet<&str> = facts(&shared).into_iter().collect();
    assert_eq!(texts.len(), 91);
    let all = memory.list(ada(), PageRequest { limit: 500, ..PageRequest::default() }).await.unwrap();
    assert_eq!((all.total, all.entities.len()), (101, 101));
    assert_eq!(all.kinds, [("thing".to_owned(), 91), ("entity".to_owned(), 10)]);
    for at in 0..10 {
        let raced = known(&memory, &format!("raced {at}")).await.unwrap();
        assert_eq!((raced.fact_count, raced.links.len()), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_quota_holds() {
    let schema = PostgresSchema::new().await;
    let options = PostgresOptions { memory_quota_bytes: 4_000, ..schema.options.clone() };
    run_on_two_hubs(&options, |memory, task| async move {
        for at in 0..10 {
            let new = entity(&format!("e{task} {at}"), "thing", &[&"x".repeat(100)]);
            match memory.upsert(ada(), vec![new], NameMatch::Alike).await {
                Ok(_) => {}
                Err(error) => assert_eq!(error, StoreError::Full(Limit::MemoryBytes(4_000))),
            }
        }
    })
    .await;
    let memory = schema.stores().memory;
    let all = ask(&memory, MemoryQuery { limit: 500, ..everything() }).await;
    // Each one has 232 bytes.
    assert_eq!(all.total, 17);
    let names = all.entities.iter().map(|known| known.name.clone()).collect();
    memory.delete(ada(), names, Removal::Erased).await.unwrap();
    let bytes = schema.count("SELECT sum(bytes)::int8 FROM memory_owners").await;
    assert_eq!(bytes, 0);
    assert_eq!(schema.count("SELECT count(*) FROM memory_words").await, 0);
}

/// Whatever is removed and added at the same time, the table of words and the counters fit the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counters_and_words_fit_the_rows() {
    let schema = PostgresSchema::new().await;
    run_on_two_hubs(&schema.options, |memory, task| async move {
        for at in 0..12 {
            let name = format!("e{}", (at * 7 + task) % 5);
            let kind = ["a", "b", "c"][(at + task) % 3];
            put(&memory, vec![entity(&name, kind, &[&format!("common {at}"), &format!("word{task}")])]).await;
            memory.link(ada(), vec![link(&name, "to", "e0")], NameMatch::Alike).await.unwrap();
            let removal = if at % 2 == 0 { Removal::Ended } else { Removal::Erased };
            match at % 4 {
                0 => {
                    let what = ForgetTarget::Fact { entity: name, text: format!("common {at}") };
                    memory.forget(ada(), what, removal).await.unwrap();
                }
                1 => drop(memory.delete(ada(), vec![name], removal).await.unwrap()),
                2 => {
                    let what = ForgetTarget::Link(link(&name, "to", "e0"));
                    memory.forget(ada(), what, removal).await.unwrap();
                }
                _ => {}
            }
        }
    })
    .await;
    let wrong = [
        "SELECT count(*) FROM memory_entities e WHERE until = 9223372036854775807 AND facts <> (
            SELECT count(*) FROM memory_facts f WHERE f.id >> 20 = e.id AND f.until = e.until)",
        "SELECT count(*) FROM memory_kinds k WHERE live <> (SELECT count(*) FROM memory_entities e
            WHERE e.kind_folded = k.kind_folded AND e.until = 9223372036854775807)",
        "SELECT count(*) FROM memory_words w WHERE NOT EXISTS (SELECT FROM memory_facts f
            WHERE f.id = w.row_id AND (f.until < 9223372036854775807) = w.past)
         AND NOT EXISTS (SELECT FROM memory_entities e WHERE e.id << 20 = w.row_id
            AND (e.until < 9223372036854775807) = w.past)",
        "SELECT count(*) FROM memory_facts f WHERE NOT EXISTS (SELECT FROM memory_words w WHERE w.row_id = f.id)",
        "SELECT count(*) FROM (SELECT FROM memory_entities WHERE until = 9223372036854775807
            GROUP BY folded HAVING count(*) > 1) twice",
        "SELECT (SELECT sum(bytes)::int8 FROM memory_owners)
            - (SELECT sum(octet_length(name) + 64)::int8 FROM memory_entities)
            - (SELECT sum(octet_length(text) + 64)::int8 FROM memory_facts)
            - (SELECT 64 * count(*) FROM memory_links)",
    ];
    for sql in wrong {
        assert_eq!(schema.count(sql).await, 0, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn waiting_writers_of_one_owner_leave_sessions_to_the_others() {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    put(&memory, vec![entity("first", "thing", &["fact"])]).await;
    // Another hub is in the middle of a change.
    let other = client(&schema.admin).await;
    let lock = format!(
        "BEGIN; SELECT FROM {}.memory_owners WHERE subject = 'ada' FOR UPDATE",
        schema.options.schema.as_str()
    );
    other.batch_execute(&lock).await.unwrap();
    let waiting: Vec<_> = (0..schema.options.max_connections * 3)
        .map(|at| {
            let memory = memory.clone();
            tokio::spawn(
                async move { put(&memory, vec![entity(&format!("e{at}"), "thing", &["fact"])]).await },
            )
        })
        .collect();
    let holder: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let blocked =
        format!("SELECT count(*) FROM pg_stat_activity WHERE {holder} = ANY (pg_blocking_pids(pid))");
    while schema.count(&blocked).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let started = Instant::now();
    let bob = MemoryCaller::new(&Caller::named("bob"), CallId::fresh());
    memory.upsert(bob, vec![entity("other", "thing", &["fact"])], NameMatch::Alike).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    other.batch_execute("COMMIT").await.unwrap();
    for writer in waiting {
        writer.await.unwrap();
    }
}
