//! What the tables contain: sealed secrets, rows that a tenant does not see, and no more than the limits.

use crate::postgres_schema::{PostgresSchema, client};
use octo_model::{Caller, ItemKind, Json, Secret, hex};
use octo_ports::apis::StoredApi;
use octo_ports::credentials::MAX_CREDENTIALS_PER_OWNER;
use octo_ports::pins::{MAX_SEEN_DEFINITIONS, MAX_VERSIONS_PER_ITEM};
use octo_ports::{
    Limit, Owner, PendingLogin, Pin, PinDelta, PinKind, PinWrite, Port, ServerIdentity, Slot, StoreError,
    Stores,
};
use octo_postgres::{PostgresError, PostgresOptions, postgres};
use std::time::{Duration, Instant};

const CANARY: &str = "c4nary-t0ken";
const FIRST: &str = "a secret of the operator, for tests";
const SECOND: &str = "the next secret of the operator";
const TABLES: [&str; 3] = ["credentials", "pending_logins", "apis"];

fn slot(subject: &str) -> Slot {
    Slot::new(Owner::from(&Caller::named(subject)), "notion", "https://auth.example")
}

fn login(id: &str) -> PendingLogin {
    PendingLogin {
        id: id.into(),
        owner: slot("ada").owner,
        server: "notion".into(),
        expires: 100,
        secret: Secret::new(CANARY),
    }
}

fn api() -> StoredApi {
    StoredApi {
        name: "x".into(),
        revision: "1".into(),
        settings: "{}".into(),
        secret: Some(Secret::new(CANARY)),
    }
}

async fn put_secrets(stores: &Stores) {
    stores.credentials.put(&slot("ada"), Secret::new(CANARY), None).await.unwrap();
    let shared = Slot { owner: Owner::Shared, ..slot("") };
    stores.credentials.put(&shared, Secret::new(CANARY), None).await.unwrap();
    stores.credentials.put_pending(login("id"), 0).await.unwrap();
    stores.apis.put(&Caller::named("ada"), api(), "the document".into()).await.unwrap();
}

fn with_secrets(schema: &PostgresSchema, secret: &str, previous: &[&str]) -> Stores {
    let previous_secrets = previous.iter().copied().map(Secret::new).collect();
    let options = PostgresOptions { secret: Secret::new(secret), previous_secrets, ..schema.options.clone() };
    postgres(&options).unwrap()
}

