//! Review of a listing: which definitions are shown, which are held, and which pins to store.

use super::declared_effects::with_hints;
use super::{
    ChangePolicy, DeclaredEffects, Difference, NewItems, Severity, TrustSettings, find_differences, make_pin,
    sanitize, worst_severity,
};
use crate::catalogue::scoped_uris::{is_scoped, scope_listing};
use crate::skills::skill_entry::SkillEntry;
use crate::skills::skill_prompt::skill_prompts;
use octo_model::{Effect, EffectClass, EffectOrigin, ItemKind, Json};
use octo_ports::pins::{MAX_DEFINITION_BYTES, MAX_HELD_BYTES, MAX_PINNED_BYTES};
use octo_ports::{Pin, PinDelta, PinKind, PinSet, ServerIdentity};
use octo_toolkit::{Definition, Listing};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Maximum definitions per server; any beyond are not shown.
const MAX_DEFINITIONS: usize = 20_000;
/// Maximum bytes of a definition with its name in the store.
const MAX_STORED_BYTES: usize = MAX_DEFINITION_BYTES + 10_000;

/// Result of the review of one listing.
pub struct Review {
    pub lists: Listing,
    pub news: PinDelta,
    /// Held definitions, with the reasons.
    pub held: HashMap<(PinKind, String), Vec<Difference>>,
    /// Definitions that passed but are reported, with the reasons.
    pub reported: HashMap<(PinKind, String), Vec<Difference>>,
    /// All pinned skills, also those that are not listed any more, with the server's own URIs.
    pub skills: Vec<SkillEntry>,
    /// The skills behind prompts, by the names of the prompts.
    pub skill_prompts: HashMap<String, SkillEntry>,
}

struct Reviewer<'a> {
    identity: &'a ServerIdentity,
    settings: TrustSettings,
    effects: Option<&'a DeclaredEffects>,
    taken: &'a HashSet<String>,
    pins: HashMap<(PinKind, &'a str), &'a Pin>,
    /// Kinds that the server has listed before.
    known_kinds: HashSet<PinKind>,
    /// Bytes of all pinned definitions, with the new ones.
    pinned_bytes: usize,
    /// Bytes of the definitions that wait for a decision.
    held_bytes: usize,
    news: PinDelta,
    held: HashMap<(PinKind, String), Vec<Difference>>,
    reported: HashMap<(PinKind, String), Vec<Difference>>,
}

pub fn review(
    lists: &Listing,
    pinned: &PinSet,
    whose: &ServerIdentity,
    settings: TrustSettings,
    effects: Option<&DeclaredEffects>,
) -> Review {
    let mut reviewer = Reviewer {
        identity: whose,
        settings,
        effects,
        taken: &pinned.uris_of_others,
        pins: pinned.pins.iter().map(|pin| ((pin.kind, pin.key.as_str()), pin)).collect(),
        known_kinds: pinned.pins.iter().map(|pin| pin.kind).collect(),
        pinned_bytes: pinned.pins.iter().map(stored_bytes).sum(),
        held_bytes: 0,
        news: PinDelta::default(),
        held: HashMap::new(),
        reported: HashMap::new(),
    };
    let mut shown = Listing {
        search_texts: BTreeMap::new(),
        readers: BTreeSet::new(),
        tools: reviewer.review_all(ItemKind::Tool, &lists.tools),
        prompts: reviewer.review_all(ItemKind::Prompt, &lists.prompts),
        resources: reviewer.review_all(ItemKind::Resource, &lists.resources),
        templates: reviewer.review_all(ItemKind::Template, &lists.templates),
        skills: reviewer.review_all(ItemKind::Skill, &lists.skills),
        instructions: lists.instructions.as_deref().and_then(|text| reviewer.instructions(text)),
        ttl_ms: lists.ttl_ms,
        supports_completion: lists.supports_completion,
        supports_subscribe: lists.supports_subscribe,
        approvals: lists.approvals,
        extensions: lists.extensions.clone(),
    };
    // What clients would not load is not listed. Only URIs with the name of the server cannot be those of another one.
    let mut listed = Vec::new();
    shown.skills.retain(|skill| match SkillEntry::parse(&skill.members) {
        Ok(entry) if is_scoped(&entry.uri) => {
            listed.push((entry, skill.effect, skill.effect_origin));
            true
        }
        parsed => {
            let why = parsed.err().unwrap_or("its URI is not a skill:// URI");
            tracing::warn!(target: "trust", server = %whose.server, skill = skill.key, why, "invalid skill");
            false
        }
    });
    let (prompts, behind): (Vec<Definition>, Vec<SkillEntry>) =
        skill_prompts(&listed, &shown.prompts).into_iter().unzip();
    let skill_prompts = prompts.iter().map(|prompt| prompt.key.clone()).zip(behind).collect();
    shown.prompts.extend(prompts);
    scope_listing(&whose.server, &mut shown);
    let skills = pinned_skills(pinned, &reviewer.news);
    Review {
        lists: shown,
        news: reviewer.news,
        held: reviewer.held,
        reported: reviewer.reported,
        skills,
        skill_prompts,
    }
}

