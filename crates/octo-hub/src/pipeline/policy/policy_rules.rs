//! The policy rules of the settings: the default policy engine.

use super::{Denial, Obligations, PolicyDecision, PolicyEngine, PolicyRequest, QuestionRequest, denial_of};
use crate::catalogue::item::Entry;
use crate::catalogue::name_patterns::glob_set;
use crate::catalogue::uri_spellings::{UriSpellings, is_uri_pattern, loosen};
use crate::find::tools_call::{is_call_wrapper, is_find_or_call_tool};
use globset::GlobSet;
use octo_model::{Caller, DEFAULT_TENANT, EffectClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    #[default]
    Allow,
    Deny,
}

/// What a tool does: `reads`, `writes` or `destroys`. A tool without a trusted effect counts as destructive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectWord {
    Reads,
    Writes,
    Destroys,
}

impl EffectWord {
    fn matches_class(self, class: EffectClass) -> bool {
        matches!(
            (self, class),
            (Self::Reads, EffectClass::Reads)
                | (Self::Writes, EffectClass::Writes)
                | (Self::Destroys, EffectClass::Destroys)
        )
    }
}

/// One rule. An empty list of patterns matches everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the rule in refusals and in the audit log.
    pub name: String,
    /// Patterns of names as listed at `/mcp`, of `server/tool`, or of resource URIs. A denying rule is also about the
    /// questions of servers: `server/elicitation`, `server/sampling`, `server/roots`. They also match tools
    /// that a profile renames. A denied URI is denied in every spelling.
    #[serde(default)]
    pub tools: Vec<String>,
    /// What the tool does: reads, writes or destroys.
    #[serde(default)]
    pub effects: Vec<EffectWord>,
    /// Patterns of callers: `ada`, `ci-*`, or with a tenant `acme/ada`, `acme/*`. `*` matches everyone.
    /// Without a tenant an allowing rule applies to the tenant `default`, and a denying rule to all tenants.
    #[serde(default)]
    pub callers: Vec<String>,
    /// Whether matching calls are allowed or denied.
    pub decision: Decision,
    /// Hint for refused callers.
    #[serde(default)]
    pub hint: Option<String>,
}

/// Deny rules take precedence over allow rules; without a matching rule the default applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySettings {
    /// Decision if no rule matches.
    pub default: Decision,
    /// The rules; their order does not matter.
    pub rules: Vec<Rule>,
}

struct CompiledRule {
    rule: Rule,
    tools: Option<GlobSet>,
    callers: Option<GlobSet>,
    /// Whether it denies URIs.
    denies_uris: bool,
}

pub struct PolicyRules {
    default: Decision,
    rules: Vec<CompiledRule>,
}

impl PolicyRules {
    /// Fails on an invalid pattern, so that a hub never runs with an incomplete policy.
    pub fn new(settings: &PolicySettings) -> Result<Self, globset::Error> {
        let some = |patterns: &[String]| {
            if patterns.is_empty() { Ok(None) } else { glob_set(patterns).map(Some) }
        };
        let rules = settings.rules.iter().map(|rule| {
            let denies = rule.decision == Decision::Deny;
            let of_uris = denies && rule.tools.iter().any(|pattern| is_uri_pattern(pattern));
            let loosened = rule.tools.iter().filter(|_| of_uris).map(|pattern| loosen(pattern).into_owned());
            let tools: Vec<String> = rule.tools.iter().cloned().chain(loosened).collect();
            let callers: Vec<String> = rule.callers.iter().map(|it| with_tenant(it, rule.decision)).collect();
            Ok(CompiledRule {
                tools: some(&tools)?,
                callers: some(&callers)?,
                denies_uris: of_uris,
                rule: rule.clone(),
            })
        });
        Ok(Self { default: settings.default, rules: rules.collect::<Result<_, globset::Error>>()? })
    }
}

impl PolicyEngine for PolicyRules {
    fn allows_everything(&self) -> bool {
        self.rules.is_empty() && self.default == Decision::Allow
    }

