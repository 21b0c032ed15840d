use super::*;
use octo_model::{Caller, Secret};
use octo_ports::{Slot, StoreError};
use rusqlite::Connection;
use rusqlite::types::Value;

const CANARY: &str = "c4nary-t0ken";

fn keys(secret: Option<&str>, older: &[&str]) -> SealKeys {
    SealKeys { secret: secret.map(Secret::new), previous: older.iter().copied().map(Secret::new).collect() }
}

fn store(dir: &Path) -> CredentialStore {
    with_keys(dir, SealKeys::default())
}

fn with_keys(dir: &Path, keys: SealKeys) -> CredentialStore {
    credential_store(dir, keys)
}

fn slot(subject: &str) -> Slot {
    Slot::new(Owner::from(&Caller::named(subject)), "notion", "https://auth.example")
}

fn raw(dir: &Path) -> Connection {
    Connection::open(dir.join("credentials.db")).unwrap()
}

/// All columns of a row, to restore it later.
fn row(conn: &Connection, table: &str, subject: &str) -> Vec<Value> {
    let columns: usize = if table == "ledger" { 3 } else { 7 };
    let sql = if table == "ledger" {
        "SELECT * FROM ledger".to_owned()
    } else {
        format!("SELECT * FROM {table} WHERE subject = '{subject}'")
    };
    conn.query_row(&sql, (), |row| (0..columns).map(|at| row.get(at)).collect()).unwrap()
}

fn put_back(conn: &Connection, table: &str, values: &[Value]) {
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({marks})");
    conn.execute(&sql, rusqlite::params_from_iter(values)).unwrap();
}

#[tokio::test]
async fn a_credential_outlives_the_process_and_is_nowhere_in_clear() {
    let temp = tempfile::tempdir().unwrap();
    let ada = slot("ada");
    let revision = store(temp.path()).put(&ada, Secret::new(CANARY), None).await.unwrap();
    let again = store(temp.path());
    let kept = again.find(&ada).await.unwrap().unwrap();
    assert_eq!((kept.revision, kept.secret.expose()), (revision, CANARY));
    assert_eq!(again.all(&ada.owner, "notion").await.unwrap(), [kept]);
    assert_eq!(again.find(&slot("bob")).await.unwrap(), None);
    for file in std::fs::read_dir(temp.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
    }
    assert!(again.remove(&ada).await.unwrap());
    assert_eq!(store(temp.path()).find(&ada).await.unwrap(), None);
}

#[tokio::test]
async fn a_row_that_was_moved_changed_removed_or_put_back_is_noticed() {
    let temp = tempfile::tempdir().unwrap();
    let (ada, bob) = (slot("ada"), slot("bob"));
    let store = store(temp.path());
    let first = store.put(&ada, Secret::new("one"), None).await.unwrap();
    store.put(&bob, Secret::new("b"), None).await.unwrap();
    let conn = raw(temp.path());
    let old = row(&conn, "credentials", "ada");
    store.put(&ada, Secret::new("two"), Some(first)).await.unwrap();
    let new = row(&conn, "credentials", "ada");

    put_back(&conn, "credentials", &old);
    let error = store.find(&ada).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains("Log in"), "{error}");
    assert!(store.all(&ada.owner, "notion").await.is_err());

    // The old secret under the new revision.
    let mut mixed = new.clone();
    mixed[6] = old[6].clone();
    put_back(&conn, "credentials", &mixed);
    assert!(store.find(&ada).await.is_err());

    // Another caller's secret.
    let mut others = new.clone();
    others[6] = row(&conn, "credentials", "bob")[6].clone();
    put_back(&conn, "credentials", &others);
    assert!(store.find(&ada).await.is_err());

    let Value::Blob(whole) = &new[6] else { panic!("{new:?}") };
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        let mut changed = new.clone();
        changed[6] = Value::Blob(flipped);
        put_back(&conn, "credentials", &changed);
        assert!(store.find(&ada).await.is_err(), "{at}");
    }

    conn.execute("DELETE FROM credentials WHERE subject = 'ada'", ()).unwrap();
    assert!(store.find(&ada).await.is_err());
    assert_eq!(store.find(&bob).await.unwrap().unwrap().secret.expose(), "b", "others go on");

    store.put(&ada, Secret::new("three"), None).await.unwrap();
    assert_eq!(store.find(&ada).await.unwrap().unwrap().secret.expose(), "three", "a new login mends it");
}

#[tokio::test]
async fn what_was_forgotten_cannot_be_put_back() {
    let temp = tempfile::tempdir().unwrap();
    let (store, ada) = (store(temp.path()), slot("ada"));
    store.put(&ada, Secret::new("one"), None).await.unwrap();
    let conn = raw(temp.path());
    let (old, ledger) = (row(&conn, "credentials", "ada"), row(&conn, "ledger", ""));
    store.remove(&ada).await.unwrap();
    put_back(&conn, "credentials", &old);
    assert!(store.find(&ada).await.is_err());
    // With the list of that time, too: this process has seen a newer one.
    put_back(&conn, "ledger", &ledger);
    assert!(store.find(&ada).await.is_err());
    assert!(store.put(&ada, Secret::new("x"), None).await.is_err());
}