/// The skills that are pinned after these changes.
fn pinned_skills(pinned: &PinSet, news: &PinDelta) -> Vec<SkillEntry> {
    let is_skill = |pin: &&Pin| pin.kind == PinKind::Item(ItemKind::Skill);
    let replaced = news.replaced.iter().map(|(pin, _)| pin);
    let all = pinned.pins.iter().chain(&news.new_pins).chain(replaced).filter(is_skill);
    // Later ones replace earlier ones.
    let latest: HashMap<&str, &Pin> = all.map(|pin| (pin.key.as_str(), pin)).collect();
    let entries = latest.into_values().filter_map(|pin| SkillEntry::parse(&pin.text.members().ok()?).ok());
    entries.collect()
}

impl Reviewer<'_> {
    fn review_all(&mut self, what: ItemKind, definitions: &[Definition]) -> Vec<Definition> {
        definitions.iter().filter_map(|definition| self.review_one(what, definition)).collect()
    }

    fn review_one(&mut self, what: ItemKind, definition: &Definition) -> Option<Definition> {
        let text = definition.members.to_json();
        let members = self.choose_definition(PinKind::Item(what), &definition.key, text)?.members().ok()?;
        let declared = self.effects.and_then(|effects| effects.effect(what, &definition.key, &members));
        // The effect only applies to the definition it came with; the pinned one gets an unknown effect.
        let (effect, effect_origin) = match declared {
            Some(_) if members != definition.members => (Effect::unknown(), EffectOrigin::Declared),
            None if members != definition.members => (Effect::unknown(), EffectOrigin::Assumed),
            Some(declared) => (declared, EffectOrigin::Declared),
            None => (definition.effect, definition.effect_origin),
        };
        let mut members = sanitize::sanitize_definition(&members);
        if declared.is_some() {
            members = with_hints(what, members, effect);
        }
        Some(Definition { key: definition.key.clone(), members, effect, effect_origin })
    }

    fn instructions(&mut self, text: &str) -> Option<String> {
        let shown = self.choose_definition(PinKind::Instructions, "", Json::text(text))?.to_text()?;
        Some(octo_toolkit::hidden_text::strip_hidden_owned(shown, &mut 0))
    }

    /// The definition to show: the new one, the pinned one, or none.
    fn choose_definition(&mut self, what: PinKind, key: &str, text: Json) -> Option<Json> {
        let value: Value = text.to().ok()?;
        let new = make_pin(what, key, &value, text.clone());
        let old = self.pins.get(&(what, key)).copied();
        if old.is_some_and(|old| old.hash == new.hash) {
            return Some(text);
        }
        let before = old.and_then(|old| old.text.to::<Value>().ok());
        let mut found = find_differences(self.identity, what, key, before.as_ref(), &value);
        let bytes = stored_bytes(&new);
        let more = bytes.saturating_sub(old.map_or(0, stored_bytes));
        if self.pinned_bytes + more > MAX_PINNED_BYTES || bytes > MAX_STORED_BYTES {
            found.push(refusal("exceeds the limit of bytes for the definitions of this server"));
        } else if old.is_none() {
            found.extend(self.refusal_of_new(what, key));
        }
        let worst = worst_severity(&found);
        let is_notable = worst > Severity::Harmless || self.may_change_effect(what, key, &value, &found);
        let hold = found.iter().any(|one| one.always_held)
            || (is_notable && self.settings.changes == ChangePolicy::Hold);
        if hold {
            self.held.insert((what, key.to_owned()), without_values(found));
            self.held_bytes += bytes;
            // Beyond the limit it is held, and can be accepted once others are.
            if self.held_bytes <= MAX_HELD_BYTES {
                self.news.held.push(new);
            }
            return old.map(|old| old.text.clone());
        }
        self.pinned_bytes += more;
        let is_reported = worst > Severity::Harmless && self.settings.changes == ChangePolicy::Warn;
        if is_reported || (worst == Severity::Harmless && !found.is_empty()) {
            self.reported.insert((what, key.to_owned()), without_values(found));
            self.news.reported.push(new.clone());
        }
        match old {
            Some(old) => self.news.replaced.push((new, old.hash.clone())),
            None => self.news.new_pins.push(new),
        }
        Some(text)
    }

    /// Whether a tool may do more than when its effect was declared: other input, or more careful hints.
    fn may_change_effect(&self, what: PinKind, key: &str, new: &Value, found: &[Difference]) -> bool {
        let (Some(effects), PinKind::Item(kind @ ItemKind::Tool)) = (self.effects, what) else {
            return false;
        };
        let Ok(members) = Json::from(new.clone()).members() else { return true };
        let effect = effects.effect(kind, key, &members);
        let follows_hints = matches!(effects, DeclaredEffects::Annotations);
        let matters = |one: &Difference| {
            one.path.starts_with("inputSchema") || (!follows_hints && one.path.starts_with("annotations"))
        };
        effect.is_some_and(|effect| effect.class() < EffectClass::Destroys) && found.iter().any(matters)
    }

    /// Why a definition that was never seen before is held.
    fn refusal_of_new(&self, what: PinKind, key: &str) -> Option<Difference> {
        let full = self.pins.len() + self.news.new_pins.len() >= MAX_DEFINITIONS;
        let why = if full {
            "exceeds the limit of definitions"
        } else if matches!(what, PinKind::Item(ItemKind::Resource | ItemKind::Template))
            && self.taken.contains(key)
            && !is_scoped(key)
        {
            "has a URI that another server listed first"
        } else if self.settings.new == NewItems::Hold
            && matches!(what, PinKind::Item(ItemKind::Tool | ItemKind::Prompt | ItemKind::Skill))
            && self.known_kinds.contains(&what)
        {
            "is new"
        } else if self.settings.changes == ChangePolicy::Hold
            && let PinKind::Item(kind @ (ItemKind::Tool | ItemKind::Prompt)) = what
            && self.known_kinds.contains(&what)
            && self.effects.is_some_and(|effects| effects.is_covered_by_wildcard(kind, key))
        {
            "is new, and a pattern in `effects` would declare what it does"
        } else {
            return None;
        };
        Some(refusal(why))
    }
}

/// Why a definition is held regardless of the settings.
fn refusal(why: &str) -> Difference {
    Difference {
        severity: Severity::Serious,
        path: "name".to_owned(),
        message: why.to_owned(),
        before: None,
        after: None,
        always_held: true,
    }
}

/// Bytes that a definition takes in the store.
fn stored_bytes(pin: &Pin) -> usize {
    pin.key.len() + pin.hash.len() + pin.text.bytes().len()
}

/// The differences for a log line; the values are in the store.
fn without_values(found: Vec<Difference>) -> Vec<Difference> {
    found.into_iter().map(|one| Difference { before: None, after: None, ..one }).collect()
}
