//! Concurrent writers: nothing is lost or duplicated, and acknowledged changes are found.

use super::*;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_callers_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memories = Arc::new(open(dir.path()));
    let callers: Vec<_> = (0..100)
        .map(|caller| {
            let memories = Arc::clone(&memories);
            tokio::spawn(async move {
                for at in 0..10 {
                    let own =
                        entity(&format!("own {caller} {at}"), "thing", &[&format!("word{caller}x{at}")]);
                    let shared = entity("shared", "thing", &[&format!("fact {caller} {at}"), "same"]);
                    memories.upsert(ada(), vec![own, shared], NameMatch::Alike).await.unwrap();
                    let found = find(&memories, &format!("word{caller}x{at}")).await;
                    assert_eq!(found, [format!("own {caller} {at}")]);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let shared = known(&memories, "shared").await.unwrap();
    assert_eq!(shared.fact_count, 1_001);
    let all = memories
        .list(ada(), octo_ports::memory::PageRequest { limit: 1, ..Default::default() })
        .await
        .unwrap();
    assert_eq!(all.total, 1_001);
}

#[tokio::test]
async fn two_processes_share_a_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (open(dir.path()), open(dir.path()));
    for at in 0..20 {
        put(&one, "shared", "thing", &[&format!("one {at}")]).await;
        put(&other, "shared", "thing", &[&format!("other {at}")]).await;
    }
    assert_eq!(known(&one, "shared").await.unwrap().fact_count, 40);
    assert_eq!(find(&other, "one 7").await, ["shared"]);
}

#[tokio::test]
async fn a_refused_change_does_not_harm_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let memories = SqliteMemoryStore::new(dir.path(), Durability::Flush, 5_000);
    let large = "x".repeat(6_000);
    let jobs = (0..20).map(|at| {
        let fact = if at % 2 == 0 { "fits" } else { large.as_str() };
        memories.upsert(ada(), vec![entity(&format!("e{at}"), "thing", &[fact])], NameMatch::Alike)
    });
    // All are queued before the first is awaited.
    let mut answers: Vec<_> = jobs.map(|job| Box::pin(async move { job.await.is_ok() })).collect();
    let mut made = Vec::new();
    for answer in &mut answers {
        made.push(answer.await);
    }
    assert_eq!(made, (0..20).map(|at| at % 2 == 0).collect::<Vec<_>>());
    assert_eq!(find(&memories, "fits").await.len(), 10);
}
