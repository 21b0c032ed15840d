//! Authorization. Only this file creates a [`Permit`], and nothing runs without one.

mod policy_rules;

use crate::catalogue::item::Entry;
use octo_model::{Caller, Json, Method, ToolError};
use std::borrow::Cow;

pub use policy_rules::{Decision, PolicyRules, PolicySettings, Rule};

/// The action on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// See it in lists.
    List,
    Use(Method),
}

/// Input of a policy decision.
pub struct PolicyRequest<'a> {
    /// The principal and its scopes.
    pub caller: &'a Caller,
    /// Name of the profile; empty for everything.
    pub profile: &'a str,
    pub action: Action,
    pub entry: &'a Entry,
    /// The requested URI. For a template it differs from the entry's.
    pub uri: Option<&'a str>,
    /// Arguments that match the tool's schema. Absent when deciding whether the caller may know of the item.
    /// This is decided first, so that a denied caller learns nothing about the schema.
    pub arguments: Option<&'a Json>,
}

/// Input of a decision about a question of a server to the client of a call.
pub struct QuestionRequest<'a> {
    pub caller: &'a Caller,
    /// Name of the profile; empty for everything.
    pub profile: &'a str,
    /// The server and the kind: `notion/elicitation`.
    pub name: &'a str,
}

/// Decision of a policy.
#[derive(Debug)]
pub enum PolicyDecision<'a> {
    Permit {
        rule: Cow<'a, str>,
        obligations: Obligations,
    },
    Deny {
        rule: Cow<'a, str>,
        hint: Option<Cow<'a, str>>,
    },
    /// Requires approval by a person. Counts as permitted in lists.
    RequireApproval {
        rule: Cow<'a, str>,
        obligations: Obligations,
    },
}

/// What the hub must do with a permitted call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obligations {
    /// Members of the structured result whose values are removed.
    pub redact: Vec<String>,
    /// Maximum bytes of the reply, if less than the settings allow.
    pub max_result_bytes: Option<usize>,
}

/// Decides on calls and lists. Can be replaced while the hub runs.
pub trait PolicyEngine: Send + Sync {
    fn decide<'a>(&'a self, request: &PolicyRequest<'_>) -> PolicyDecision<'a>;

    /// Denies a question of a server. Without a denial it is asked: the call that it belongs to was permitted.
    fn deny_question(&self, _request: &QuestionRequest<'_>) -> Option<Denial> {
        None
    }

    /// Returns whether every caller is permitted everything without obligations, so that lists can be shared.
    fn allows_everything(&self) -> bool {
        false
    }

    /// Returns whether decisions depend on arguments. Otherwise they are not passed, and a call is decided
    /// once.
    fn reads_arguments(&self) -> bool {
        false
    }
}

/// Proof of a positive policy decision for one caller and one item.
pub struct Permit<'a> {
    entry: &'a Entry,
    rule: Cow<'a, str>,
    pub obligations: Obligations,
    pub needs_approval: bool,
}

impl<'a> Permit<'a> {
    pub fn entry(&self) -> &'a Entry {
        self.entry
    }

    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Both permits: what either of them requires.
    pub(crate) fn and(self, other: Self) -> Self {
        let mut obligations = self.obligations;
        obligations.redact.extend(other.obligations.redact);
        let limits = [obligations.max_result_bytes, other.obligations.max_result_bytes];
        obligations.max_result_bytes = limits.into_iter().flatten().min();
        let rule = if self.needs_approval { self.rule } else { other.rule };
        Self { rule, obligations, needs_approval: self.needs_approval || other.needs_approval, ..other }
    }
}

/// A refusal, and the rule that decided.
pub struct Denial {
    pub rule: Box<str>,
    /// Whether the rule has a text for denied callers, who thus learn that the item exists.
    pub has_hint: bool,
    pub error: Box<ToolError>,
}

impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        *denial.error
    }
}

/// Asks the policy for a decision. A prompt for a skill reads a resource, so that its URI has to be permitted, too.
pub fn authorize<'a>(
    engine: &'a dyn PolicyEngine,
    request: &PolicyRequest<'a>,
) -> Result<Permit<'a>, Denial> {
    let permit = decide(engine, request)?;
    match (&request.entry.item.skill_uri, request.uri) {
        (Some(uri), None) => Ok(permit.and(decide(engine, &PolicyRequest { uri: Some(uri), ..*request })?)),
        _ => Ok(permit),
    }
}

