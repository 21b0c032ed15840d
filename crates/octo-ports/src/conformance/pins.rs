use super::{Open, race};
use crate::pins::MAX_VERSIONS_PER_ITEM;
use crate::{Pin, PinDelta, PinKind, PinWrite, ServerIdentity, StoreResult};
use octo_model::{BoxFuture, ItemKind, Json};

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

const UNCHANGED: PinWrite = PinWrite::Written(Vec::new());

pub async fn first_one_stays(open: &Open) -> StoreResult<()> {
    let notion = whose("notion", "i", &[]);
    assert!(open().pins.load(&notion).await?.pins.is_empty());
    assert_eq!(open().pins.write(&notion, first(vec![pin("a", "1")])).await?, UNCHANGED);
    let pins = open().pins;
    assert_eq!(pins.load(&notion).await?.pins, [pin("a", "1")]);
    // Another process saw something else at the same time, and came second.
    let later = first(vec![pin("b", "1"), pin("a", "2")]);
    assert_eq!(pins.write(&notion, later).await?, PinWrite::Conflict);
    assert_eq!(pins.load(&notion).await?.pins, [pin("a", "1")], "all or nothing");
    assert_eq!(pins.write(&notion, first(vec![pin("a", "1")])).await?, UNCHANGED);
    let replaced =
        |old: &str| PinDelta { replaced: vec![(pin("a", "3"), old.to_owned())], ..PinDelta::default() };
    assert_eq!(pins.write(&notion, replaced("#2")).await?, PinWrite::Conflict);
    assert_eq!(pins.write(&notion, replaced("#1")).await?, UNCHANGED);
    assert_eq!(
        pins.write(&notion, replaced("#1")).await?,
        UNCHANGED,
        "another process has replaced it already"
    );
    assert_eq!(pins.load(&notion).await?.pins, [pin("a", "3")]);
    Ok(())
}

/// Of several processes that see a server for the first time, one pins.
pub async fn pinned_by_one(open: &Open) -> StoreResult<()> {
    let processes = [(); 8].map(|()| open().pins);
    for round in 0..10 {
        let name = format!("notion{round}");
        let notion = whose(&name, &name, &[]);
        // In half of the rounds the server is known already.
        for pins in processes.iter().filter(|_| round % 2 == 1) {
            assert!(pins.load(&notion).await?.pins.is_empty());
        }
        let writes = processes.iter().enumerate().map(|(number, pins)| -> BoxFuture<'static, _> {
            let (pins, notion, pin) = (pins.clone(), notion.clone(), pin("a", &number.to_string()));
            Box::pin(async move { pins.write(&notion, first(vec![pin])).await })
        });
        let writes: Vec<PinWrite> = race(writes).await.into_iter().collect::<StoreResult<_>>()?;
        assert_eq!(writes.iter().filter(|write| **write == UNCHANGED).count(), 1, "{writes:?}");
        let winner = writes.iter().position(|write| *write == UNCHANGED).unwrap_or_default();
        assert_eq!(open().pins.load(&notion).await?.pins, [pin("a", &winner.to_string())]);
    }
    Ok(())
}

/// A server that never stops changing a definition does not fill the log.
pub async fn reported_a_few_times(open: &Open) -> StoreResult<()> {
    let (notion, pins) = (whose("notion", "i", &[]), open().pins);
    let mut reported = 0;
    for round in 0..30 {
        let write = pins.write(&notion, held(vec![pin("a", &round.to_string())])).await?;
        reported += u16::from(write != UNCHANGED);
    }
    assert_eq!(reported, MAX_VERSIONS_PER_ITEM);
    let pending = pins.pending("notion").await?;
    assert_eq!(pending.into_iter().map(|one| one.new).collect::<Vec<_>>(), [pin("a", "29")]);
    assert_ne!(pins.write(&notion, held(vec![pin("another", "1")])).await?, UNCHANGED);
    Ok(())
}

