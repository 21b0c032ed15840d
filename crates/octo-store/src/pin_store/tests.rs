use super::*;
use octo_hub::ItemKind;
use octo_model::Json;

fn pins(dir: &Path) -> SqlitePinStore {
    SqlitePinStore::new(dir, Durability::Flush)
}

fn whose(server: &str, identity: &str, others: &[&str]) -> ServerIdentity {
    let others = others.iter().map(|name| (*name).to_owned()).collect();
    ServerIdentity { server: server.to_owned(), identity: identity.to_owned(), others }
}

fn pin(key: &str, text: &str) -> Pin {
    Pin { kind: ItemKind::Tool, key: key.to_owned(), text: Json::text(text), hash: format!("#{text}") }
}

fn first(pins: Vec<Pin>) -> PinDelta {
    PinDelta { new_pins: pins, ..PinDelta::default() }
}

fn held(pins: Vec<Pin>) -> PinDelta {
    PinDelta { held: pins, ..PinDelta::default() }
}

#[tokio::test]
async fn pins_outlive_the_process_and_the_first_one_stays() {
    let temp = tempfile::tempdir().unwrap();
    let notion = whose("notion", "i", &[]);
    assert!(pins(temp.path()).load(&notion).await.unwrap().pins.is_empty());
    let kept = pins(temp.path()).write(&notion, first(vec![pin("a", "1")])).await.unwrap();
    assert_eq!(kept, PinWrite::Written(Vec::new()));
    let again = pins(temp.path());
    assert_eq!(again.load(&notion).await.unwrap().pins, [pin("a", "1")]);
    // Another process saw something else at the same time, and was later.
    assert_eq!(
        again.write(&notion, first(vec![pin("b", "1"), pin("a", "2")])).await.unwrap(),
        PinWrite::Conflict
    );
    assert_eq!(again.load(&notion).await.unwrap().pins, [pin("a", "1")]);
    assert_eq!(
        again.write(&notion, first(vec![pin("a", "1")])).await.unwrap(),
        PinWrite::Written(Vec::new())
    );
    let replaced =
        |old: &str| PinDelta { replaced: vec![(pin("a", "3"), old.to_owned())], ..PinDelta::default() };
    assert_eq!(again.write(&notion, replaced("#2")).await.unwrap(), PinWrite::Conflict);
    assert_eq!(again.write(&notion, replaced("#1")).await.unwrap(), PinWrite::Written(Vec::new()));
    assert_eq!(again.load(&notion).await.unwrap().pins, [pin("a", "3")]);
}

#[tokio::test]
async fn what_is_held_is_reported_once_and_accepted_as_it_was_seen() {
    let temp = tempfile::tempdir().unwrap();
    let (notion, pins) = (whose("notion", "i", &[]), pins(temp.path()));
    pins.write(&notion, first(vec![pin("a", "1")])).await.unwrap();
    for round in 0..4 {
        let fresh = pins.write(&notion, held(vec![pin("a", "2")])).await.unwrap();
        assert_eq!(fresh, PinWrite::Written(if round == 0 { vec![pin("a", "2")] } else { Vec::new() }));
        let waiting = pins.pending("notion").await.unwrap();
        assert_eq!(waiting.len(), 1);
        assert_eq!((&waiting[0].new, waiting[0].pinned.as_ref()), (&pin("a", "2"), Some(&pin("a", "1"))));
        // Back to the pinned one: nothing waits any more.
        pins.write(&notion, PinDelta::default()).await.unwrap();
        assert_eq!(pins.pending("notion").await.unwrap(), []);
    }
    pins.load(&notion).await.unwrap();
    let before = pins.revision("notion").await.unwrap();
    assert_eq!(pins.accept("notion", vec![pin("a", "2")]).await.unwrap(), 0, "it does not wait now");
    pins.write(&notion, held(vec![pin("a", "2"), pin("n", "1")])).await.unwrap();
    assert_eq!(pins.accept("notion", vec![pin("a", "other"), pin("a", "2")]).await.unwrap(), 1);
    assert_eq!(pins.load(&notion).await.unwrap().pins, [pin("a", "2")]);
    assert_eq!(pins.pending("notion").await.unwrap().len(), 1, "the other still waits");
    assert_eq!(pins.revision("notion").await.unwrap(), before + 2);
}

#[tokio::test]
async fn pins_follow_a_server_that_is_renamed() {
    let temp = tempfile::tempdir().unwrap();
    let pins = pins(temp.path());
    let (old, new) = (whose("notion", "same", &[]), whose("notes", "same", &[]));
    pins.load(&old).await.unwrap();
    pins.write(&old, first(vec![pin("a", "1")])).await.unwrap();
    pins.write(&old, held(vec![pin("a", "2")])).await.unwrap();
    assert_eq!(pins.load(&new).await.unwrap().pins, [pin("a", "1")]);
    assert_eq!(pins.pending("notes").await.unwrap().len(), 1);
    assert!(pins.load(&whose("third", "another", &[])).await.unwrap().pins.is_empty());
    // A name that keeps its pins keeps them when what is behind it changes.
    assert_eq!(pins.load(&whose("notion", "another", &[])).await.unwrap().pins, [pin("a", "1")]);
}

#[tokio::test]
async fn addresses_that_others_had_first_are_known() {
    let temp = tempfile::tempdir().unwrap();
    let pins = pins(temp.path());
    let page = Pin { kind: ItemKind::Resource, ..pin("x://page", "1") };
    pins.write(&whose("notion", "i", &[]), first(vec![page, pin("tool", "1")])).await.unwrap();
    let taken = pins.load(&whose("evil", "j", &["notion"])).await.unwrap().uris_of_others;
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), ["x://page"]);
    // Servers that are no longer in the settings own nothing.
    assert!(pins.load(&whose("evil", "j", &[])).await.unwrap().uris_of_others.is_empty());
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
