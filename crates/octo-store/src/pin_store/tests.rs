use super::*;
use octo_model::{ItemKind, Json};
use octo_ports::PinKind;
use rusqlite::Connection;

fn pins(dir: &Path) -> SqlitePinStore {
    SqlitePinStore::new(dir, Durability::Flush)
}

fn whose(server: &str, identity: &str, others: &[&str]) -> ServerIdentity {
    let others = others.iter().map(|name| (*name).to_owned()).collect();
    ServerIdentity { server: server.to_owned(), identity: identity.to_owned(), others }
}

fn pin(key: &str, text: &str) -> Pin {
    Pin {
        kind: PinKind::Item(ItemKind::Tool),
        key: key.to_owned(),
        text: Json::text(text),
        hash: format!("#{text}"),
    }
}

fn first(pins: Vec<Pin>) -> PinDelta {
    PinDelta { new_pins: pins, ..PinDelta::default() }
}

fn held(pins: Vec<Pin>) -> PinDelta {
    PinDelta { held: pins, ..PinDelta::default() }
}

#[tokio::test]
async fn definitions_without_end_fill_neither_disk_nor_log() {
    let temp = tempfile::tempdir().unwrap();
    let (notion, pins) = (whose("notion", "i", &[]), pins(temp.path()));
    let mut reported = 0;
    for round in 0..50 {
        let fresh = pins.write(&notion, held(vec![pin("a", &round.to_string())])).await.unwrap();
        reported += usize::from(fresh != PinWrite::Written(Vec::new()));
    }
    assert_eq!(reported, 8);
    let conn = Connection::open(temp.path().join("pins.db")).unwrap();
    let count: i64 = conn.query_row("SELECT count(*) FROM seen", (), |row| row.get(0)).unwrap();
    assert_eq!(count, 8);
    assert_eq!(pins.pending("notion").await.unwrap()[0].new, pin("a", "49"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_processes_exactly_one_pins() {
    let temp = tempfile::tempdir().unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let pins = pins(temp.path());
            tokio::spawn(async move {
                pins.write(&whose("notion", "i", &[]), first(vec![pin("a", &n.to_string())])).await.unwrap()
            })
        })
        .collect();
    let mut kept = 0;
    for task in tasks {
        kept += usize::from(task.await.unwrap() != PinWrite::Conflict);
    }
    assert_eq!(kept, 1);
}
