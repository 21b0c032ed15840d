//! In-memory pins.

use super::ready;
use crate::pins::MAX_VERSIONS_PER_ITEM;
use crate::{
    ChangeNotifier, Changes, PendingPin, Pin, PinDelta, PinKind, PinSet, PinWrite, Pins, ServerIdentity,
    StoreResult,
};
use octo_model::{BoxFuture, ItemKind};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
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
    /// Hashes of the versions of each item, oldest first.
    seen: HashMap<(PinKind, String), VecDeque<String>>,
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
    let hash = |pin: &Pin| known.pins.get(&pin_key(pin)).map(|pin| pin.hash.clone());
    let Ok(is_overtaken) = news.is_overtaken(|pin| Ok::<_, Infallible>(hash(pin)));
    if is_overtaken {
        return PinWrite::Conflict;
    }
    known.pins.extend(news.pinned().map(|pin| (pin_key(pin), pin.clone())));
    let fresh = news.seen().map(|(pin, _)| pin).filter(|pin| record_seen(&mut known.seen, pin));
    let fresh = fresh.cloned().collect();
    known.pending = news.held.into_iter().map(|pin| (pin_key(&pin), pin)).collect();
    PinWrite::Written(fresh)
}

/// Returns whether the definition should be reported.
fn record_seen(seen: &mut HashMap<(PinKind, String), VecDeque<String>>, pin: &Pin) -> bool {
    let versions = seen.entry(pin_key(pin)).or_default();
    if versions.contains(&pin.hash) {
        return false;
    }
    let is_full = versions.len() >= usize::from(MAX_VERSIONS_PER_ITEM);
    if is_full {
        versions.pop_front();
    }
    versions.push_back(pin.hash.clone());
    !is_full
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
