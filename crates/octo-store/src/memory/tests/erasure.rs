//! Erased data is nowhere: not in the past, not in the index, not in the files.

use super::*;
use octo_ports::memory::{ForgetTarget, Removal};

/// A word that occurs in no other text and has no other form.
const WORD: &str = "qwxzvk";

/// Returns whether any file of the memory contains the word.
fn in_files(dir: &Path) -> bool {
    let files = std::fs::read_dir(dir).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(WORD.len()).any(|part| part == WORD.as_bytes()))
}

/// Checks the index and returns the number of rows that have the word.
fn rows(dir: &Path) -> i64 {
    let conn = rusqlite::Connection::open(dir.join("memory.db")).unwrap();
    let mut count = 0;
    for table in ["live_words", "past_words"] {
        conn.execute(&format!("INSERT INTO {table} ({table}) VALUES ('integrity-check')"), ()).unwrap();
        let sql = format!("SELECT count(*) FROM {table} WHERE {table} MATCH '\"1_{WORD}\"'");
        count += conn.query_row(&sql, (), |row| row.get::<_, i64>(0)).unwrap();
    }
    count
}

async fn filled(dir: &Path) -> SqliteMemoryStore {
    let memories = open(dir);
    let text = format!("Knows {WORD} well");
    for at in 0..50 {
        put(&memories, &format!("Other {at}"), "thing", &["Something quite ordinary"]).await;
    }
    put(&memories, "Ada", "person", &[&text, "Likes tea"]).await;
    put(&memories, "Ada", "agent", &["Drinks"]).await;
    relate(&memories, "Ada", WORD, "Other 1").await;
    assert!(in_files(dir));
    assert_eq!(rows(dir), 1);
    memories
}

#[tokio::test]
async fn one_observation_and_one_relation() {
    let dir = tempfile::tempdir().unwrap();
    let memories = filled(dir.path()).await;
    let before = moment(&memories).await;
    let fact = ForgetTarget::Fact { entity: "ada".into(), text: format!("Knows {WORD} well") };
    assert_eq!(memories.forget(ada(), fact.clone(), Removal::Erased).await.unwrap(), 1);
    assert_eq!(memories.forget(ada(), fact, Removal::Erased).await.unwrap(), 0);
    assert_eq!(
        memories
            .forget(ada(), ForgetTarget::Link(link("Ada", WORD, "Other 1")), Removal::Erased)
            .await
            .unwrap(),
        1
    );
    assert_eq!(ask(&memories, MemoryQuery { at: Some(before), ..words(WORD) }).await.total, 0);
    let ada = known(&memories, "Ada").await.unwrap();
    assert_eq!((facts(&ada), ada.fact_count), (vec!["Likes tea", "Drinks"], 2));
    drop(memories);
    assert_eq!(rows(dir.path()), 0);
    assert!(!in_files(dir.path()));
}

#[tokio::test]
async fn an_entity_with_its_past() {
    let dir = tempfile::tempdir().unwrap();
    let memories = filled(dir.path()).await;
    let before = moment(&memories).await;
    let gone = async |removal| memories.delete(ada(), vec!["Ada".to_owned()], removal).await.unwrap().len();
    assert_eq!(gone(Removal::Ended).await, 1);
    assert_eq!(gone(Removal::Ended).await, 0);
    assert_eq!(ask(&memories, MemoryQuery { at: Some(before), ..words(WORD) }).await.total, 1);
    assert_eq!(gone(Removal::Erased).await, 1);
    assert_eq!(gone(Removal::Erased).await, 0);
    assert_eq!(ask(&memories, MemoryQuery { at: Some(before), ..words(WORD) }).await.total, 0);
    drop(memories);
    assert_eq!(rows(dir.path()), 0);
    assert!(!in_files(dir.path()));
}