#[tokio::test]
async fn a_damaged_key_file_does_not_matter_to_the_operators_secret() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("seal.key"), "short").unwrap();
    for _ in 0..2 {
        let store = with_keys(temp.path(), keys(Some("the only long secret"), &[]));
        store.put(&slot("ada"), Secret::new(CANARY), None).await.unwrap();
        assert_eq!(store.find(&slot("ada")).await.unwrap().unwrap().secret.expose(), CANARY);
    }
}

#[tokio::test]
async fn another_key_opens_nothing_and_overwrites_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let ada = slot("ada");
    let (first, second) = ("the first long secret", "the second long secret");
    with_keys(temp.path(), keys(Some(first), &[])).put(&ada, Secret::new(CANARY), None).await.unwrap();
    let wrong = with_keys(temp.path(), keys(Some(second), &[]));
    let error = wrong.find(&ada).await.unwrap_err();
    assert!(matches!(error, StoreError::SealMismatch { .. }), "{error:?}");
    assert!(wrong.put(&ada, Secret::new("x"), None).await.is_err());
    let right = with_keys(temp.path(), keys(Some(first), &[]));
    assert_eq!(right.find(&ada).await.unwrap().unwrap().secret.expose(), CANARY);
    assert!(!temp.path().join("seal.key").exists());
}

#[tokio::test]
async fn a_new_key_takes_over_and_the_old_one_opens_nothing_any_more() {
    let temp = tempfile::tempdir().unwrap();
    let ada = slot("ada");
    let waiting = PendingLogin {
        id: "id".into(),
        owner: ada.owner.clone(),
        server: "notion".into(),
        expires: 100,
        secret: Secret::new("verifier"),
    };
    // From the directory's own key to the operator's, and on to the next.
    let own = store(temp.path());
    own.put(&ada, Secret::new(CANARY), None).await.unwrap();
    own.put_pending(waiting.clone(), 0).await.unwrap();
    let (first, second) = ("the first long secret", "the second long secret");
    for (present, older) in [(first, &[][..]), (second, &["an unrelated old secret", first][..])] {
        let opened = with_keys(temp.path(), keys(Some(present), older));
        assert_eq!(opened.find(&ada).await.unwrap().unwrap().secret.expose(), CANARY);
        assert_eq!(opened.find_pending(&ada.owner, "notion", 0).await.unwrap(), Some(waiting.clone()));
    }
    assert!(own.find(&ada).await.is_err());
    assert!(with_keys(temp.path(), keys(Some(first), &[])).find(&ada).await.is_err());
}

#[tokio::test]
async fn a_row_that_was_changed_stops_a_new_key() {
    let temp = tempfile::tempdir().unwrap();
    let (store, ada) = (store(temp.path()), slot("ada"));
    store.put(&ada, Secret::new("one"), None).await.unwrap();
    raw(temp.path()).execute("UPDATE credentials SET subject = 'bob'", ()).unwrap();
    let fresh = with_keys(temp.path(), keys(Some("the first long secret"), &[]));
    assert!(fresh.find(&slot("bob")).await.is_err());
    assert!(store.find(&slot("bob")).await.is_err());
}

/// Rows as every version since the first writes them, and a removed one of Bob.
const STORED_ROWS: &str = "
    INSERT INTO credentials VALUES ('shared', '', '', 'notion', 'https://auth.example', 3, x'01ef7f1461b71a1938741b95ae41aec7f03348a205375636ada195bf8187d8dcf72e04eaad2115ef');
    INSERT INTO credentials VALUES ('person', 'default', 'ada', 'notion', 'https://auth.example', 4, x'019d59421a96a120fb01571213937d18dd4b0f9266edd5c09796d874b142bda6a13ea211ab2bfaf02a');
    INSERT INTO ledger VALUES (1, 5, x'01a6d8d0b2eb9badce4e30909a424229577e6b9679008e5db2749daa39c62cb8ed17364e853e71b4b7922a0c2f92dabbfb2a753a3034e184de51c4bb7e4f58f6d680f93f7cec1bb6c0def51f38ca92550115cf27a7947748e49dd771b7362b31dca084b119e4a6fd91bbc3a339d96c21ccc26812d76ca5d66693880d0ac685ca913a4b5b53be07300145c69c6a4421f9f7d6936dcf53399787398c26992e6f81cc03');
    INSERT INTO logins VALUES ('id', 'person', 'default', 'ada', 'notion', 100, x'016f0f83b95598f09cbd370b7cd1c581a735c373a6e20278f72c0a9bcb88df641f464e84a1');
";

#[tokio::test]
async fn databases_of_earlier_versions_open() {
    let temp = tempfile::tempdir().unwrap();
    DATABASE.open(temp.path(), Durability::Fsync).unwrap().execute_batch(STORED_ROWS).unwrap();
    let store = with_keys(temp.path(), keys(Some("the first long secret"), &[]));
    let (ada, shared) = (slot("ada"), Slot { owner: Owner::Shared, ..slot("") });
    for (slot, revision, secret) in [(&ada, 4, CANARY), (&shared, 3, "everybody's")] {
        let kept = store.find(slot).await.unwrap().unwrap();
        assert_eq!((kept.revision, kept.secret.expose()), (revision, secret));
    }
    let waiting = store.find_pending(&ada.owner, "notion", 0).await.unwrap().unwrap();
    assert_eq!(waiting.secret.expose(), "verifier");
    assert_eq!(store.find(&slot("bob")).await.unwrap(), None);
    assert_eq!(store.put(&slot("bob"), Secret::new("b"), None).await.unwrap(), 6);
}
