//! What of a listing is shown, what is held, and what is to be remembered of it.

use super::{Difference, NewItems, Severity, Stance, TrustSettings, found, pin, wash, worst};
use crate::ports::{PinDelta, Pin, PinSet, ItemKind, ServerIdentity};
use octo_model::{Effect, Json};
use octo_toolkit::{Definition, Listing};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// More definitions of one server than anybody uses; what comes after them is not shown.
const MOST: usize = 20_000;

/// What came of one listing.
pub struct Verdict {
    pub lists: Listing,
    pub news: PinDelta,
    /// What is held, and why.
    pub held: HashMap<(ItemKind, String), Vec<Difference>>,
    /// Why something passed that is worth a word.
    pub told: HashMap<(ItemKind, String), Vec<Difference>>,
}

struct Judge<'a> {
    whose: &'a ServerIdentity,
    settings: TrustSettings,
    taken: &'a HashSet<String>,
    pins: HashMap<(ItemKind, &'a str), &'a Pin>,
    /// The kinds that the server has listed before.
    known: HashSet<ItemKind>,
    news: PinDelta,
    held: HashMap<(ItemKind, String), Vec<Difference>>,
    told: HashMap<(ItemKind, String), Vec<Difference>>,
}

pub fn judge(lists: &Listing, pinned: &PinSet, whose: &ServerIdentity, settings: TrustSettings) -> Verdict {
    let mut judge = Judge {
        whose,
        settings,
        taken: &pinned.taken,
        pins: pinned.pins.iter().map(|pin| ((pin.what, pin.key.as_str()), pin)).collect(),
        known: pinned.pins.iter().map(|pin| pin.what).collect(),
        news: PinDelta::default(),
        held: HashMap::new(),
        told: HashMap::new(),
    };
    let shown = Listing {
        tools: judge.all(ItemKind::Tool, &lists.tools),
        prompts: judge.all(ItemKind::Prompt, &lists.prompts),
        resources: judge.all(ItemKind::Resource, &lists.resources),
        templates: judge.all(ItemKind::Template, &lists.templates),
        instructions: lists.instructions.as_deref().and_then(|text| judge.instructions(text)),
        ttl_ms: lists.ttl_ms,
        completes: lists.completes,
        subscribes: lists.subscribes,
    };
    Verdict { lists: shown, news: judge.news, held: judge.held, told: judge.told }
}

impl Judge<'_> {
    fn all(&mut self, what: ItemKind, definitions: &[Definition]) -> Vec<Definition> {
        definitions.iter().filter_map(|definition| self.one(what, definition)).collect()
    }

    fn one(&mut self, what: ItemKind, definition: &Definition) -> Option<Definition> {
        let text = definition.members.to_json();
        let members = self.shown(what, &definition.key, text)?.members().ok()?;
        // What a server says about its effects is believed for as little as before.
        let effect = if members == definition.members { definition.effect } else { Effect::unknown() };
        let members = wash::definition(&members);
        Some(Definition { key: definition.key.clone(), members, effect, trusted_effect: definition.trusted_effect })
    }

    fn instructions(&mut self, text: &str) -> Option<String> {
        let shown = self.shown(ItemKind::Instructions, "", Json::text(text))?.to_text()?;
        Some(octo_toolkit::hidden::cleaned(shown, &mut 0))
    }

    /// The definition to show: the new one, the pinned one, or none.
    fn shown(&mut self, what: ItemKind, key: &str, text: Json) -> Option<Json> {
        let value: Value = text.to().ok()?;
        let new = pin(what, key, &value, text.clone());
        let old = self.pins.get(&(what, key)).copied();
        if old.is_some_and(|old| old.hash == new.hash) {
            return Some(text);
        }
        let before = old.and_then(|old| old.text.to::<Value>().ok());
        let mut found = found(self.whose, what, key, before.as_ref(), &value);
        if old.is_none() {
            found.extend(self.unwanted(what, key));
        }
        let worst = worst(&found);
        let hold = found.iter().any(|one| one.firm)
            || (worst > Severity::Harmless && self.settings.changes == Stance::Hold);
        if hold {
            self.held.insert((what, key.to_owned()), found);
            self.news.held.push(new);
            return old.map(|old| old.text.clone());
        }
        if worst > Severity::Harmless && self.settings.changes == Stance::Warn {
            self.told.insert((what, key.to_owned()), found);
            self.news.told.push(new.clone());
        }
        match old {
            Some(old) => self.news.again.push((new, old.hash.clone())),
            None => self.news.first.push(new),
        }
        Some(text)
    }

    /// Why something that was never seen before is not taken on.
    fn unwanted(&self, what: ItemKind, key: &str) -> Option<Difference> {
        let full = self.pins.len() + self.news.first.len() >= MOST;
        let why = if full {
            "is one too many"
        } else if matches!(what, ItemKind::Resource | ItemKind::Template) && self.taken.contains(key) {
            "has an address that another server had first"
        } else if self.settings.new == NewItems::Hold
            && matches!(what, ItemKind::Tool | ItemKind::Prompt)
            && self.known.contains(&what)
        {
            "was not there before"
        } else {
            return None;
        };
        let (severity, at) = (Severity::Serious, "name".to_owned());
        Some(Difference { severity, at, what: why.to_owned(), before: None, after: None, firm: true })
    }
}
