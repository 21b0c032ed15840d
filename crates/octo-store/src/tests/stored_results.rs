//! Stored results are returned whole to their caller, and to no one else.

use crate::{Options, Store};
use octo_model::{CallId, Caller, Json};
use octo_ports::{AuditLog, Limit, Port, ResultStore, StoreError, StoreResult};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn open(dir: &Path, change: impl FnOnce(&mut Options)) -> Store {
    let mut options = Options::default();
    change(&mut options);
    Store::open(dir, options).unwrap()
}

fn ada() -> Caller {
    Caller::named("ada")
}

/// A JSON string of this many bytes.
fn whole(size: usize) -> Json {
    Json::text(&"x".repeat(size - 2))
}

async fn keep(store: &Store, whole: Json) -> StoreResult<String> {
    store.store(&ada(), CallId::fresh(), whole).await
}

fn files(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir.join("spills")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    files
}

/// Disk usage of a result of this size: the result and its text.
fn taken(size: u64) -> u64 {
    2 * size + 40
}

#[tokio::test]
async fn a_stored_result_is_read_back_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let text = Json::parse(r#"{"a": [1,  2.0, "ü"]}"#).unwrap();
    let handle = keep(&store, text.clone()).await.unwrap();
    assert_eq!(store.load(&ada(), &handle).await.unwrap(), text);
    drop(store);
    assert_eq!(open(dir.path(), |_| ()).load(&ada(), &handle).await.unwrap(), text);
    assert_eq!(files(dir.path()), [handle.clone(), format!("{handle}.txt")]);
    let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("spills"), mode(&format!("spills/{handle}"))), (0o700, 0o600));
}

const UNKNOWN: StoreError = StoreError::NotFound(Port::Results);

#[tokio::test]
async fn an_expired_handle_is_like_one_that_never_was() {
    let dir = tempfile::tempdir().unwrap();
    let handle = keep(&open(dir.path(), |_| ()), whole(100)).await.unwrap();
    let expired = open(dir.path(), |options| options.result_ttl = Duration::ZERO).load(&ada(), &handle).await;
    assert_eq!(expired, Err(UNKNOWN));
}

#[tokio::test]
async fn what_is_over_is_removed_at_the_start_and_with_the_next_spill() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |options| options.result_ttl = Duration::from_millis(50));
    let old = keep(&store, whole(100)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(store.load(&ada(), &old).await, Err(UNKNOWN));
    let new = keep(&store, whole(100)).await.unwrap();
    assert_eq!(files(dir.path()), [new.clone(), format!("{new}.txt")]);
    drop(store);
    drop(open(dir.path(), |options| options.result_ttl = Duration::ZERO));
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn the_oldest_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |options| options.result_quota_bytes = taken(1000));
    let mut handles = Vec::new();
    for _ in 0..5 {
        handles.push(keep(&store, whole(400)).await.unwrap());
    }
    for (at, handle) in handles.iter().enumerate() {
        assert_eq!(store.load(&ada(), handle).await.is_ok(), at >= 3, "result_handle {at}");
    }
    assert_eq!(files(dir.path()).len(), 4);
    let filling = keep(&store, whole(1000)).await.unwrap();
    assert_eq!(files(dir.path()), [filling.clone(), format!("{filling}.txt")]);
    assert_eq!(keep(&store, whole(1001)).await, Err(StoreError::Full(Limit::ResultShare)));
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn nobody_loses_results_to_somebody_who_has_more() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |options| options.result_quota_bytes = 10 * taken(400));
    let bob = Caller::named("bob");
    let small = store.store(&bob, CallId::fresh(), whole(400)).await.unwrap();
    let mut last = None;
    for _ in 0..30 {
        last = Some(keep(&store, whole(400)).await.unwrap());
    }
    assert!(store.load(&bob, &small).await.is_ok());
    assert!(store.load(&ada(), &last.unwrap()).await.is_ok());
    // Up to an equal share the newcomer gets room, then they lose their own.
    let mut mine = Vec::new();
    for _ in 0..20 {
        mine.push(store.store(&bob, CallId::fresh(), whole(400)).await.unwrap());
    }
    let kept = files(dir.path()).len() / 2;
    assert_eq!(kept, 10);
    let mut of_bob = 0;
    for handle in &mine {
        of_bob += usize::from(store.load(&bob, handle).await.is_ok());
    }
    assert_eq!(of_bob, 5);
}

#[tokio::test]
async fn the_text_is_read_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let whole = Json::parse(r#"{"structuredContent":{"a":[1,2]}}"#).unwrap();
    let handle = keep(&store, whole).await.unwrap();
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ]\n}";
    let text = dir.path().join(format!("spills/{handle}.txt"));
    for round in 0..2 {
        let mut kept = store.open_text(&ada(), &handle).await.unwrap();
        assert_eq!((kept.size.lines, kept.size.bytes), (6, pretty.len() as u64), "{round}");
        let mut all = String::new();
        kept.reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, pretty);
        kept.reader.seek(SeekFrom::Start(2)).unwrap();
        all.clear();
        kept.reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, pretty[2..]);
        assert!(store.open_text(&Caller::named("bob"), &handle).await.is_err());
        // A result of an older version has no text file.
        let _ = std::fs::remove_file(&text);
    }
}

#[tokio::test]
async fn arguments_are_recorded_with_the_key_of_their_directory() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = open(one.path(), |_| ()).fingerprint(b"1234");
    assert_eq!(open(one.path(), |_| ()).fingerprint(b"1234"), first);
    assert_ne!(open(one.path(), |_| ()).fingerprint(b"1235"), first);
    assert_ne!(open(two.path(), |_| ()).fingerprint(b"1234"), first);
    let mode = std::fs::metadata(one.path().join("audit.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_lost_file_is_not_found_and_a_damaged_one_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let handle = keep(&store, whole(100)).await.unwrap();
    let file = dir.path().join("spills").join(&handle);
    std::fs::write(&file, "\"half").unwrap();
    assert!(matches!(store.load(&ada(), &handle).await, Err(StoreError::Corrupt { .. })));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(store.load(&ada(), &handle).await, Err(UNKNOWN));
}

#[tokio::test]
async fn a_spill_that_cannot_be_written_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    std::fs::remove_dir(dir.path().join("spills")).unwrap();
    assert!(matches!(keep(&store, whole(100)).await, Err(StoreError::Unavailable { .. })));
    let index = rusqlite::Connection::open(dir.path().join("octoprox.db")).unwrap();
    let rows: i64 = index.query_row("SELECT count(*) FROM spills", (), |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}