/// A server chooses the names of its items.
pub async fn any_key(open: &Open) -> StoreResult<()> {
    let (notion, pins) = (whose("notion", "i", &[]), open().pins);
    let long: String = (0..2_000).map(|number| format!("/{number}")).collect();
    for key in ["", "a\0b", &long] {
        assert_eq!(pins.write(&notion, first(vec![pin(key, "1")])).await?, UNCHANGED);
        assert_eq!(pins.write(&notion, first(vec![pin(key, "2")])).await?, PinWrite::Conflict);
        pins.write(&notion, held(vec![pin(key, "2")])).await?;
        assert_eq!(pins.accept("notion", vec![pin(key, "2")]).await?, 1);
        assert!(pins.load(&notion).await?.pins.contains(&pin(key, "2")));
    }
    // The same item twice in one listing.
    pins.write(&notion, first(vec![pin("twice", "1"), pin("twice", "1")])).await?;
    let fresh = pins.write(&notion, held(vec![pin("twice", "2"), pin("twice", "2")])).await?;
    assert_eq!(fresh, PinWrite::Written(vec![pin("twice", "2")]));
    assert_eq!(pins.pending("notion").await?.len(), 1);
    assert_eq!(pins.accept("notion", vec![pin("twice", "2"), pin("twice", "2")]).await?, 1);
    Ok(())
}

pub async fn held_until_accepted(open: &Open) -> StoreResult<()> {
    let (notion, pins) = (whose("notion", "i", &[]), open().pins);
    pins.write(&notion, first(vec![pin("a", "1")])).await?;
    for round in 0..4 {
        let fresh = pins.write(&notion, held(vec![pin("a", "2")])).await?;
        assert_eq!(fresh, PinWrite::Written(if round == 0 { vec![pin("a", "2")] } else { Vec::new() }));
        let waiting = pins.pending("notion").await?;
        let brief: Vec<_> = waiting.iter().map(|one| (one.new.clone(), one.pinned.clone())).collect();
        assert_eq!(brief, [(pin("a", "2"), Some(pin("a", "1")))]);
        // Back to the pinned one: nothing is held any more.
        pins.write(&notion, PinDelta::default()).await?;
        assert_eq!(pins.pending("notion").await?, []);
    }
    pins.load(&notion).await?;
    let before = pins.revision("notion").await?;
    assert_eq!(pins.accept("notion", vec![pin("a", "2")]).await?, 0, "it does not wait now");
    pins.write(&notion, held(vec![pin("a", "2"), pin("n", "1")])).await?;
    assert_eq!(pins.accept("notion", vec![pin("a", "other"), pin("a", "2")]).await?, 1);
    assert_eq!(pins.load(&notion).await?.pins, [pin("a", "2")]);
    assert_eq!(pins.pending("notion").await?.len(), 1, "the other still waits");
    assert_eq!(open().pins.revision("notion").await?, before + 2);
    Ok(())
}

pub async fn follow_a_renamed_server(open: &Open) -> StoreResult<()> {
    let pins = open().pins;
    let (old, new) = (whose("notion", "same", &[]), whose("notes", "same", &[]));
    pins.load(&old).await?;
    pins.write(&old, first(vec![pin("a", "1")])).await?;
    pins.write(&old, held(vec![pin("a", "2")])).await?;
    assert_eq!(pins.load(&new).await?.pins, [pin("a", "1")]);
    assert_eq!(pins.pending("notes").await?.len(), 1);
    assert!(pins.load(&whose("third", "another", &[])).await?.pins.is_empty());
    // Two servers of one program have pins of their own.
    assert!(pins.load(&whose("second", "same", &["notion", "notes"])).await?.pins.is_empty());
    // A name keeps its pins if what is behind it changes.
    assert_eq!(pins.load(&whose("notion", "another", &[])).await?.pins, [pin("a", "1")]);
    Ok(())
}

pub async fn addresses_of_others(open: &Open) -> StoreResult<()> {
    let pins = open().pins;
    let page = Pin { kind: PinKind::Item(ItemKind::Resource), ..pin("x://page", "1") };
    pins.write(&whose("notion", "i", &[]), first(vec![page, pin("tool", "1")])).await?;
    let taken = pins.load(&whose("evil", "j", &["notion"])).await?.uris_of_others;
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), ["x://page"]);
    // Servers that are no longer configured own nothing.
    assert!(pins.load(&whose("evil", "j", &[])).await?.uris_of_others.is_empty());
    Ok(())
}
