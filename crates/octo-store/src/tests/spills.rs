//! Large results come back whole to whoever caused them, and to nobody else.

use crate::{Options, Store};
use octo_hub::Spills;
use octo_model::{CallId, Caller, Json, Kind, ToolError};
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

/// A string of so many bytes, as JSON.
fn whole(size: usize) -> Json {
    Json::text(&"x".repeat(size - 2))
}

async fn keep(store: &Store, whole: Json) -> Result<String, ToolError> {
    store.keep(&ada(), CallId::fresh(), whole).await
}

fn files(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir.join("spills")).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_spill_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let text = Json::parse(r#"{"a": [1,  2.0, "ü"]}"#).unwrap();
    let handle = keep(&store, text.clone()).await.unwrap();
    assert_eq!(store.load(&ada(), &handle).await.unwrap(), text);
    drop(store);
    assert_eq!(open(dir.path(), |_| ()).load(&ada(), &handle).await.unwrap(), text);
    assert_eq!(files(dir.path()), [handle.as_str()]);
    let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("spills"), mode(&format!("spills/{handle}"))), (0o700, 0o600));
}

#[tokio::test]
async fn foreign_unknown_and_expired_handles_are_one_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let handle = keep(&store, whole(100)).await.unwrap();
    let other_tenant = Caller { tenant: "other".to_owned(), ..ada() };
    let answers = [
        store.load(&Caller::named("bob"), &handle).await,
        store.load(&other_tenant, &handle).await,
        store.load(&ada(), "r_aaaaaaaaaaaaaaaaaaaaaaaaaa").await,
        store.load(&ada(), "../octoprox.db").await,
        store.load(&ada(), "").await,
        open(dir.path(), |options| options.spill_ttl = Duration::ZERO).load(&ada(), &handle).await,
    ];
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    let error = answers[0].clone().unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    assert!(error.hint.unwrap().contains("Run the tool again"));
}

#[tokio::test]
async fn what_is_over_is_removed_at_the_start_and_with_the_next_spill() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |options| options.spill_ttl = Duration::from_millis(50));
    let old = keep(&store, whole(100)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(store.load(&ada(), &old).await.unwrap_err().kind, Kind::NotFound);
    let new = keep(&store, whole(100)).await.unwrap();
    assert_eq!(files(dir.path()), [new]);
    drop(store);
    drop(open(dir.path(), |options| options.spill_ttl = Duration::ZERO));
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn the_oldest_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |options| options.spill_quota_bytes = 1000);
    let mut handles = Vec::new();
    for _ in 0..5 {
        handles.push(keep(&store, whole(400)).await.unwrap());
    }
    for (at, handle) in handles.iter().enumerate() {
        assert_eq!(store.load(&ada(), handle).await.is_ok(), at >= 3, "spill {at}");
    }
    assert_eq!(files(dir.path()).len(), 2);
    let filling = keep(&store, whole(1000)).await.unwrap();
    assert_eq!(files(dir.path()), [filling]);
    assert_eq!(keep(&store, whole(1001)).await.unwrap_err().kind, Kind::TooLarge);
}

#[tokio::test]
async fn a_lost_file_is_not_found_and_a_damaged_one_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    let handle = keep(&store, whole(100)).await.unwrap();
    let file = dir.path().join("spills").join(&handle);
    std::fs::write(&file, "\"half").unwrap();
    assert_eq!(store.load(&ada(), &handle).await.unwrap_err().kind, Kind::Internal);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(store.load(&ada(), &handle).await.unwrap_err().kind, Kind::NotFound);
}

#[tokio::test]
async fn a_spill_that_cannot_be_written_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), |_| ());
    std::fs::remove_dir(dir.path().join("spills")).unwrap();
    assert_eq!(keep(&store, whole(100)).await.unwrap_err().kind, Kind::Unavailable);
    let index = rusqlite::Connection::open(dir.path().join("octoprox.db")).unwrap();
    let rows: i64 = index.query_row("SELECT count(*) FROM spills", (), |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}