    /// A rule about effects is about what tools do.
    fn deny_question(&self, request: &QuestionRequest<'_>) -> Option<Denial> {
        let principal = request.caller.principal.to_string();
        let is_denial = |rule: &&CompiledRule| {
            rule.rule.decision == Decision::Deny
                && rule.rule.effects.is_empty()
                && rule.callers.as_ref().is_none_or(|globs| globs.is_match(&principal))
                && rule.tools.as_ref().is_none_or(|globs| globs.is_match(request.name))
        };
        let denied = self.rules.iter().find(is_denial)?;
        Some(denial_of(request.name, &denied.rule.name, denied.rule.hint.as_deref()))
    }

    fn decide<'a>(&'a self, request: &PolicyRequest<'_>) -> PolicyDecision<'a> {
        let (caller, entry) = (request.caller, request.entry);
        let uri = request.uri.filter(|_| !self.rules.is_empty()).map(UriSpellings::of);
        let of_caller = || self.rules.iter().filter(|rule| rule.applies_to(caller, entry));
        let matching = || of_caller().filter(|rule| rule.matches_name(entry, uri.as_ref()));
        if let Some(denied) = matching().find(|rule| rule.rule.decision == Decision::Deny) {
            return deny(&denied.rule.name, denied.rule.hint.as_deref());
        }
        // The spelling that the server itself lists is unambiguous.
        let own = || uri.as_ref().is_some_and(|uri| uri.is_exactly(&entry.item.key));
        if uri.as_ref().is_some_and(UriSpellings::is_ambiguous)
            && !own()
            && let Some(rule) = of_caller().find(|rule| rule.denies_uris)
        {
            let hint = "Write the URI without needless encoding, empty segments and dot segments.";
            return deny(&rule.rule.name, Some(hint));
        }
        match matching().next() {
            Some(allowed) => permit(&allowed.rule.name),
            // They give access to nothing by themselves: what is found and called is decided separately.
            None if self.default == Decision::Allow || is_find_or_call_tool(entry) => permit("default"),
            None => deny("default", None),
        }
    }
}

fn permit(rule: &str) -> PolicyDecision<'_> {
    PolicyDecision::Permit { rule: rule.into(), obligations: Obligations::default() }
}

fn deny<'a>(rule: &'a str, hint: Option<&'a str>) -> PolicyDecision<'a> {
    PolicyDecision::Deny { rule: rule.into(), hint: hint.map(Into::into) }
}

impl CompiledRule {
    fn applies_to(&self, caller: &Caller, entry: &Entry) -> bool {
        let class = entry.effect().class();
        // The effect of a call through `tools_call` is that of the tool which it calls.
        let has_effect =
            || !is_call_wrapper(entry) && self.rule.effects.iter().any(|effect| effect.matches_class(class));
        let by_effect = self.rule.effects.is_empty() || has_effect();
        by_effect && self.callers.as_ref().is_none_or(|globs| globs.is_match(caller.principal.to_string()))
    }

    /// The name in a profile can only be denied: if it could be allowed, renaming a tool would give it
    /// another tool's rights. A URI is allowed if its raw and normalized forms match, and denied if any
    /// spelling or its template matches.
    fn matches_name(&self, entry: &Entry, uri: Option<&UriSpellings>) -> bool {
        let Some(globs) = &self.tools else { return true };
        let denies = self.rule.decision == Decision::Deny;
        let of_server = |name: &str| globs.is_match(format!("{}/{name}", entry.source_name()));
        let named = |name: &str| globs.is_match(name) || of_server(name);
        match uri {
            Some(uri) if !denies => uri.all(named),
            Some(uri) if uri.any(named) => true,
            _ => {
                of_server(&entry.item.key)
                    || globs.is_match(&entry.item.canonical_name)
                    || (denies && globs.is_match(&*entry.listed_name))
            }
        }
    }
}

/// A pattern of callers, matched against `tenant/subject`.
fn with_tenant(pattern: &str, decision: Decision) -> String {
    match decision {
        _ if pattern.contains('/') || pattern == "*" => pattern.to_owned(),
        Decision::Allow => format!("{DEFAULT_TENANT}/{pattern}"),
        Decision::Deny => format!("*/{pattern}"),
    }
}
