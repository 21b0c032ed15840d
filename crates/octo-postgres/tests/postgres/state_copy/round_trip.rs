//! Everything is there after a copy, in both directions, and can be changed.

use super::used_state::{LATER, asker, callers, entity, fill, record_call, server, slot, view};
use super::*;
use octo_model::Secret;
use octo_ports::memory::NameMatch;
use octo_ports::transfer::StateKind;
use octo_ports::{Owner, Pin, PinDelta, PinKind, RunStatus};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_there_and_back() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let (first, second) = (temp.path().join("a"), temp.path().join("b"));
    let handles = fill(&state(&first)).await;
    let shown = view(&state(&first), &handles, "node-1").await;
    let records = sqlite_records(&first).await;

    let counts = to_postgres(&first, &schema.options).await.unwrap();
    let expected = [
        (StateKind::AuditRecords, 43),
        (StateKind::Results, 6),
        (StateKind::Pins, 6),
        (StateKind::Listings, 2),
        (StateKind::Apis, 6),
        (StateKind::Runs, 9),
        // Without that of the machine.
        (StateKind::Credentials, 7),
        (StateKind::PendingLogins, 3),
        (StateKind::Entities, 18),
        (StateKind::Observations, 27),
        (StateKind::Relations, 9),
    ];
    assert_eq!(expected.map(|(kind, _)| (kind, counts.get(kind))), expected);
    assert_same(&records, &postgres_records(&schema).await);
    assert_eq!(shown, view(&schema.stores(), &handles, "node-1").await);
    assert_eq!(schema.count("SELECT count(*) FROM leases").await, 0);

    assert_eq!(to_sqlite(&schema.options, &second).await.unwrap(), counts);
    assert_same(&records, &sqlite_records(&second).await);
    assert_eq!(shown, view(&state(&second), &handles, "node-1").await);
    // The source is as it was.
    assert_same(&records, &sqlite_records(&first).await);

    for stores in [schema.stores(), state(&second)] {
        go_on(&stores, &handles).await;
    }
    // What was written afterwards can be copied, too. Another memory has the number of the new entity.
    let third = temp.path().join("c");
    to_sqlite(&schema.options, &third).await.unwrap();
    let shown = view(&schema.stores(), &handles, "node-1").await;
    assert_eq!(shown, view(&state(&third), &handles, "node-1").await);
}

/// Hubs work with a copy as with the original.
async fn go_on(stores: &Stores, handles: &used_state::Handles) {
    let [ada, ..] = callers();
    let before = stores.audit_reader.heads().await.unwrap().remove(0);
    record_call(stores, &ada, "later").await;
    let verified = stores.audit_reader.verify(std::slice::from_ref(&before)).await.unwrap().remove(0);
    assert_eq!(verified.head.seq, before.anchor.seq + 2);

    // A new lease is newer than every fence.
    for (caller, id) in &handles.runs {
        let (run, lease) = stores.runs.lease(caller, id).await.unwrap();
        lease.status(RunStatus::Cancelled, run.outputs, None).await.unwrap();
        lease.release().await;
    }

    let jira = slot(&ada, "jira");
    let known = stores.credentials.find(&jira).await.unwrap().unwrap();
    let newest = stores.credentials.put(&jira, Secret::new("new"), Some(known.revision)).await.unwrap();
    // There were fourteen changes, and no revision is used again.
    assert_eq!(newest, 15);
    let id = "login-main-ada";
    assert!(stores.credentials.take_pending(id, LATER - 1).await.unwrap().is_some());
    assert!(stores.credentials.find_pending(&Owner::from(&ada), "linear", 0).await.unwrap().is_none());

    let more = vec![entity("Sencha", None, &["drunk today"]), entity("Matcha", None, &["powder"])];
    let done = stores.memory.upsert(asker(&ada), more, NameMatch::Exact).await.unwrap();
    assert_eq!(done.iter().map(|one| (one.created, one.added)).collect::<Vec<_>>(), [(false, 1), (true, 1)]);

    let instructions = Pin {
        kind: PinKind::Instructions,
        key: String::new(),
        text: octo_model::Json::text("x"),
        hash: "#x".to_owned(),
    };
    let news = PinDelta { new_pins: vec![instructions], ..PinDelta::default() };
    stores.pins.write(&server("notion"), news).await.unwrap();
    assert_eq!(stores.pins.load(&server("notion")).await.unwrap().pins.len(), 4);
}

/// Results are copied whether they have expired or not, and secrets of the machine stay where they are.
#[tokio::test(flavor = "multi_thread")]
async fn expired_results_are_copied_and_secrets_of_the_machine_stay() {
    let (temp, schema) = (tempfile::tempdir().unwrap(), PostgresSchema::new().await);
    let (first, second) = (temp.path().join("a"), temp.path().join("b"));
    let handles = fill(&state(&first)).await;
    to_postgres(&first, &schema.options).await.unwrap();
    let of_machine = Slot::new(Owner::Shared, "secret:KEY", "octoprox");
    assert!(schema.stores().credentials.find(&of_machine).await.unwrap().is_none());

    schema.run(&format!("UPDATE results SET created = 1 WHERE handle = '{}'", handles.results[0].1)).await;
    let other = Slot::new(Owner::Shared, "secret:OTHER", "octoprox");
    state(&second).credentials.put(&other, Secret::new("of the other machine"), None).await.unwrap();
    std::fs::write(second.join("servers.lock"), "kept").unwrap();
    let records = postgres_records(&schema).await;
    to_sqlite(&schema.options, &second).await.unwrap();
    assert_same(&records, &sqlite_records(&second).await);
    let stores = state(&second);
    let found = stores.credentials.find(&other).await.unwrap().unwrap();
    assert_eq!(found.secret.expose(), "of the other machine");
    assert!(stores.credentials.find(&slot(&callers()[0], "jira")).await.unwrap().is_some());
    assert_eq!(std::fs::read_to_string(second.join("servers.lock")).unwrap(), "kept");
    assert!(stores.results.load(&handles.results[0].0, &handles.results[0].1).await.is_err());
    assert!(stores.results.load(&handles.results[1].0, &handles.results[1].1).await.is_ok());
}
