//! Lost connections and servers that are down: nothing acknowledged is missing, and nothing is written twice.

use super::{all_records, closing, concurrent_calls, records_per_call, start, wait_until};
use crate::postgres_cluster::PostgresCluster;
use crate::postgres_schema::{PostgresSchema, client};
use octo_model::Secret;
use octo_ports::{RecordKind, StoreError, Stores};
use octo_postgres::{PostgresOptions, postgres};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Between a hub and the server. It can lose what one of them sends, and then the connections.
struct LossyProxy {
    port: u16,
    state: Arc<ProxyState>,
}

#[derive(Default)]
struct ProxyState {
    loses_requests: AtomicBool,
    loses_answers: AtomicBool,
    /// Bytes of requests that were lost.
    lost: AtomicUsize,
    /// Changes when all connections end.
    generation: watch::Sender<u64>,
}

impl LossyProxy {
    async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let state = Arc::clone(&proxy.state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, server) = (Arc::clone(&state), TcpStream::connect(&server).await.unwrap());
                tokio::spawn(forward(client, server, state));
            }
        });
        proxy
    }

    fn disconnect(&self) {
        self.state.loses_requests.store(false, Ordering::SeqCst);
        self.state.loses_answers.store(false, Ordering::SeqCst);
        self.state.generation.send_modify(|generation| *generation += 1);
    }
}

