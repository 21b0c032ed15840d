//! Pins that end with the process, for a hub without a store.

use crate::ports::{ItemKind, PendingPin, Pin, PinDelta, PinSet, PinWrite, Pins, ServerIdentity};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct MemoryPins(Mutex<HashMap<String, ServerPins>>);

#[derive(Default, Clone)]
struct ServerPins {
    identity: String,
    pins: BTreeMap<(ItemKind, String), Pin>,
    pending: BTreeMap<(ItemKind, String), Pin>,
    seen: HashSet<(ItemKind, String, String)>,
    revision: u64,
}

fn pin_key(pin: &Pin) -> (ItemKind, String) {
    (pin.kind, pin.key.clone())
}

impl MemoryPins {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, ServerPins>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn load(all: &mut HashMap<String, ServerPins>, whose: &ServerIdentity) -> PinSet {
    let unknown = all.get(&whose.server).is_none_or(|shelf| shelf.pins.is_empty());
    let same = all.values().find(|shelf| shelf.identity == whose.identity && !shelf.pins.is_empty());
    if let (true, Some(same)) = (unknown && !whose.identity.is_empty(), same) {
        let copy = same.clone();
        all.insert(whose.server.clone(), copy);
    }
    let shelf = all.entry(whose.server.clone()).or_default();
    shelf.identity.clone_from(&whose.identity);
    let (pins, revision) = (shelf.pins.values().cloned().collect(), shelf.revision);
    let others = whose.others.iter().filter_map(|other| all.get(other));
    let theirs = others.flat_map(|shelf| shelf.pins.keys());
    let taken = theirs.filter(|(what, _)| matches!(what, ItemKind::Resource | ItemKind::Template));
    PinSet { pins, uris_of_others: taken.map(|(_, key)| key.clone()).collect(), revision }
}

fn keep(shelf: &mut ServerPins, news: PinDelta) -> PinWrite {
    let hash = |pin: &Pin| shelf.pins.get(&pin_key(pin)).map(|pin| pin.hash.as_str());
    let overtaken = news.new_pins.iter().any(|pin| hash(pin).is_some_and(|hash| hash != pin.hash))
        || news.replaced.iter().any(|(pin, old)| hash(pin) != Some(old.as_str()));
    if overtaken {
        return PinWrite::Conflict;
    }
    let fresh = news.held.iter().chain(&news.reported);
    let fresh: Vec<Pin> = fresh
        .filter(|pin| shelf.seen.insert((pin.kind, pin.key.clone(), pin.hash.clone())))
        .cloned()
        .collect();
    shelf.pending = news.held.into_iter().map(|pin| (pin_key(&pin), pin)).collect();
    let taken = news.new_pins.into_iter().chain(news.replaced.into_iter().map(|(pin, _)| pin));
    shelf.pins.extend(taken.map(|pin| (pin_key(&pin), pin)));
    PinWrite::Written(fresh)
}

fn accept(shelf: &mut ServerPins, chosen: Vec<Pin>) -> usize {
    let mut count = 0;
    for pin in chosen {
        let waits = shelf.pending.get(&pin_key(&pin)).is_some_and(|waiting| waiting.hash == pin.hash);
        if let (true, Some(pin)) = (waits, shelf.pending.remove(&pin_key(&pin))) {
            shelf.pins.insert(pin_key(&pin), pin);
            count += 1;
        }
    }
    shelf.revision += 1;
    count
}

impl Pins for MemoryPins {
    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, Result<PinSet, ToolError>> {
        Box::pin(async move { Ok(self.with(|all| load(all, whose))) })
    }

    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, Result<PinWrite, ToolError>> {
        Box::pin(async move { Ok(self.with(|all| keep(all.entry(whose.server.clone()).or_default(), news))) })
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<u64, ToolError>> {
        Box::pin(async move { Ok(self.with(|all| all.get(server).map_or(0, |shelf| shelf.revision))) })
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<PendingPin>, ToolError>> {
        let of = |shelf: &ServerPins| {
            let one = |pin: &Pin| PendingPin {
                new: pin.clone(),
                pinned: shelf.pins.get(&pin_key(pin)).cloned(),
                since: 0,
            };
            shelf.pending.values().map(one).collect()
        };
        Box::pin(async move { Ok(self.with(|all| all.get(server).map(of).unwrap_or_default())) })
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, Result<usize, ToolError>> {
        Box::pin(
            async move { Ok(self.with(|all| accept(all.entry(server.to_owned()).or_default(), chosen))) },
        )
    }
}
