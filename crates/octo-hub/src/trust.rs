//! Trust in what servers list: every definition is pinned on first sight, and a change that could mislead is held back
//! until a person has accepted it. Hidden text never passes, and no server can speak in another's name.

mod canonical;
mod drift;
mod memory_pins;
mod poisoning;
mod review;
mod reviewed_source;
mod sanitize;
mod sanitizing_peer;
mod schema_drift;
mod shadowing;
#[cfg(test)]
mod tests;

use crate::ports::{ItemKind, PendingPin, Pin, Pins, ServerIdentity};
pub use memory_pins::MemoryPins;
pub use reviewed_source::Trust;
pub(crate) use sanitize::{HIDDEN_REMOVED_META_KEY, strip_hub_meta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a changed definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangePolicy {
    /// The definition that was pinned stays until a person accepts the new one.
    #[default]
    Hold,
    /// The new one is taken on and reported.
    Warn,
    /// The new one is taken on.
    Follow,
}

/// What happens to tools and prompts that a known server did not have before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NewItems {
    /// They are pinned like those of the first listing.
    #[default]
    Pass,
    /// They wait for a person.
    Hold,
}

/// What happens to calls of a tool whose new definition is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeldCalls {
    /// They are made as the pinned definition describes them.
    #[default]
    Pinned,
    /// They are refused.
    Refuse,
}

/// How far a server's definitions are trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// What happens to a changed definition.
    pub changes: ChangePolicy,
    /// What happens to tools and prompts that were not there before.
    pub new: NewItems,
    /// What happens to calls of a tool whose new definition is held.
    pub held_calls: HeldCalls,
}

/// `trust: hold`, `warn` or `follow`, or each part by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TrustSetting {
    /// What happens to a changed definition.
    Shorthand(ChangePolicy),
    /// Each part by itself.
    Detailed(TrustSettings),
}

impl Default for TrustSetting {
    fn default() -> Self {
        Self::Shorthand(ChangePolicy::Hold)
    }
}

impl From<TrustSetting> for TrustSettings {
    fn from(setting: TrustSetting) -> Self {
        match setting {
            TrustSetting::Shorthand(changes) => Self { changes, ..Self::default() },
            TrustSetting::Detailed(parts) => parts,
        }
    }
}

/// How much a difference can mislead. Only what is harmless passes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Cannot mislead: spaces, order, tighter bounds, more careful hints.
    Harmless,
    /// Says something else than before.
    Notable,
    /// Asks for something else, or claims to be less dangerous than before.
    Serious,
    /// Looks like an attack: hidden text, commands to the model, another's name.
    Dangerous,
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Harmless => "harmless",
            Self::Notable => "notable",
            Self::Serious => "serious",
            Self::Dangerous => "dangerous",
        }
    }
}

/// One thing that is different, or wrong from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub severity: Severity,
    /// Where in the definition: `inputSchema.properties.path.description`.
    pub at: String,
    /// What is different, in words of ours.
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether it is held whatever the settings say.
    #[serde(skip)]
    pub always_held: bool,
}

/// What is different about a definition that waits, worst first.
pub fn differences(whose: &ServerIdentity, pending: &PendingPin) -> Vec<Difference> {
    let old = pending.pinned.as_ref().and_then(|pin| pin.text.to::<Value>().ok());
    let new = pending.new.text.to::<Value>().unwrap_or_default();
    find_differences(whose, pending.new.kind, &pending.new.key, old.as_ref(), &new)
}

/// Changes since the pinned definition, and what is suspect in the new one and was not accepted with the old one.
fn find_differences(
    whose: &ServerIdentity,
    what: ItemKind,
    key: &str,
    old: Option<&Value>,
    new: &Value,
) -> Vec<Difference> {
    let mut found = old.map(|old| drift::compare(what, old, new)).unwrap_or_default();
    found.extend(poisoning::find_poisoning(whose, what, key, old, new));
    found.sort_by(|one, other| other.severity.cmp(&one.severity).then_with(|| one.at.cmp(&other.at)));
    found
}

fn worst_severity(found: &[Difference]) -> Severity {
    found.iter().map(|difference| difference.severity).max().unwrap_or(Severity::Harmless)
}

/// A stable digest of what is behind a server's name: its program and arguments, or its address.
pub fn server_identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    canonical::digest(parts)
}

/// The pin of a definition.
fn make_pin(what: ItemKind, key: &str, value: &Value, text: octo_model::Json) -> Pin {
    Pin { kind: what, key: key.to_owned(), text, hash: canonical::hash(what, value) }
}

/// What the pins of a server are kept in.
type SharedPins = std::sync::Arc<dyn Pins>;
