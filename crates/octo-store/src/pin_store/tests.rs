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