async fn forward(client: TcpStream, server: TcpStream, state: Arc<ProxyState>) {
    let mut end = state.generation.subscribe();
    let ((mut client, mut to_client), (mut server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = client.read(&mut bytes).await {
            if state.loses_requests.load(Ordering::SeqCst) {
                state.lost.fetch_add(count, Ordering::SeqCst);
            } else {
                to_server.write_all(&bytes[..count]).await.unwrap();
            }
        }
    };
    let answers = async {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut bytes).await {
            if !state.loses_answers.load(Ordering::SeqCst)
                && to_client.write_all(&bytes[..count]).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        () = answers => {}
        _ = end.changed() => {}
    }
}

/// A hub behind a proxy.
async fn lossy_hub(schema: &PostgresSchema) -> (Stores, LossyProxy) {
    let (login, place) = Secret::expose(&schema.options.dsn).rsplit_once('@').unwrap();
    let (server, database) = place.split_once('/').unwrap();
    let proxy = LossyProxy::start(server.to_owned()).await;
    let dsn = Secret::new(format!("{login}@127.0.0.1:{}/{database}", proxy.port));
    let options = PostgresOptions { dsn, node: "lossy".to_owned(), ..schema.options.clone() };
    (postgres(&options).unwrap(), proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_written_once_if_its_answer_is_lost() {
    let schema = PostgresSchema::new().await;
    let (stores, proxy) = lossy_hub(&schema).await;
    let first = start(&stores, "first").await.unwrap();
    proxy.state.loses_answers.store(true, Ordering::SeqCst);
    stores.audit.close(closing(first));
    let (hub, count) = (stores.clone(), || schema.count("SELECT count(*) FROM audit"));
    let second = tokio::spawn(async move { start(&hub, "second").await });
    // The end of the first call, and the second call unless it is in the next group.
    wait_until("the commit", async || count().await > 1).await;
    proxy.disconnect();
    let second = second.await.unwrap().unwrap();
    stores.audit.close(closing(second));
    stores.audit.flush().await.unwrap();
    let records = all_records(&*schema.stores().audit_reader).await;
    assert_eq!(records.len(), 4);
    assert!(records_per_call(&records).values().all(|count| *count == 2));
    schema.stores().audit_reader.verify(&[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_did_not_arrive_is_sent_again() {
    let schema = PostgresSchema::new().await;
    let (stores, proxy) = lossy_hub(&schema).await;
    start(&stores, "first").await.unwrap();
    proxy.state.loses_requests.store(true, Ordering::SeqCst);
    let hub = stores.clone();
    let second = tokio::spawn(async move { start(&hub, "second").await });
    wait_until("the loss", async || proxy.state.lost.load(Ordering::SeqCst) > 0).await;
    proxy.disconnect();
    second.await.unwrap().unwrap();
    assert_eq!(schema.stores().audit_reader.verify(&[]).await.unwrap()[0].records, 2);
}

/// A call is refused in time, though the server committed its record; and the end of another call, which was in the
/// same or the next group, is written once.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_call_is_written_once_after_a_refusal() {
    let schema = PostgresSchema::new().await;
    let (stores, proxy) = lossy_hub(&schema).await;
    let first = start(&stores, "first").await.unwrap();
    proxy.state.loses_answers.store(true, Ordering::SeqCst);
    stores.audit.close(closing(first));
    let began = Instant::now();
    let refused = start(&stores, "refused").await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    proxy.disconnect();
    let third = start(&stores, "third").await.unwrap();
    stores.audit.close(closing(third));
    stores.audit.flush().await.unwrap();
    let reader = schema.stores().audit_reader;
    let records = all_records(&*reader).await;
    let count = records_per_call(&records);
    assert_eq!([first, third].map(|id| count[id.to_string().as_str()]), [2, 2], "{records:?}");
    reader.verify(&[]).await.unwrap();
}

/// The server commits a group after the hub has lost the connection and has sent the group again.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_committed_late_is_written_once() {
    let schema = PostgresSchema::new().await;
    let (stores, proxy) = lossy_hub(&schema).await;
    start(&stores, "first").await.unwrap();
    let (admin, path) = (client(&schema.admin).await, schema.options.schema.as_str());
    admin.batch_execute(&format!("BEGIN; SELECT FROM {path}.audit_chains FOR UPDATE")).await.unwrap();
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid IN (
            SELECT pid FROM pg_locks WHERE relation = '{path}.audit_chains'::regclass)"
    );
    let hub = stores.clone();
    let second = tokio::spawn(async move { start(&hub, "second").await });
    wait_until("the lock", async || schema.count(&waiting).await == 1).await;
    proxy.disconnect();
    wait_until("the second attempt", async || schema.count(&waiting).await == 2).await;
    admin.batch_execute("COMMIT").await.unwrap();
    second.await.unwrap().unwrap();
    let reader = schema.stores().audit_reader;
    assert_eq!(all_records(&*reader).await.len(), 2);
    reader.verify(&[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_sessions_lose_nothing() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    let ended = Arc::new(AtomicI64::new(0));
    let (count, admin) = (Arc::clone(&ended), client(&schema.admin).await);
    // Sessions in the middle of a transaction.
    let end = format!(
        "SELECT count(*) FROM (SELECT DISTINCT pid FROM pg_locks
            WHERE relation = '{}.audit_chains'::regclass AND pid <> pg_backend_pid()) AS writers
         WHERE pg_terminate_backend(pid)",
        schema.options.schema.as_str()
    );
    let ending = tokio::spawn(async move {
        loop {
            count.fetch_add(admin.query_one(&end, &[]).await.unwrap().get(0), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let mut ids = BTreeSet::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while ended.load(Ordering::SeqCst) < 10 {
        assert!(Instant::now() < deadline, "too few sessions were ended");
        ids.extend(concurrent_calls(&stores, 8, 50).await);
    }
    ending.abort();
    let records = all_records(&*stores.audit_reader).await;
    let count = records_per_call(&records);
    assert!(ids.iter().all(|id| count.get(id.as_str()) == Some(&2)));
    assert_eq!(records.len(), 2 * ids.len(), "nothing else was written");
    stores.audit_reader.verify(&[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_refuses_calls_and_gets_their_ends_later() {
    let cluster = PostgresCluster::start("audit");
    let schema = PostgresSchema::new_on(cluster.admin()).await;
    let stores = schema.stores();
    let first = start(&stores, "first").await.unwrap();
    cluster.run_script("stop");
    stores.audit.close(closing(first));
    let began = Instant::now();
    let refused = start(&stores, "refused").await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    let began = Instant::now();
    assert!(start(&stores, "refused").await.is_err());
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "the database is known to be down: {:?}",
        began.elapsed()
    );
    assert!(stores.audit.check().await.is_err());
    cluster.run_script("start");
    wait_until("the next call", async || start(&stores, "second").await.is_ok()).await;
    let records = all_records(&*stores.audit_reader).await;
    let brief: Vec<_> = records.iter().map(|record| (record.kind, record.name.as_deref())).collect();
    let (opened, closed) = (RecordKind::Open, RecordKind::Close);
    assert_eq!(brief, [(opened, Some("first")), (closed, None), (opened, Some("second"))]);
    assert_eq!(stores.audit.check().await, Ok(()));
    stores.audit_reader.verify(&[]).await.unwrap();
    // A hub that ends while the server is down does not wait forever.
    cluster.run_script("stop");
    stores.audit.close(closing(first));
    let began = Instant::now();
    drop(stores);
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    cluster.run_script("start");
    drop(schema);
}
