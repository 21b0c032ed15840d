//! In-memory pins.

use super::ready;
use crate::{
    ChangeNotifier, Changes, PendingPin, Pin, PinDelta, PinKind, PinSet, PinWrite, Pins, ServerIdentity,
    StoreResult,
};
use octo_model::{BoxFuture, ItemKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct InMemoryPins {
    servers: Mutex<HashMap<String, ServerPins>>,
    notifier: ChangeNotifier,
}

#[derive(Default, Clone)]
struct ServerPins {
    identity: String,
    pins: BTreeMap<(PinKind, String), Pin>,
    pending: BTreeMap<(PinKind, String), Pin>,
    seen: HashSet<(PinKind, String, String)>,
    revision: u64,
}

fn pin_key(pin: &Pin) -> (PinKind, String) {
    (pin.kind, pin.key.clone())
}

impl InMemoryPins {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, ServerPins>) -> T) -> T {
        work(&mut self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_change<T>(&self, work: impl FnOnce(&mut HashMap<String, ServerPins>) -> T) -> T {
        let done = self.with(work);
        self.notifier.notify();
        done
    }
}

fn load(all: &mut HashMap<String, ServerPins>, whose: &ServerIdentity) -> PinSet {
    let unknown = all.get(&whose.server).is_none_or(|known| known.pins.is_empty());
    let is_same = |name: &String, known: &ServerPins| {
        known.identity == whose.identity && !known.pins.is_empty() && !whose.others.contains(name)
    };
    let same = all.iter().find(|(name, known)| is_same(name, known)).map(|(_, known)| known);
    if let (true, Some(same)) = (unknown && !whose.identity.is_empty(), same) {
        let copy = same.clone();
        all.insert(whose.server.clone(), copy);
    }
    let known = all.entry(whose.server.clone()).or_default();
    known.identity.clone_from(&whose.identity);
    let (pins, revision) = (known.pins.values().cloned().collect(), known.revision);
    let others = whose.others.iter().filter_map(|other| all.get(other));
    let theirs = others.flat_map(|known| known.pins.keys());
    let taken =
        theirs.filter(|(what, _)| matches!(what, PinKind::Item(ItemKind::Resource | ItemKind::Template)));
    PinSet { pins, uris_of_others: taken.map(|(_, key)| key.clone()).collect(), revision }
}

fn write(known: &mut ServerPins, news: PinDelta) -> PinWrite {
    let hash = |pin: &Pin| known.pins.get(&pin_key(pin)).map(|pin| pin.hash.as_str());
    let overtaken = news.new_pins.iter().any(|pin| hash(pin).is_some_and(|hash| hash != pin.hash))
        || news.replaced.iter().any(|(pin, old)| ![Some(old.as_str()), Some(&pin.hash)].contains(&hash(pin)));
    if overtaken {
        return PinWrite::Conflict;
    }
    let fresh = news.held.iter().chain(&news.reported);
    let fresh: Vec<Pin> = fresh
        .filter(|pin| known.seen.insert((pin.kind, pin.key.clone(), pin.hash.clone())))
        .cloned()
        .collect();
    known.pending = news.held.into_iter().map(|pin| (pin_key(&pin), pin)).collect();
    let taken = news.new_pins.into_iter().chain(news.replaced.into_iter().map(|(pin, _)| pin));
    known.pins.extend(taken.map(|pin| (pin_key(&pin), pin)));
    PinWrite::Written(fresh)
}

fn accept(known: &mut ServerPins, chosen: Vec<Pin>) -> usize {
    let mut count = 0;
    for pin in chosen {
        let waits = known.pending.get(&pin_key(&pin)).is_some_and(|waiting| waiting.hash == pin.hash);
        if waits && let Some(pin) = known.pending.remove(&pin_key(&pin)) {
            known.pins.insert(pin_key(&pin), pin);
            count += 1;
        }
    }
    known.revision += 1;
    count
}

impl Pins for InMemoryPins {
    fn changes(&self) -> Changes {
        self.notifier.subscribe()
    }

    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, StoreResult<PinSet>> {
        ready(Ok(self.with_change(|all| load(all, whose))))
    }

    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, StoreResult<PinWrite>> {
        ready(Ok(self.with_change(|all| write(all.entry(whose.server.clone()).or_default(), news))))
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<u64>> {
        ready(Ok(self.with(|all| all.get(server).map_or(0, |known| known.revision))))
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<Vec<PendingPin>>> {
        let of = |known: &ServerPins| {
            let one = |pin: &Pin| PendingPin {
                new: pin.clone(),
                pinned: known.pins.get(&pin_key(pin)).cloned(),
                since: 0,
            };
            known.pending.values().map(one).collect()
        };
        ready(Ok(self.with(|all| all.get(server).map(of).unwrap_or_default())))
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, StoreResult<usize>> {
        ready(Ok(self.with_change(|all| accept(all.entry(server.to_owned()).or_default(), chosen))))
    }
}
