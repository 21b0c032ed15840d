//! Servers that are restarted, stopped or unreachable.

use crate::pg_bouncer::free_port;
use crate::postgres_cluster::PostgresCluster;
use crate::postgres_schema::{PostgresSchema, ROLE};
use octo_model::Secret;
use octo_ports::{StoreError, Stores};
use octo_postgres::{PostgresError, check};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(30);

async fn is_reachable(stores: &Stores) -> bool {
    stores.listings.get("a", "m").await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_used_again_and_wakes_those_who_wait() {
    let cluster = PostgresCluster::start("restart");
    let schema = PostgresSchema::new_on(cluster.admin()).await;
    let (one, two) = (schema.stores(), schema.stores());
    let lease = one.leases.acquire("a", MINUTE).await.unwrap().unwrap();
    let mut changes = two.leases.changes();
    for stores in [&one, &two] {
        assert!(is_reachable(stores).await);
    }
    cluster.run_script("stop");
    let began = Instant::now();
    let error = one.leases.renew(&lease, MINUTE).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "a server that is down is noticed at once");
    cluster.run_script("start");
    // What was committed before is there, and nobody had to restart.
    assert!(one.leases.renew(&lease, MINUTE).await.unwrap());
    let released = async {
        while two.leases.holder("a").await.unwrap().is_some() {
            changes.changed().await;
        }
    };
    one.leases.release(&lease).await.unwrap();
    timeout(DEADLINE, released).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_that_was_ended_is_replaced() {
    let cluster = PostgresCluster::start("ended");
    let schema = PostgresSchema::new_on(cluster.admin()).await;
    let stores = schema.stores();
    assert!(is_reachable(&stores).await);
    for _ in 0..5 {
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'");
        schema.run(&end).await;
        assert!(is_reachable(&stores).await);
    }
}

#[tokio::test]
async fn errors_say_what_is_wrong_and_never_the_password() {
    let mut schema = PostgresSchema::new().await;
    let (place, port) = (schema.admin.rsplit_once('@').unwrap().1.to_owned(), free_port());
    for (dsn, expected) in [
        (format!("postgres://ada:hunter2@127.0.0.1:{port}/x"), "cannot be reached"),
        (format!("postgres://ada:hunter2@{place}"), "password authentication failed"),
        (format!("postgres://ada:hunter2@{place}?sslmode=require"), "TLS"),
    ] {
        schema.options.dsn = Secret::new(dsn);
        let error = check(&schema.options).await.unwrap_err();
        let text = format!("{error}. {}", error.hint());
        assert!(text.contains(expected) && !text.contains("hunter2"), "{text}");
    }
    schema.options.dsn = Secret::new("postgres://ada:hunter2@/x");
    let Err(PostgresError::Address(error)) = check(&schema.options).await else { panic!() };
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

/// Of several hosts, one that is down is passed over.
#[tokio::test]
async fn the_host_that_accepts_writes_is_used() {
    let mut schema = PostgresSchema::new().await;
    let dsn = schema.options.dsn.expose().to_owned();
    let (login, place) = dsn.rsplit_once('@').unwrap();
    schema.options.dsn = Secret::new(format!("{login}@127.0.0.1:{},{place}", free_port()));
    check(&schema.options).await.unwrap();
    let lease = schema.stores().leases.acquire("a", MINUTE).await.unwrap();
    assert!(lease.is_some());
}
