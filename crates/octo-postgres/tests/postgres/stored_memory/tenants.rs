//! Tenants see nothing of each other, even if a statement forgot to ask only for its own.

use super::*;
use crate::postgres_schema::{PostgresSchema, client};
use octo_model::Secret;
use octo_ports::memory::{ForgetTarget, PageRequest, Removal};

const TABLES: [&str; 7] = [
    "memory_owners",
    "memory_entities",
    "memory_kinds",
    "memory_former_kinds",
    "memory_facts",
    "memory_links",
    "memory_words",
];

async fn filled() -> PostgresSchema {
    let schema = PostgresSchema::new().await;
    let memory = schema.stores().memory;
    for tenant in ["north", "south"] {
        let asker = of_tenant(tenant);
        let new = entity("Plan", "plan", &["Buy the zeppelin", &format!("Only for {tenant}")]);
        memory.upsert(asker.clone(), vec![new], NameMatch::Alike).await.unwrap();
        let changed = vec![entity("Plan", "secret", &[])];
        memory.upsert(asker.clone(), changed, NameMatch::Alike).await.unwrap();
        memory.link(asker, vec![link("Plan", "needs", tenant)], NameMatch::Alike).await.unwrap();
    }
    schema
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_and_changes() {
    let schema = filled().await;
    let memory = schema.stores().memory;
    for other in [of_tenant("east"), MemoryCaller { principal: Principal::new("north", "bob"), ..ada() }] {
        for asked in [words("zeppelin"), words("zep"), named("Plan"), named("plans"), everything()] {
            let reply = memory.query(other.clone(), asked).await.unwrap();
            assert!(reply.entities.is_empty() && reply.nearest.is_empty() && reply.total == 0);
        }
        let page = PageRequest { limit: 9, ..PageRequest::default() };
        let list = memory.list(other.clone(), page).await.unwrap();
        assert!(list.entities.is_empty() && list.kinds.is_empty() && list.total == 0);
        assert!(memory.dump(other.clone(), 0, 9).await.unwrap().entities.is_empty());
        let names = vec!["Plan".to_owned()];
        assert!(memory.delete(other.clone(), names, Removal::Erased).await.unwrap().is_empty());
        let fact = ForgetTarget::Fact { entity: "Plan".into(), text: "Buy the zeppelin".into() };
        assert_eq!(memory.forget(other.clone(), fact, Removal::Erased).await.unwrap(), 0);
    }
    let found = memory.query(of_tenant("south"), words("zeppelin")).await.unwrap().entities.pop().unwrap();
    assert_eq!(facts(&found), ["Buy the zeppelin", "Only for south"]);
}

/// Number of rows of each table that the hubs' role sees with these settings.
async fn visible_rows(schema: &PostgresSchema, settings: &str) -> Vec<i64> {
    let client = client(Secret::expose(&schema.options.dsn)).await;
    let path = format!("SET search_path TO {}; {settings}", schema.options.schema.as_str());
    client.batch_execute(&path).await.unwrap();
    let mut counts = Vec::new();
    for table in TABLES {
        let row = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        counts.push(row.get(0));
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_statements_without_conditions() {
    let schema = filled().await;
    let one_tenant = [1, 2, 3, 1, 2, 1];
    for tenant in ["north", "south"] {
        let seen = visible_rows(&schema, &format!("SET octoprox.tenant TO {tenant}")).await;
        assert_eq!(seen[..6], one_tenant, "{tenant}");
        assert!(seen[6] > 5);
    }
    for settings in ["", "SET octoprox.tenant TO east", "SET octoprox.tenant TO ''"] {
        assert_eq!(visible_rows(&schema, settings).await, [0; 7], "{settings}");
    }
    let all = visible_rows(&schema, "SET octoprox.all_tenants TO on").await;
    assert_eq!(all[..6], one_tenant.map(|count| 2 * count));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_for_another_tenant_are_refused() {
    let schema = filled().await;
    let client = client(Secret::expose(&schema.options.dsn)).await;
    let path = format!("SET search_path TO {}; SET octoprox.tenant TO north", schema.options.schema.as_str());
    client.batch_execute(&path).await.unwrap();
    let changed = client.execute("UPDATE memory_facts SET text = 'changed'", &[]).await.unwrap();
    assert_eq!(changed, 2, "its own");
    let refused = client.execute("UPDATE memory_facts SET tenant = 'south'", &[]).await.unwrap_err();
    assert!(refused.as_db_error().unwrap().message().contains("row-level security"), "{refused}");
    let insert = "INSERT INTO memory_kinds VALUES (1, 1, 'south', 'kind', 'kind')";
    let refused = client.execute(insert, &[]).await.unwrap_err();
    assert!(refused.as_db_error().unwrap().message().contains("row-level security"), "{refused}");
}