fn decide<'a>(engine: &'a dyn PolicyEngine, request: &PolicyRequest<'a>) -> Result<Permit<'a>, Denial> {
    let entry = request.entry;
    let (rule, obligations, needs_approval) = match engine.decide(request) {
        PolicyDecision::Permit { rule, obligations } => (rule, obligations, false),
        PolicyDecision::RequireApproval { rule, obligations } => (rule, obligations, true),
        PolicyDecision::Deny { rule, hint } => return Err(denial(entry, &rule, hint.as_deref())),
    };
    Ok(Permit { entry, rule, obligations, needs_approval })
}

/// Returns whether the caller may see the item in a list.
pub fn is_visible(engine: &dyn PolicyEngine, profile: &str, caller: &Caller, entry: &Entry) -> bool {
    engine.allows_everything() || check_visible(engine, profile, caller, entry).is_ok()
}

/// Checks that the caller may see the item in a list.
pub fn check_visible(
    engine: &dyn PolicyEngine,
    profile: &str,
    caller: &Caller,
    entry: &Entry,
) -> Result<(), Denial> {
    let uri = entry.item.has_uri().then_some(&*entry.listed_name);
    let request = PolicyRequest { caller, profile, action: Action::List, entry, uri, arguments: None };
    authorize(engine, &request).map(drop)
}

fn denial(entry: &Entry, rule: &str, hint: Option<&str>) -> Denial {
    denial_of(&entry.listed_name, rule, hint)
}

/// A refusal of what has this name.
fn denial_of(name: &str, rule: &str, hint: Option<&str>) -> Denial {
    let has_hint = hint.is_some();
    let hint = hint.unwrap_or("Use another tool, or ask the operator to change the rule.").to_owned();
    let error = ToolError::denied(format!("The policy rule `{rule}` does not allow {name}."));
    Denial { rule: rule.into(), has_hint, error: Box::new(error.hint(hint)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::tests::{stub_item, stub_source};
    use octo_model::ItemKind;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_denied_uri_is_not_listed_in_any_spelling() {
        let source = stub_source("up");
        for (kind, uri, expected) in [
            (ItemKind::Skill, "skill://up/internal/refunds/SKILL.md", false),
            (ItemKind::Skill, "skill://up/public/SKILL.md", true),
            (ItemKind::Resource, "skill://up/internal/a.md", false),
            (ItemKind::Template, "skill://up/internal/{file}", false),
            (ItemKind::Template, "skill://up/public/{file}", true),
            (ItemKind::Template, "notes://{id}", true),
        ] {
            let item = stub_item(&source, kind, uri, json!({"name": "x"}));
            let entry = Entry { listed_name: uri.into(), item: Arc::new(item), tool_override: None };
            for pattern in ["skill://internal/*", "skill://up/internal/*"] {
                let rule = json!({"name": "no", "tools": [pattern], "decision": "deny"});
                let settings: PolicySettings = serde_json::from_value(json!({"rules": [rule]})).unwrap();
                let rules = PolicyRules::new(&settings).unwrap();
                assert_eq!(is_visible(&rules, "", &Caller::local(), &entry), expected, "{pattern} {uri}");
            }
        }
    }

    #[test]
    fn an_allowed_template_is_listed() {
        let source = stub_source("up");
        let rule = json!({"name": "yes", "tools": ["notes://*"], "decision": "allow"});
        let settings: PolicySettings =
            serde_json::from_value(json!({"default": "deny", "rules": [rule]})).unwrap();
        let rules = PolicyRules::new(&settings).unwrap();
        for (uri, expected) in
            [("notes://{id}", true), ("notes://today/{+path}", true), ("files://{id}", false)]
        {
            let item = stub_item(&source, ItemKind::Template, uri, json!({"name": "x"}));
            let entry = Entry { listed_name: uri.into(), item: Arc::new(item), tool_override: None };
            assert_eq!(is_visible(&rules, "", &Caller::local(), &entry), expected, "{uri}");
        }
    }
}
