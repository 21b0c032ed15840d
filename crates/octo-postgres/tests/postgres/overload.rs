//! Tenants that use all they can, and a database that does not answer.

use crate::postgres_schema::{PostgresSchema, client};
use octo_model::{CallId, Caller, Json, Principal};
use octo_ports::conformance::call_samples;
use octo_ports::{NewRun, Port, StoreError, Stores};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::Client;

const DEADLINE: Duration = Duration::from_secs(9);
/// How long a statement waits for a session at most.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Sessions that one tenant gets of eight: two are reserved, and one is left for others.
const MAX_SESSIONS_OF_TENANT: i64 = 5;

/// Nobody else can use the table until the client is dropped.
async fn lock(schema: &PostgresSchema, table: &str) -> Client {
    let client = client(&schema.admin).await;
    let name = schema.options.schema.as_str();
    let lock = format!("BEGIN; LOCK TABLE {name}.{table} IN ACCESS EXCLUSIVE MODE");
    client.batch_execute(&lock).await.unwrap();
    client
}

/// Statements that wait for the table.
async fn waiting(schema: &PostgresSchema, table: &str) -> i64 {
    let name = schema.options.schema.as_str();
    let locks =
        format!("SELECT count(*) FROM pg_locks WHERE relation = '{name}.{table}'::regclass AND NOT granted");
    schema.count(&locks).await
}

fn start_runs(stores: &Arc<Stores>, tenant: &str, count: usize) -> JoinSet<Result<(), StoreError>> {
    let mut runs = JoinSet::new();
    for _ in 0..count {
        let (stores, caller) = (Arc::clone(stores), Caller::from(Principal::new(tenant, "ada")));
        runs.spawn(async move {
            let run = NewRun {
                path: "flow.yaml".into(),
                name: "test".into(),
                text: String::new(),
                params: Json::empty_object(),
            };
            stores.runs.begin(&caller, run).await.map(drop)
        });
    }
    runs
}

async fn store_result(stores: &Stores, tenant: &str) -> Result<String, StoreError> {
    let caller = Caller::from(Principal::new(tenant, "ada"));
    stores.results.store(&caller, CallId::fresh(), Json::empty_object()).await
}

async fn until_waiting(schema: &PostgresSchema, count: i64) {
    until(async || waiting(schema, "runs").await >= count).await;
}

async fn until(condition: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < DEADLINE, "not in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_leaves_sessions_for_others_and_for_the_hub() {
    let mut schema = PostgresSchema::new().await;
    schema.options.max_connections = 8;
    let stores = Arc::new(schema.stores());
    for tenant in ["one", "two"] {
        store_result(&stores, tenant).await.unwrap();
    }
    // The first one also removes old runs, of all tenants.
    start_runs(&stores, "two", 1).join_all().await;
    let locked = lock(&schema, "runs").await;
    let runs = start_runs(&stores, "one", 20);
    until_waiting(&schema, MAX_SESSIONS_OF_TENANT).await;
    until(async || stores.health.connections().unwrap().waiting == 20 - MAX_SESSIONS_OF_TENANT as usize)
        .await;
    let began = Instant::now();
    for number in 0..20 {
        store_result(&stores, "two").await.unwrap();
        assert!(stores.leases.acquire(&number.to_string(), DEADLINE).await.unwrap().is_some());
    }
    assert!(began.elapsed() < MAX_WAIT, "{:?}", began.elapsed());
    // Statements of callers that are gone still run, so their sessions are not free.
    drop(runs);
    let mut again = start_runs(&stores, "one", 20);
    let mut refused = 0;
    while let Some(outcome) = tokio::time::timeout(DEADLINE, again.join_next()).await.unwrap() {
        assert_eq!(outcome.unwrap(), Err(StoreError::Busy(Port::Runs)));
        refused += 1;
        assert!(waiting(&schema, "runs").await <= MAX_SESSIONS_OF_TENANT);
    }
    assert_eq!(refused, 20);
    drop(locked);
    for outcome in start_runs(&stores, "one", 20).join_all().await {
        outcome.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_refused_soon_when_the_audit_log_is_not_written() {
    let schema = PostgresSchema::new().await;
    let stores = Arc::new(schema.stores());
    let open = |stores: &Arc<Stores>| {
        let stores = Arc::clone(stores);
        async move { stores.audit.open(call_samples::opening("time_now")).await }
    };
    open(&stores).await.unwrap();
    let locked = lock(&schema, "audit").await;
    let mut calls = JoinSet::new();
    let began = Instant::now();
    let refused = loop {
        calls.spawn(open(&stores));
        match tokio::time::timeout(Duration::from_millis(5), calls.join_next()).await {
            Ok(Some(outcome)) => break outcome.unwrap(),
            _ => assert!(began.elapsed() < DEADLINE, "nothing was refused"),
        }
    };
    assert_eq!(refused, Err(StoreError::Busy(Port::Audit)));
    drop(locked);
    while let Some(outcome) = tokio::time::timeout(DEADLINE, calls.join_next()).await.unwrap() {
        outcome.unwrap().unwrap();
    }
    open(&stores).await.unwrap();
}
