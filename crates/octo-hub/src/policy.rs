//! Who may do what. Only this file makes a [`Permit`], and nothing runs without one.

use crate::item::Entry;
use crate::profile::globs;
use globset::GlobSet;
use octo_model::{Caller, Class, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    #[default]
    Allow,
    Deny,
}

/// What a tool does: `reads`, `writes` or `destroys`. A tool that nobody vouches for counts as destroying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectWord {
    Reads,
    Writes,
    Destroys,
}

impl EffectWord {
    fn is(self, class: Class) -> bool {
        matches!(
            (self, class),
            (Self::Reads, Class::Reads) | (Self::Writes, Class::Writes) | (Self::Destroys, Class::Destroys)
        )
    }
}

/// One rule. A rule without patterns of a kind matches everything of that kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name that refusals and the audit give.
    pub name: String,
    /// Patterns of names as listed at `/mcp`, or of `server/tool`. What a profile renames is still meant by them.
    #[serde(default)]
    pub tools: Vec<String>,
    /// What the tool does: reads, writes or destroys.
    #[serde(default)]
    pub effects: Vec<EffectWord>,
    /// Patterns of callers.
    #[serde(default)]
    pub callers: Vec<String>,
    /// Whether what matches is allowed or denied.
    pub decision: Decision,
    /// What a refused caller is told to do instead.
    #[serde(default)]
    pub hint: Option<String>,
}

/// Any rule that denies wins over any that allows; without a matching rule the default decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySettings {
    /// What happens when no rule matches.
    pub default: Decision,
    /// The rules; their order does not matter.
    pub rules: Vec<Rule>,
}

/// The proof that policy said yes to one caller for one item.
pub struct Permit<'a> {
    entry: &'a Entry,
    rule: &'a str,
}

impl<'a> Permit<'a> {
    pub fn entry(&self) -> &'a Entry {
        self.entry
    }

    pub fn rule(&self) -> &'a str {
        self.rule
    }
}

struct Compiled {
    rule: Rule,
    tools: Option<GlobSet>,
    callers: Option<GlobSet>,
}

pub struct Policy {
    default: Decision,
    rules: Vec<Compiled>,
}

impl Policy {
    /// A pattern that cannot be read is an error here, so that a hub never runs with half a policy.
    pub fn new(settings: &PolicySettings) -> Result<Self, globset::Error> {
        let some = |patterns: &[String]| {
            if patterns.is_empty() { Ok(None) } else { globs(patterns).map(Some) }
        };
        let rules = settings.rules.iter().map(|rule| {
            Ok(Compiled { tools: some(&rule.tools)?, callers: some(&rule.callers)?, rule: rule.clone() })
        });
        Ok(Self { default: settings.default, rules: rules.collect::<Result<_, globset::Error>>()? })
    }

    /// Whether every caller gets the same answer to everything, so that lists can be shared.
    pub fn is_trivial(&self) -> bool {
        self.rules.is_empty() && self.default == Decision::Allow
    }

    pub fn decide<'a>(&'a self, caller: &Caller, entry: &'a Entry) -> Result<Permit<'a>, ToolError> {
        let matching = || self.rules.iter().filter(|rule| rule.matches(caller, entry));
        if let Some(denied) = matching().find(|rule| rule.rule.decision == Decision::Deny) {
            return Err(refusal(entry, &denied.rule.name, denied.rule.hint.as_deref()));
        }
        if let Some(allowed) = matching().next() {
            return Ok(Permit { entry, rule: &allowed.rule.name });
        }
        match self.default {
            Decision::Allow => Ok(Permit { entry, rule: "default" }),
            Decision::Deny => Err(refusal(entry, "default", None)),
        }
    }
}

impl Compiled {
    fn matches(&self, caller: &Caller, entry: &Entry) -> bool {
        let by_tool = self.tools.as_ref().is_none_or(|globs| self.names(globs, entry));
        let class = entry.effect().class();
        let by_effect =
            self.rule.effects.is_empty() || self.rule.effects.iter().any(|effect| effect.is(class));
        let by_caller = self.callers.as_ref().is_none_or(|globs| globs.is_match(&caller.subject));
        by_tool && by_effect && by_caller
    }

    /// A profile's own name can only be denied: were it to allow, renaming a tool would give it another's rights.
    fn names(&self, globs: &GlobSet, entry: &Entry) -> bool {
        globs.is_match(&entry.item.canonical)
            || globs.is_match(entry.item.target())
            || (self.rule.decision == Decision::Deny && globs.is_match(&*entry.listed))
    }
}

fn refusal(entry: &Entry, rule: &str, hint: Option<&str>) -> ToolError {
    let hint = hint.map_or_else(
        || "Use another tool, or ask the operator to change the rule.".to_owned(),
        str::to_owned,
    );
    ToolError::denied(format!("The policy rule `{rule}` does not allow {}.", entry.listed)).hint(hint)
}
