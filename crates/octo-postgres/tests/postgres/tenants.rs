//! Row-level security, the second line behind the conditions of each statement.

use crate::postgres_schema::{PostgresSchema, client};
use octo_model::{CallId, Caller, Json, Principal};
use octo_ports::NewRun;

/// Tables without rows of tenants.
const SHARED_TABLES: [&str; 10] = [
    "audit",
    "audit_chains",
    "credential_revisions",
    "fleet_records",
    "leases",
    "listings",
    "pins",
    "pin_servers",
    "schema_versions",
    "seen_pins",
];

async fn count(schema: &PostgresSchema, tenant: &str, table: &str) -> i64 {
    let client = client(schema.options.dsn.expose()).await;
    let name = schema.options.schema.as_str();
    client.batch_execute(&format!("SET octoprox.tenant = '{tenant}'")).await.unwrap();
    let rows = client.query_one(&format!("SELECT count(*) FROM {name}.{table}"), &[]).await.unwrap();
    rows.get(0)
}

#[tokio::test]
async fn every_table_of_tenants_hides_the_rows_of_others() {
    let schema = PostgresSchema::new().await;
    let admin = client(&schema.admin).await;
    let open = admin
        .query(
            "SELECT relname::text FROM pg_class
             WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
               AND NOT (relrowsecurity AND relforcerowsecurity)
             ORDER BY relname",
            &[&schema.options.schema.as_str()],
        )
        .await
        .unwrap();
    let open: Vec<String> = open.iter().map(|row| row.get(0)).collect();
    let unexpected: Vec<&String> =
        open.iter().filter(|table| !SHARED_TABLES.contains(&table.as_str())).collect();
    assert!(unexpected.is_empty(), "without row-level security: {unexpected:?}");
}

#[tokio::test]
async fn a_statement_without_a_condition_sees_one_tenant() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    for tenant in ["one", "two"] {
        let caller = Caller::from(Principal::new(tenant, "ada"));
        let run = NewRun {
            path: "flow.yaml".into(),
            name: "test".into(),
            text: String::new(),
            params: Json::empty_object(),
        };
        stores.runs.begin(&caller, run).await.unwrap().release().await;
        stores.results.store(&caller, CallId::fresh(), Json::text("x")).await.unwrap();
    }
    for table in ["runs", "results", "result_chunks"] {
        for (tenant, rows) in [("one", 1), ("two", 1), ("three", 0), ("", 0)] {
            assert_eq!(count(&schema, tenant, table).await, rows, "{table} of {tenant}");
        }
    }
}