/// All rows of all tables as text, as the superuser sees them.
async fn dump(schema: &PostgresSchema) -> Vec<String> {
    let (admin, name) = (client(&schema.admin).await, schema.options.schema.as_str());
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1";
    let mut all = Vec::new();
    for table in admin.query(tables, &[&name]).await.unwrap() {
        let rows = format!("SELECT t::text FROM {name}.{} t", table.get::<_, &str>(0));
        all.extend(admin.query(&rows, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
    }
    all
}

async fn count(schema: &PostgresSchema, table: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {}.{table}", schema.options.schema.as_str());
    client(&schema.admin).await.query_one(&count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn secrets_are_nowhere_in_clear() {
    let schema = PostgresSchema::new().await;
    put_secrets(&schema.stores()).await;
    let rows = dump(&schema).await;
    assert!(rows.iter().any(|row| row.contains("notion")), "{rows:?}");
    for row in rows {
        assert!(!row.contains(CANARY) && !row.contains(&hex(CANARY.as_bytes())), "{row}");
        assert!(!row.contains(FIRST) && !row.contains(&hex(FIRST.as_bytes())), "{row}");
    }
}

#[tokio::test]
async fn another_tenant_sees_no_row_without_any_filter() {
    let schema = PostgresSchema::new().await;
    put_secrets(&schema.stores()).await;
    let role = client(schema.options.dsn.expose()).await;
    let as_tenant = async |tenant: &str, sql: &str| {
        let setting = format!(
            "BEGIN; SET LOCAL search_path TO {}; SET LOCAL octoprox.tenant TO '{tenant}'",
            schema.options.schema.as_str()
        );
        role.batch_execute(&setting).await.unwrap();
        let changed = role.execute(sql, &[]).await;
        role.batch_execute("ROLLBACK").await.unwrap();
        changed
    };
    for table in TABLES {
        let select = format!("SELECT FROM {table}");
        for (tenant, seen) in [("default", 1), ("other", 0), ("", 0)] {
            assert_eq!(as_tenant(tenant, &select).await.unwrap(), seen, "{table} {tenant}");
        }
        assert_eq!(as_tenant("other", &format!("DELETE FROM {table}")).await.unwrap(), 0);
        assert_eq!(as_tenant("other", &format!("UPDATE {table} SET subject = 'eve'")).await.unwrap(), 0);
        let moved = as_tenant("default", &format!("UPDATE {table} SET tenant = 'other'")).await.unwrap_err();
        assert!(moved.as_db_error().unwrap().message().contains("row-level security"), "{moved:?}");
    }
    // Ada's and the shared one.
    assert_eq!(count(&schema, "credentials").await, 2);
}

#[tokio::test]
async fn a_row_that_was_moved_changed_removed_or_put_back_is_noticed() {
    let schema = PostgresSchema::new().await;
    let (stores, ada, bob) = (schema.stores(), slot("ada"), slot("bob"));
    let credentials = &stores.credentials;
    let first = credentials.put(&ada, Secret::new("one"), None).await.unwrap();
    credentials.put(&bob, Secret::new("b"), None).await.unwrap();
    schema.run("CREATE TABLE old AS SELECT * FROM credentials").await;
    credentials.put(&ada, Secret::new("two"), Some(first)).await.unwrap();
    schema.run("CREATE TABLE new AS SELECT * FROM credentials").await;
    let restore = async |values: &str, from: &str| {
        schema
            .run(&format!("UPDATE credentials SET {values} FROM {from} WHERE credentials.subject = 'ada'"))
            .await;
    };
    let noticed = async |what: &str| {
        let error = credentials.find(&ada).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { port: Port::Credentials, .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("Log in"), "{error}");
        assert!(credentials.all(&ada.owner, "notion").await.is_err(), "{what}");
    };
    let put_back = "revision = o.revision, secret = o.secret";
    restore(put_back, "(SELECT * FROM old WHERE subject = 'ada') o").await;
    noticed("put back").await;
    restore(put_back, "(SELECT * FROM new WHERE subject = 'ada') o").await;
    assert_eq!(credentials.find(&ada).await.unwrap().unwrap().secret.expose(), "two");
    restore("secret = o.secret", "(SELECT * FROM old WHERE subject = 'ada') o").await;
    noticed("an old secret under the new revision").await;
    restore("secret = o.secret", "(SELECT * FROM new WHERE subject = 'bob') o").await;
    noticed("another caller's secret").await;
    restore(
        "secret = set_byte(o.secret, 20, 255 - get_byte(o.secret, 20))",
        "(SELECT * FROM new WHERE subject = 'ada') o",
    )
    .await;
    noticed("changed").await;
    schema.run("DELETE FROM credentials WHERE subject = 'ada'").await;
    let error = credentials.find(&ada).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(credentials.find(&bob).await.unwrap().unwrap().secret.expose(), "b", "others go on");
    credentials.put(&ada, Secret::new("three"), None).await.unwrap();
    assert_eq!(credentials.find(&ada).await.unwrap().unwrap().secret.expose(), "three");
}

#[tokio::test]
async fn what_was_forgotten_cannot_be_put_back() {
    let schema = PostgresSchema::new().await;
    let (stores, ada) = (schema.stores(), slot("ada"));
    stores.credentials.put(&ada, Secret::new("one"), None).await.unwrap();
    schema
        .run("CREATE TABLE old AS SELECT kind, tenant, subject, server, issuer, revision, secret FROM credentials;
              CREATE TABLE old_revisions AS SELECT revision, sealed FROM credential_revisions")
        .await;
    stores.credentials.remove(&ada).await.unwrap();
    schema
        .run("INSERT INTO credentials (kind, tenant, subject, server, issuer, revision, secret) SELECT * FROM old")
        .await;
    assert!(matches!(stores.credentials.find(&ada).await, Err(StoreError::Corrupt { .. })));
    // With the list of that time, too: this process has seen a newer one.
    schema
        .run(
            "UPDATE credential_revisions r SET revision = o.revision, sealed = o.sealed FROM old_revisions o",
        )
        .await;
    assert!(matches!(stores.credentials.find(&ada).await, Err(StoreError::Corrupt { .. })));
    assert!(stores.credentials.put(&ada, Secret::new("x"), None).await.is_err());
    // Without the list, for every process.
    schema.run("DELETE FROM credential_revisions").await;
    assert!(matches!(schema.stores().credentials.find(&ada).await, Err(StoreError::Corrupt { .. })));
}

#[tokio::test]
async fn a_pending_login_is_bound_to_whoever_began() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    stores.credentials.put_pending(login("id"), 0).await.unwrap();
    schema.run("UPDATE pending_logins SET subject = 'eve'").await;
    assert!(stores.credentials.find_pending(&slot("eve").owner, "notion", 0).await.is_err());
    assert_eq!(stores.credentials.take_pending("id", 100).await.unwrap(), None, "too late");
}

#[tokio::test]
async fn another_secret_opens_nothing_and_overwrites_nothing() {
    let schema = PostgresSchema::new().await;
    put_secrets(&schema.stores()).await;
    let before = dump(&schema).await;
    let wrong = with_secrets(&schema, SECOND, &[]);
    let mismatch = |port, name: &str| StoreError::SealMismatch { port, name: name.to_owned() };
    let refused = mismatch(Port::Credentials, "credentials");
    assert_eq!(wrong.credentials.find(&slot("ada")).await, Err(refused.clone()));
    assert_eq!(wrong.credentials.put(&slot("ada"), Secret::new("x"), None).await, Err(refused.clone()));
    assert_eq!(wrong.credentials.put_pending(login("x"), 0).await, Err(refused.clone()));
    assert_eq!(wrong.credentials.take_pending("id", 0).await, Err(refused));
    assert_eq!(wrong.apis.find(&Caller::named("ada"), "x").await, Err(mismatch(Port::Apis, "x")));
    assert_eq!(dump(&schema).await, before);
    let short = PostgresOptions { secret: Secret::new("short"), ..schema.options.clone() };
    assert!(matches!(postgres(&short), Err(PostgresError::Secret(_))));
}

#[tokio::test]
async fn a_new_secret_takes_over_and_the_old_one_opens_nothing_any_more() {
    let schema = PostgresSchema::new().await;
    let (old, ada) = (schema.stores(), Caller::named("ada"));
    put_secrets(&old).await;
    for previous in [&["an unrelated old secret", FIRST][..], &[]] {
        let new = with_secrets(&schema, SECOND, previous);
        let shared = Slot { owner: Owner::Shared, ..slot("") };
        for slot in [slot("ada"), shared] {
            assert_eq!(new.credentials.find(&slot).await.unwrap().unwrap().secret.expose(), CANARY);
        }
        let waiting = new.credentials.find_pending(&slot("ada").owner, "notion", 0).await.unwrap();
        assert_eq!(waiting, Some(login("id")));
        assert_eq!(new.apis.find(&ada, "x").await.unwrap(), Some(api()));
    }
    for old in [old, schema.stores()] {
        assert!(matches!(old.credentials.find(&slot("ada")).await, Err(StoreError::SealMismatch { .. })));
        let late = old.credentials.put(&slot("ada"), Secret::new("x"), None).await;
        assert!(matches!(late, Err(StoreError::SealMismatch { .. })), "{late:?}");
        assert!(matches!(old.apis.find(&ada, "x").await, Err(StoreError::SealMismatch { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_that_start_at_once_reseal_once() {
    let schema = PostgresSchema::new().await;
    put_secrets(&schema.stores()).await;
    let hubs = (0..8).map(|_| with_secrets(&schema, SECOND, &[FIRST]));
    let tasks: Vec<_> = hubs
        .map(|hub| tokio::spawn(async move { hub.credentials.find(&slot("ada")).await.unwrap().unwrap() }))
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().secret.expose(), CANARY);
    }
    assert_eq!(count(&schema, "credentials").await, 2);
}

#[tokio::test]
async fn a_login_that_is_taken_while_it_is_resealed_does_not_come_back() {
    let schema = PostgresSchema::new().await;
    put_secrets(&schema.stores()).await;
    let (taker, observer) = (client(&schema.admin).await, client(&schema.admin).await);
    let take = format!("BEGIN; DELETE FROM {}.pending_logins", schema.options.schema.as_str());
    taker.batch_execute(&take).await.unwrap();
    let taker_id: i32 = taker.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let new = with_secrets(&schema, SECOND, &[FIRST]);
    let credentials = new.credentials.clone();
    let resealing = tokio::spawn(async move { credentials.find(&slot("ada")).await });
    let waiting = "SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    let deadline = Instant::now() + Duration::from_secs(30);
    while observer.query(waiting, &[&taker_id]).await.unwrap().is_empty() {
        assert!(Instant::now() < deadline && !resealing.is_finished(), "the login is not resealed");
    }
    taker.batch_execute("COMMIT").await.unwrap();
    assert_eq!(resealing.await.unwrap().unwrap().unwrap().secret.expose(), CANARY);
    assert_eq!(new.credentials.take_pending("id", 0).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_that_start_at_once_make_one_list_and_all_their_changes() {
    let schema = PostgresSchema::new().await;
    let tasks: Vec<_> = (0..4)
        .map(|hub| {
            let stores = schema.stores();
            tokio::spawn(async move {
                for number in 0..5 {
                    let slot = slot(&format!("{hub}-{number}"));
                    stores.credentials.put(&slot, Secret::new(CANARY), None).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let credentials = schema.stores().credentials;
    let slots = credentials.slots().await.unwrap();
    assert_eq!(slots.len(), 20);
    for slot in &slots {
        assert_eq!(credentials.find(slot).await.unwrap().unwrap().secret.expose(), CANARY);
    }
}

#[tokio::test]
async fn credentials_and_logins_are_limited_in_number() {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    stores.credentials.put(&slot("ada"), Secret::new("one"), None).await.unwrap();
    schema
        .run(&format!(
            "INSERT INTO credentials (kind, tenant, subject, server, issuer, revision, secret)
             SELECT 'person', 'default', 'ada', 'server ' || n, '', 0, '' FROM generate_series(2, {MAX_CREDENTIALS_PER_OWNER}) n"
        ))
        .await;
    let another = Slot { server: "another".into(), ..slot("ada") };
    let refused = stores.credentials.put(&another, Secret::new("x"), None).await;
    assert_eq!(refused, Err(StoreError::Full(Limit::Credentials)));
    stores.credentials.put(&slot("ada"), Secret::new("two"), None).await.unwrap();
    stores.credentials.put(&slot("bob"), Secret::new("b"), None).await.unwrap();

    schema
        .run(
            "INSERT INTO pending_logins (id, kind, tenant, subject, server, expires, secret)
              SELECT n, 'person', 'default', n, 'notion', 100, '' FROM generate_series(1, 4096) n",
        )
        .await;
    let refused = stores.credentials.put_pending(login("id"), 0).await;
    assert_eq!(refused, Err(StoreError::Full(Limit::PendingLogins)));
    assert_eq!(count(&schema, "pending_logins").await, 4096);
    stores.credentials.put_pending(PendingLogin { expires: 200, ..login("id") }, 100).await.unwrap();
    assert_eq!(count(&schema, "pending_logins").await, 1, "expired ones are removed");
}

fn held(key: &str, hash: &str) -> PinDelta {
    let kind = PinKind::Item(ItemKind::Tool);
    let pin = Pin { kind, key: key.into(), text: Json::text(hash), hash: hash.into() };
    PinDelta { held: vec![pin], ..PinDelta::default() }
}

#[tokio::test]
async fn definitions_without_end_do_not_fill_the_disk() {
    let schema = PostgresSchema::new().await;
    let (pins, notion) =
        (schema.stores().pins, ServerIdentity { server: "notion".into(), ..ServerIdentity::default() });
    for round in 0..20 {
        pins.write(&notion, held("a", &round.to_string())).await.unwrap();
    }
    assert_eq!(count(&schema, "seen_pins").await, i64::from(MAX_VERSIONS_PER_ITEM));
    schema
        .run(&format!(
            "INSERT INTO seen_pins (server, kind, key, hash, text, is_pending)
             SELECT 'notion', 'tool', convert_to('tool ' || n, 'UTF8'), '', '{{}}', false
             FROM generate_series(1, {MAX_SEEN_DEFINITIONS}) n"
        ))
        .await;
    let fresh = pins.write(&notion, held("b", "1")).await.unwrap();
    assert!(matches!(fresh, PinWrite::Written(fresh) if fresh.len() == 1));
    assert_eq!(
        count(&schema, "seen_pins").await,
        i64::from(MAX_SEEN_DEFINITIONS) + 1,
        "and the one that waits"
    );
}
