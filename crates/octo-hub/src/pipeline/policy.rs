//! Who may do what. Only this file makes a [`Permit`], and nothing runs without one.

mod policy_rules;

use crate::catalogue::item::Entry;
use octo_model::{Caller, Json, Method, ToolError};
use std::borrow::Cow;

pub use policy_rules::{Decision, PolicyRules, PolicySettings, Rule};

/// What a caller wants to do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// See that it is there.
    List,
    Use(Method),
}

/// What a policy decides on.
pub struct PolicyRequest<'a> {
    /// The principal and its scopes.
    pub caller: &'a Caller,
    /// The name of the profile; empty for everything.
    pub profile: &'a str,
    pub action: Action,
    pub entry: &'a Entry,
    /// The URI that is asked for: of a template it is another one than the entry's.
    pub uri: Option<&'a str>,
    /// Arguments that fit the schema of the tool. Absent when the question is whether the caller may know of the item, which
    /// is asked first: whoever is denied then learns nothing of the schema.
    pub arguments: Option<&'a Json>,
}

/// What a policy says.
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
    /// Only after a person has agreed. In lists it counts as permitted.
    RequireApproval {
        rule: Cow<'a, str>,
        obligations: Obligations,
    },
}

/// What the hub must do with the call that it permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obligations {
    /// Members of the structured result whose values are removed.
    pub redact: Vec<String>,
    /// Bytes of the largest reply, if that is less than the settings allow.
    pub max_result_bytes: Option<usize>,
}

/// Decides on calls and lists. It may be replaced while the hub runs.
pub trait PolicyEngine: Send + Sync {
    fn decide<'a>(&'a self, request: &PolicyRequest<'_>) -> PolicyDecision<'a>;

    /// Whether every caller is permitted everything without obligations, so that lists can be shared.
    fn allows_everything(&self) -> bool {
        false
    }

    /// Whether arguments make a difference. Without it they are not shown, and a call is decided on once.
    fn reads_arguments(&self) -> bool {
        false
    }
}

/// The proof that policy said yes to one caller for one item.
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
}

/// A refusal, and the rule that decided.
pub struct Denial {
    pub rule: Box<str>,
    pub error: ToolError,
}

impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        denial.error
    }
}

/// Asks the policy.
pub fn authorize<'a>(
    engine: &'a dyn PolicyEngine,
    request: &PolicyRequest<'a>,
) -> Result<Permit<'a>, Denial> {
    let entry = request.entry;
    let (rule, obligations, needs_approval) = match engine.decide(request) {
        PolicyDecision::Permit { rule, obligations } => (rule, obligations, false),
        PolicyDecision::RequireApproval { rule, obligations } => (rule, obligations, true),
        PolicyDecision::Deny { rule, hint } => return Err(denial(entry, &rule, hint.as_deref())),
    };
    Ok(Permit { entry, rule, obligations, needs_approval })
}

/// Whether the caller may see the item in a list.
pub fn is_visible(engine: &dyn PolicyEngine, profile: &str, caller: &Caller, entry: &Entry) -> bool {
    engine.allows_everything() || check_visible(engine, profile, caller, entry).is_ok()
}

/// Why the caller may not see the item in a list.
pub fn check_visible(
    engine: &dyn PolicyEngine,
    profile: &str,
    caller: &Caller,
    entry: &Entry,
) -> Result<(), Denial> {
    let uri = entry.item.is_resource().then_some(&*entry.listed_name);
    let request = PolicyRequest { caller, profile, action: Action::List, entry, uri, arguments: None };
    authorize(engine, &request).map(drop)
}

fn denial(entry: &Entry, rule: &str, hint: Option<&str>) -> Denial {
    let hint = hint.unwrap_or("Use another tool, or ask the operator to change the rule.").to_owned();
    let error = ToolError::denied(format!("The policy rule `{rule}` does not allow {}.", entry.listed_name));
    Denial { rule: rule.into(), error: error.hint(hint) }
}
