//! Connections to a server: TLS according to `sslmode`, and a local socket.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

mod postgres_fixture;

use octo_toolkit::Kind;
use postgres_fixture::{PostgresCluster, TestDatabase, bench, spec, wait_until};
use serde_json::json;

const TLS_STATE_SQL: &str = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[tokio::test]
async fn tls_is_as_strict_as_it_was_asked_to_be() {
    let cluster = PostgresCluster::start("tls");
    drop(TestDatabase::create_on(&cluster.admin(), "safe").await);
    let cluster = cluster.with_tls();
    let (port, root) = (cluster.port, cluster.folder.join("server.crt").display().to_string());
    let dsn = |host: &str, options: &str| format!("postgres://safe_reader:pw@{host}:{port}/safe{options}");
    for (host, options, secured) in [
        ("localhost", String::new(), Some(true)),
        ("127.0.0.1", "?sslmode=prefer".to_owned(), Some(true)),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={root}"), Some(true)),
        ("localhost", format!("?sslmode=require&sslrootcert={root}"), Some(true)),
        // A name that the certificate does not have.
        ("127.0.0.1", format!("?sslmode=verify-full&sslrootcert={root}"), None),
        // Roots that do not include the certificate.
        ("localhost", "?sslmode=require".to_owned(), None),
        ("localhost", "?sslmode=verify-full&sslrootcert=/nowhere".to_owned(), None),
        // The server accepts nothing else.
        ("localhost", "?sslmode=disable".to_owned(), None),
    ] {
        let hub = bench(&spec(&dsn(host, &options)));
        match (hub.call("db_query", json!({"sql": TLS_STATE_SQL})).await, secured) {
            (Ok(answer), Some(secured)) => {
                assert_eq!(answer["rows"][0][0], json!(secured), "{host}{options}")
            }
            (Err(error), None) => assert_eq!(error.kind, Kind::Unavailable, "{host}{options}: {error}"),
            (other, _) => panic!("{host}{options}: {other:?}"),
        }
    }
    // A statement cancelled through TLS, and the local socket, which has none.
    let hub = bench(&spec(&dsn("localhost", "")));
    let error =
        hub.call("db_query", json!({"sql": "SELECT pg_sleep(60)", "timeout_s": 1})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout);
    let socket = format!("postgres://safe_reader:pw@/safe?host={}&port={port}", cluster.folder.display());
    let local = bench(&spec(&socket));
    assert_eq!(
        local.call("db_query", json!({"sql": TLS_STATE_SQL})).await.unwrap()["rows"][0][0],
        json!(false)
    );
    let listed = local.call("db_connections", json!({})).await.unwrap();
    assert_eq!(listed["connections"][0]["host"], json!("local socket"));
    wait_until("sessions are reset", || async {
        local.call("db_query", json!({"sql": "SELECT 1"})).await.is_ok()
    })
    .await;
}
