//! Hundreds of statements that try to change something through the read-only tools.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and looks at the server behind the tools"
)]

mod postgres_fixture;
#[path = "postgres_fixture/read_only_statements.rs"]
mod read_only_statements;

use octo_grants::sql::SqlSpec;
use postgres_fixture::{PostgresCluster, TestDatabase, bench, client, spec, wait_until};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// A session that receives all notifications, and dies when it is terminated.
struct NotificationListener {
    client: Client,
    notifications: Arc<Mutex<Vec<String>>>,
}

impl NotificationListener {
    async fn new(dsn: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(notification) = message {
                    said.lock().unwrap().push(notification.channel().to_owned());
                }
            }
        });
        client.batch_execute("LISTEN octo").await.unwrap();
        Self { client, notifications: heard }
    }
}

/// State that a dump does not contain: locks, slots, prepared transactions, settings, files.
async fn server_state(admin: &Client) -> BTreeMap<String, String> {
    let rows = admin
        .query(
            "SELECT 'locks', (SELECT count(*)::text FROM pg_locks WHERE locktype IN ('advisory', 'object') \
                OR mode LIKE '%Exclusive%' AND locktype <> 'virtualxid') \
             UNION ALL SELECT 'slots', (SELECT count(*)::text FROM pg_replication_slots) \
             UNION ALL SELECT 'origins', (SELECT count(*)::text FROM pg_replication_origin) \
             UNION ALL SELECT 'prepared', (SELECT count(*)::text FROM pg_prepared_xacts) \
             UNION ALL SELECT 'auto', (SELECT md5(pg_read_file('postgresql.auto.conf'))) \
             UNION ALL SELECT 'conf', (SELECT md5(pg_read_file('postgresql.conf'))) \
             UNION ALL SELECT 'files', (SELECT string_agg(f, ',' ORDER BY f) FROM pg_ls_dir('.') f) \
             UNION ALL SELECT 'temporary', (SELECT count(*)::text FROM pg_class WHERE relpersistence = 't')",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, Option<String>>(1).unwrap_or_default())).collect()
}

fn files_written() -> Vec<String> {
    let names =
        std::fs::read_dir("/tmp").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("octo_pwned")).collect()
}

async fn try_all(spec: &SqlSpec) -> (usize, BTreeMap<String, usize>) {
    let hub = bench(spec);
    let mut kinds = BTreeMap::new();
    let statements = read_only_statements::all();
    for sql in &statements {
        for (tool, input) in [
            ("db_query", json!({"sql": sql, "timeout_s": 5})),
            ("db_explain", json!({"sql": sql, "timeout_s": 5})),
            ("db_explain", json!({"sql": sql, "timeout_s": 5, "analyze": false})),
        ] {
            let kind = hub.call(tool, input).await.map_or_else(|error| error.kind.as_str(), |_| "answered");
            assert_ne!(kind, "internal", "{tool} {sql}");
            *kinds.entry(format!("{tool} {kind}")).or_insert(0) += 1;
        }
    }
    (statements.len(), kinds)
}

#[tokio::test]
async fn no_statement_writes_through_a_tool_that_reads() {
    let cluster = PostgresCluster::start("writes");
    let database = TestDatabase::create_on(&cluster.admin(), "victim").await;
    let admin = client(&database.admin).await;
    admin
        .batch_execute("CREATE EXTENSION dblink; CREATE EXTENSION adminpack; CREATE EXTENSION postgres_fdw")
        .await
        .unwrap();
    database.run(read_only_statements::AGGREGATE_STATE_SQL).await;
    database.run(read_only_statements::SETUP_SQL).await;
    // A role with all privileges on these tables, restricted by the hub, and one that the server restricts, too.
    admin.batch_execute("GRANT CREATE ON DATABASE victim TO victim_owner").await.unwrap();
    let witness = NotificationListener::new(&database.admin).await;
    // Touches every table once, so that no hint bit or statistic is new afterwards.
    let (dump, state) = (cluster.run_script("dump"), server_state(&admin).await);
    assert!(dump.contains("COPY public.t (id, v)") && files_written().is_empty());
    for login in [&database.owner, &database.reader] {
        let (statements, kinds) = try_all(&spec(login)).await;
        assert!(statements >= 200, "{statements}");
        println!("{statements} statements through db_query and db_explain: {kinds:?}");
        // A guard that refuses everything would prove nothing.
        assert!(kinds["db_query answered"] >= 10 && kinds["db_explain answered"] >= 10, "{kinds:?}");
    }
    wait_until("all sessions are reset", || async { server_state(&admin).await == state }).await;
    let after = cluster.run_script("dump");
    for (before, after) in dump.lines().zip(after.lines()) {
        // pg_dump writes a random word into its dumps.
        if !before.starts_with("\\restrict") && !before.starts_with("\\unrestrict") {
            assert_eq!(before, after);
        }
    }
    assert_eq!(dump.lines().count(), after.lines().count());
    assert_eq!(files_written(), Vec::<String>::new());
    witness.client.simple_query("SELECT 1").await.expect("nobody ended it");
    assert_eq!(*witness.notifications.lock().unwrap(), Vec::<String>::new());
    // The proof can fail: the same change through the tool that may.
    let hub = bench(&spec(&database.owner));
    hub.call("db_execute", json!({"sql": "SELECT touch()"})).await.unwrap();
    assert_ne!(cluster.run_script("dump").lines().count(), dump.lines().count());
}

#[tokio::test]
async fn the_reset_of_a_reader_leaves_nothing_of_two_hundred_statements() {
    let database = TestDatabase::new("residue").await;
    database.run(read_only_statements::AGGREGATE_STATE_SQL).await;
    database.run(read_only_statements::SETUP_SQL).await;
    // One session, so that every statement sees what the previous one left.
    let hub = bench(&SqlSpec { sessions: 1, ..spec(&database.owner) });
    let state = "SELECT current_setting('default_transaction_read_only'), current_setting('transaction_read_only'), \
         current_user = session_user, current_setting('search_path'), current_setting('session_replication_role')";
    for sql in read_only_statements::all() {
        drop(hub.call("db_query", json!({"sql": sql, "timeout_s": 5})).await);
        let seen = hub
            .call("db_query", json!({"sql": state}))
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(seen["rows"], json!([["on", "on", true, "\"$user\", public", "origin"]]), "{sql}");
    }
    database.drop_database().await;
}
