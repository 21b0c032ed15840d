//! Pins: known definitions of upstream servers.

use crate::{Changes, StoreResult};
use octo_model::{BoxFuture, ItemKind, Json};
use std::collections::HashSet;

/// Maximum versions remembered per item; beyond that, new versions are no longer reported.
pub const MAX_VERSIONS_PER_ITEM: u16 = 8;
/// Maximum definitions remembered per server that are not held.
pub const MAX_SEEN_DEFINITIONS: u16 = 20_000;

/// Maximum bytes of a definition; what is larger is neither listed nor pinned.
pub const MAX_DEFINITION_BYTES: usize = 256 << 10;
/// Maximum bytes of the pinned definitions of a server.
pub const MAX_PINNED_BYTES: usize = 4 << 20;
/// Maximum bytes of the definitions of a server that wait for a decision.
pub const MAX_HELD_BYTES: usize = 2 << 20;

/// What a pin is of: an item, the instructions of a server, its installed package, or the HTML of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PinKind {
    Item(ItemKind),
    Instructions,
    Package,
    App,
}

impl PinKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Item(kind) => kind.as_str(),
            Self::Instructions => "instructions",
            Self::Package => "package",
            Self::App => "app",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        let items = ItemKind::ALL.into_iter().map(Self::Item);
        items.chain([Self::Instructions, Self::Package, Self::App]).find(|kind| kind.as_str() == word)
    }
}

/// A definition as a server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub kind: PinKind,
    /// Name, URI or URI template; empty for instructions.
    pub key: String,
    /// The whole definition, for display and comparison.
    pub text: Json,
    /// SHA-256 of its canonical form, in hexadecimal.
    pub hash: String,
}

impl Pin {
    /// From what a backend stored; `None` for what a later version has written.
    pub fn from_stored(kind: &str, key: String, hash: String, text: String) -> Option<Self> {
        let (kind, text) = PinKind::parse(kind).zip(Json::parse(text).ok())?;
        Some(Self { kind, key, text, hash })
    }
}

/// Identity of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name in the settings.
    pub server: String,
    /// A digest of what is behind the name, so that pins follow a renamed server.
    pub identity: String,
    /// Names of all other configured servers.
    pub others: Vec<String>,
}

/// What is stored about a server.
#[derive(Debug, Clone, Default)]
pub struct PinSet {
    pub pins: Vec<Pin>,
    /// URIs and templates that other configured servers listed first.
    pub uris_of_others: HashSet<String>,
    /// Increases with every decision of a person.
    pub revision: u64,
}

/// Changes to the pins after a new listing.
#[derive(Debug, Clone, Default)]
pub struct PinDelta {
    /// Seen for the first time and pinned.
    pub new_pins: Vec<Pin>,
    /// Replaces the pin with this hash.
    pub replaced: Vec<(Pin, String)>,
    /// Held; anything else of the server is no longer held.
    pub held: Vec<Pin>,
    /// Pinned and reported.
    pub reported: Vec<Pin>,
}

impl PinDelta {
    pub fn is_empty(&self) -> bool {
        self.new_pins.is_empty()
            && self.replaced.is_empty()
            && self.held.is_empty()
            && self.reported.is_empty()
    }

    /// Whether another process has pinned something else meanwhile. `hash_of` looks up the stored pin with the
    /// same kind and key.
    pub fn is_overtaken<E>(
        &self,
        mut hash_of: impl FnMut(&Pin) -> Result<Option<String>, E>,
    ) -> Result<bool, E> {
        for pin in &self.new_pins {
            if hash_of(pin)?.is_some_and(|hash| hash != pin.hash) {
                return Ok(true);
            }
        }
        for (pin, old) in &self.replaced {
            if hash_of(pin)?.is_none_or(|hash| hash != *old && hash != pin.hash) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What becomes pinned.
    pub fn pinned(&self) -> impl Iterator<Item = &Pin> {
        self.new_pins.iter().chain(self.replaced.iter().map(|(pin, _)| pin))
    }

    /// Definitions that are remembered without being pinned, and whether they are held.
    pub fn seen(&self) -> impl Iterator<Item = (&Pin, bool)> {
        let held = self.held.iter().map(|pin| (pin, true));
        held.chain(self.reported.iter().map(|pin| (pin, false)))
    }
}

/// Result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinWrite {
    /// Written; these of the held and reported definitions were never seen before.
    Written(Vec<Pin>),
    /// Another process has pinned something else meanwhile, and nothing was written: review again.
    Conflict,
}

/// A definition that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPin {
    pub new: Pin,
    /// The definition in use meanwhile, if any.
    pub pinned: Option<Pin>,
    /// When it was first seen, in microseconds since 1970.
    pub since: i64,
}

/// Definitions of servers: pinned ones and those that wait for a decision. May be shared by several
/// processes.
pub trait Pins: Send + Sync {
    fn changes(&self) -> Changes;

    /// Loads the pins. A name without pins takes over those of the same identity under a name that is not configured any more.
    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, StoreResult<PinSet>>;

    /// Writes all changes, or none.
    fn write<'a>(&'a self, whose: &'a ServerIdentity, news: PinDelta)
    -> BoxFuture<'a, StoreResult<PinWrite>>;

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<u64>>;

    /// Definitions that wait for a decision, in a stable order.
    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<Vec<PendingPin>>>;

    /// Accepts exactly these definitions; returns how many of them were still waiting.
    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, StoreResult<usize>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_words_are_read_as_they_were_written() {
        let words = ["tool", "prompt", "resource", "template", "instructions", "package", "app"];
        assert_eq!(words.map(|word| PinKind::parse(word).map(PinKind::as_str)), words.map(Some));
        assert_eq!(PinKind::parse("tools"), None);
    }
}
