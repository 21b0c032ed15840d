//! Real servers to test against: the one that `scripts/services start` runs, and clusters of the tests.

#![allow(dead_code, reason = "each test uses a part")]

mod postgres_cluster;

use octo_grants::Capabilities;
use octo_grants::sql::{Sql, SqlConnection, SqlSpec};
use octo_model::Caller;
use octo_toolkit::{CallContext, ToolFixture};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

#[allow(unused_imports, reason = "each test uses a part")]
pub use postgres_cluster::PostgresCluster;
use postgres_cluster::variable;

/// Login of the superuser at the shared server.
pub fn admin() -> String {
    variable("POSTGRES")
}

pub async fn client(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A separate database on the shared server, with an owner and a reader; both are dropped with it.
pub struct TestDatabase {
    pub name: String,
    pub owner: String,
    pub reader: String,
    pub admin: String,
}

impl TestDatabase {
    pub async fn new(name: &str) -> Self {
        Self::create_on(&admin(), &format!("octo_{name}_{}", std::process::id())).await
    }

    /// On any server. Names come from the test, so nothing needs quoting.
    pub async fn create_on(admin: &str, name: &str) -> Self {
        let server = client(admin).await;
        for statement in [
            format!("CREATE ROLE {name}_owner LOGIN PASSWORD 'pw'"),
            format!("CREATE ROLE {name}_reader LOGIN PASSWORD 'pw' IN ROLE pg_read_all_data"),
            format!("CREATE DATABASE {name} OWNER {name}_owner"),
        ] {
            server.batch_execute(&statement).await.unwrap();
        }
        let place = admin.rsplit('@').next().unwrap().split('/').next().unwrap();
        let login = |role: &str| format!("postgres://{name}_{role}:pw@{place}/{name}");
        let (start, _) = admin.rsplit_once('/').unwrap();
        Self {
            owner: login("owner"),
            reader: login("reader"),
            admin: format!("{start}/{name}"),
            name: name.to_owned(),
        }
    }

    pub async fn run(&self, sql: &str) {
        client(&self.owner).await.batch_execute(sql).await.unwrap();
    }

    pub async fn drop_database(self) {
        let (start, _) = self.admin.rsplit_once('/').unwrap();
        let server = client(&format!("{start}/postgres")).await;
        let name = &self.name;
        for statement in [
            format!("DROP DATABASE {name} WITH (FORCE)"),
            format!("DROP ROLE {name}_owner"),
            format!("DROP ROLE {name}_reader"),
        ] {
            server.batch_execute(&statement).await.unwrap();
        }
    }
}

pub fn spec(dsn: &str) -> SqlSpec {
    SqlSpec { connections: vec![SqlConnection::new("default", dsn)], ..SqlSpec::default() }
}

pub fn capabilities(spec: &SqlSpec) -> Capabilities {
    Capabilities::default().with(Sql::new(spec).unwrap())
}

pub fn bench(spec: &SqlSpec) -> ToolFixture {
    ToolFixture::new(tools_sql::sql_toolbox(), capabilities(spec))
}

pub fn cx(seconds: u64) -> (CallContext, CancellationToken) {
    let cancel = CancellationToken::new();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    (CallContext::new(Arc::new(Caller::local()), deadline, cancel.clone()), cancel)
}

/// Waits for a condition.
pub async fn wait_until<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(20);
    while !check().await {
        assert!(Instant::now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
