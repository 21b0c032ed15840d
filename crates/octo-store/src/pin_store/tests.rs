use super::*;
use octo_model::{ItemKind, Json};
use octo_ports::PinKind;
use octo_ports::pins::MAX_VERSIONS_PER_ITEM;
use rusqlite::Connection;

#[tokio::test]
async fn definitions_without_end_do_not_fill_the_disk() {
    let temp = tempfile::tempdir().unwrap();
    let pins = SqlitePinStore::new(temp.path(), Durability::Flush);
    let notion = ServerIdentity { server: "notion".into(), ..ServerIdentity::default() };
    for round in 0..30 {
        let text = Json::text(&round.to_string());
        let pin = Pin { kind: PinKind::Item(ItemKind::Tool), key: "a".into(), text, hash: round.to_string() };
        pins.write(&notion, PinDelta { held: vec![pin], ..PinDelta::default() }).await.unwrap();
    }
    let conn = Connection::open(temp.path().join("pins.db")).unwrap();
    let count: u16 = conn.query_row("SELECT count(*) FROM seen", (), |row| row.get(0)).unwrap();
    assert_eq!(count, MAX_VERSIONS_PER_ITEM);
}

#[tokio::test]
async fn definitions_of_an_earlier_version_shrink_and_stay_pinned() {
    let temp = tempfile::tempdir().unwrap();
    let pins = SqlitePinStore::new(temp.path(), Durability::Flush);
    let notion = ServerIdentity { server: "notion".into(), ..ServerIdentity::default() };
    let pin = |key: usize| Pin {
        kind: PinKind::Item(ItemKind::Tool),
        key: key.to_string(),
        text: Json::text(&"x".repeat(100_000)),
        hash: format!("hash {key}"),
    };
    let all: Vec<Pin> = (0..300).map(pin).collect();
    pins.write(&notion, PinDelta { new_pins: all, ..PinDelta::default() }).await.unwrap();
    let loaded = pins.load(&notion).await.unwrap().pins;
    assert_eq!(loaded.len(), 300);
    assert!(loaded.iter().any(|pin| pin.hash == "hash 299"), "still pinned");
    let bytes: usize = loaded.iter().map(|pin| pin.text.bytes().len()).sum();
    assert!((3 << 20..5 << 20).contains(&bytes), "{bytes}");
    drop(pins);
    let size = |file: &str| temp.path().join(file).metadata().map_or(0, |file| file.len());
    let size = size("pins.db") + size("pins.db-wal");
    assert!(size < 12 << 20, "{size}");
}
