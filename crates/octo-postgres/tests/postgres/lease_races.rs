//! Leases of many hubs.

use crate::postgres_schema::PostgresSchema;
use futures_util::future::join_all;
use octo_ports::Leases;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Acquires when it is free.
async fn wait_for(leases: &dyn Leases, name: &str) -> octo_ports::Lease {
    loop {
        if let Some(lease) = leases.acquire(name, MINUTE).await.unwrap() {
            return lease;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_hubs_one_has_it_and_tokens_rise_in_the_order_of_holders() {
    let schema = PostgresSchema::new().await;
    let hubs: Vec<Arc<dyn Leases>> = (0..6).map(|_| schema.stores().leases).collect();
    let racers = hubs.iter().map(|leases| leases.acquire("a", MINUTE));
    let winners = join_all(racers).await.into_iter().filter(|lease| lease.as_ref().unwrap().is_some());
    assert_eq!(winners.count(), 1);
    let (holders, last_token) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let turns = hubs.into_iter().map(|leases| {
        let (holders, last_token) = (Arc::clone(&holders), Arc::clone(&last_token));
        tokio::spawn(async move {
            for _ in 0..20 {
                let lease = wait_for(&*leases, "b").await;
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders at a time");
                assert!(last_token.swap(lease.token, Ordering::SeqCst) < lease.token);
                holders.fetch_sub(1, Ordering::SeqCst);
                leases.release(&lease).await.unwrap();
            }
        })
    });
    for turn in join_all(turns).await {
        turn.unwrap();
    }
}

/// After a failover the clock may be another one.
#[tokio::test]
async fn a_clock_that_was_wrong_delays_nobody_for_long() {
    let schema = PostgresSchema::new().await;
    let leases = schema.stores().leases;
    assert!(leases.acquire("a", MINUTE).await.unwrap().is_some());
    schema.run("UPDATE leases SET until = now() + interval '1 year'").await;
    assert_eq!(leases.holder("a").await.unwrap(), None);
    assert!(leases.acquire("a", MINUTE).await.unwrap().is_some());
}

#[tokio::test]
async fn what_was_released_long_ago_is_removed() {
    let schema = PostgresSchema::new().await;
    let leases = schema.stores().leases;
    let old = leases.acquire("a", MINUTE).await.unwrap().unwrap();
    schema.run("UPDATE leases SET until = now() - interval '2 days'").await;
    let lease = leases.acquire("b", MINUTE).await.unwrap().unwrap();
    leases.release(&lease).await.unwrap();
    assert!(!leases.renew(&old, MINUTE).await.unwrap(), "the row of the first one is gone");
}
