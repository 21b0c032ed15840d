//! A schema of its own on the server that `scripts/services start` runs, used as a role without any privileges
//! outside of it. It is dropped with the test.

#![allow(dead_code, reason = "tests of the library use a part")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and looks at the server behind the tools"
)]

use octo_grants::Net;
use octo_model::{Secret, hex};
use octo_ports::Stores;
use octo_postgres::{PostgresOptions, Schema, migrate, postgres};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio_postgres::{Client, NoTls};

pub const ROLE: &str = "octoprox_stores";
pub const PASSWORD: &str = "pw";

pub struct PostgresSchema {
    pub options: PostgresOptions,
    pub admin: String,
}

/// Login of the superuser.
pub fn admin() -> String {
    std::env::var("POSTGRES").unwrap_or_else(|_| {
        panic!("POSTGRES is not set: scripts/services install && scripts/services start && eval \"$(scripts/services env)\"")
    })
}

pub async fn client(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl PostgresSchema {
    /// Without tables.
    pub async fn empty() -> Self {
        Self::empty_on(admin()).await
    }

    /// On any server, given the login of its superuser.
    pub async fn empty_on(admin: String) -> Self {
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).unwrap();
        let schema = format!("test_{}", hex(&random));
        let create = format!(
            "BEGIN;
             SELECT pg_advisory_xact_lock(8012);
             DO $$ BEGIN
                 IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
                     CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}';
                 END IF;
             END $$;
             CREATE SCHEMA {schema} AUTHORIZATION {ROLE};
             COMMIT"
        );
        client(&admin).await.batch_execute(&create).await.unwrap();
        let (_, place) = admin.rsplit_once('@').unwrap();
        let dsn = Secret::new(format!("postgres://{ROLE}:{PASSWORD}@{place}"));
        let options = PostgresOptions {
            schema: Schema::parse(&schema).unwrap(),
            net: Net::default(),
            max_connections: 4,
            ..PostgresOptions::new(dsn, Secret::new("a secret of the operator, for tests"), "node-1")
        };
        Self { options, admin }
    }

    pub async fn new() -> Self {
        Self::new_on(admin()).await
    }

    pub async fn new_on(admin: String) -> Self {
        let schema = Self::empty_on(admin).await;
        migrate(&schema.options).await.unwrap();
        schema
    }

    /// For a test that needs it in a function that does not wait. Needs a runtime with several threads.
    pub fn blocking() -> Self {
        block_in_place(|| Handle::current().block_on(Self::new()))
    }

    pub fn stores(&self) -> Stores {
        postgres(&self.options).unwrap()
    }

    /// Of a hub with this name.
    pub fn stores_of(&self, node: &str) -> Stores {
        postgres(&PostgresOptions { node: node.to_owned(), ..self.options.clone() }).unwrap()
    }

    /// A number that the superuser selects.
    pub async fn count(&self, sql: &str) -> i64 {
        let admin = client(&self.admin).await;
        let path = format!("SET search_path TO {}", self.options.schema.as_str());
        admin.batch_execute(&path).await.unwrap();
        admin.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Runs a statement as the superuser, for whom row-level security does not apply.
    pub async fn run(&self, sql: &str) {
        let admin = client(&self.admin).await;
        let path = format!("SET search_path TO {}; {sql}", self.options.schema.as_str());
        admin.batch_execute(&path).await.unwrap();
    }
}

impl Drop for PostgresSchema {
    fn drop(&mut self) {
        let (admin, schema) = (self.admin.clone(), self.options.schema.as_str().to_owned());
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
                // The server may be stopped.
                if let Ok((client, connection)) = tokio_postgres::connect(&admin, NoTls).await {
                    tokio::spawn(connection);
                    let _ = client.batch_execute(&sql).await;
                }
            });
        });
        dropping.join().unwrap();
    }
}
