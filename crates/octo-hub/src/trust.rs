//! Trust in upstream definitions: each is pinned when first seen, and a change that could mislead is held
//! until a person accepts it. Hidden text is always removed, and no server can impersonate another.

mod added_texts;
mod canonical;
mod declared_effects;
mod definition_diff;
mod drift;
mod effect_proposal;
mod poisoning;
mod review;
mod reviewed_source;
mod sanitize;
mod schema_drift;
mod server_questions;
mod server_voice;
mod shadowing;
#[cfg(test)]
mod tests;

pub(crate) use canonical::canonical_text;
pub use declared_effects::{DeclaredEffects, EffectPatterns, EffectsSetting, EffectsSource};
pub use effect_proposal::EffectProposal;
use octo_ports::{PendingPin, Pin, PinKind, Pins, ServerIdentity};
pub use reviewed_source::Trust;
pub(crate) use sanitize::{HIDDEN_REMOVED_META_KEY, strip_hub_meta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use server_questions::{QuestionRules, UrlCheck};

/// What happens to a changed definition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangePolicy {
    /// The pinned definition stays in use until a person accepts the new one.
    #[default]
    Hold,
    /// The new one is used and reported.
    Warn,
    /// The new one is used.
    Follow,
}

/// What happens to new tools and prompts of a known server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NewItems {
    /// They are pinned like those of the first listing.
    #[default]
    Pass,
    /// They are held until a person accepts them.
    Hold,
}

/// What happens to calls of a tool whose new definition is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeldCalls {
    /// They run according to the pinned definition.
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
    /// What happens to new tools and prompts.
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

/// How much a difference can mislead. Only harmless ones pass without review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Cannot mislead: whitespace, order, tighter bounds, safer hints.
    Harmless,
    /// The text changed.
    Notable,
    /// Requires different input, or claims to be less dangerous than before.
    Serious,
    /// Looks like an attack: hidden text, instructions to the model, another server's name.
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

/// A difference from the pinned definition, or a finding in a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub severity: Severity,
    /// Path in the definition: `inputSchema.properties.path.description`.
    pub path: String,
    /// Description of the difference.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether it is held regardless of the settings.
    #[serde(skip)]
    pub always_held: bool,
}

/// Differences of a held definition, most severe first.
pub fn differences(whose: &ServerIdentity, pending: &PendingPin) -> Vec<Difference> {
    let old = pending.pinned.as_ref().and_then(|pin| pin.text.to::<Value>().ok());
    let new = pending.new.text.to::<Value>().unwrap_or_default();
    find_differences(whose, pending.new.kind, &pending.new.key, old.as_ref(), &new)
}

/// Changes since the pinned definition, and findings in the new one that were not accepted with the old one.
fn find_differences(
    whose: &ServerIdentity,
    what: PinKind,
    key: &str,
    old: Option<&Value>,
    new: &Value,
) -> Vec<Difference> {
    let mut found = old.map(|old| drift::compare(what, old, new)).unwrap_or_default();
    found.extend(poisoning::find_poisoning(whose, what, key, old, new));
    found.sort_by(|one, other| other.severity.cmp(&one.severity).then_with(|| one.path.cmp(&other.path)));
    found
}

fn worst_severity(found: &[Difference]) -> Severity {
    found.iter().map(|difference| difference.severity).max().unwrap_or(Severity::Harmless)
}

/// A stable digest of a server's identity: its program and arguments, or its address.
pub fn server_identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    canonical::digest(parts)
}

/// The pin of a definition.
fn make_pin(what: PinKind, key: &str, value: &Value, text: octo_model::Json) -> Pin {
    Pin { kind: what, key: key.to_owned(), text, hash: canonical::hash(what, value) }
}

/// The store of pins.
type SharedPins = std::sync::Arc<dyn Pins>;
