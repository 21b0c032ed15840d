//! Rules for calls from the settings: policy, limits, cache and timeout, replaced as a whole.

use crate::catalogue::item::Entry;
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::{
    Action, Denial, Permit, PolicyEngine, PolicyRequest, PolicyRules, PolicySettings, authorize,
};
use crate::pipeline::rate_limit::{LimitRule, RateLimits, SharedBuckets};
use crate::pipeline::response_cache::{CacheRule, ResponseCache};
use octo_model::{ItemKind, Json};
use std::sync::Arc;
use std::time::Duration;

/// Rules as written in the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSettings {
    pub policy: PolicySettings,
    pub limits: Vec<LimitRule>,
    pub cache: Vec<CacheRule>,
    /// Maximum duration of a call.
    pub timeout: Duration,
}

/// Rules with compiled patterns.
pub struct CallRules {
    pub settings: RuleSettings,
    pub policy: Arc<dyn PolicyEngine>,
    /// Policy engine that replaces the rules of the settings.
    policy_override: Option<Arc<dyn PolicyEngine>>,
    pub limits: RateLimits,
    pub cache: Arc<ResponseCache>,
}

impl CallRules {
    /// With buckets, limits hold across all hubs that share them.
    pub fn new(settings: RuleSettings, buckets: Option<Arc<SharedBuckets>>) -> Result<Self, globset::Error> {
        Self::compile(settings, None, &RateLimits::none(buckets))
    }

    /// Other rules. Unchanged limits keep their counts; cached replies are kept if the cache rules are unchanged.
    pub fn replace(&self, settings: RuleSettings) -> Result<Self, globset::Error> {
        Self::compile(settings, Some(self), &self.limits)
    }

    fn compile(
        settings: RuleSettings,
        before: Option<&Self>,
        limits: &RateLimits,
    ) -> Result<Self, globset::Error> {
        let answers = match before {
            Some(before) if before.settings.cache == settings.cache => Arc::clone(&before.cache),
            before => Arc::new(ResponseCache::new(&settings.cache, before.map(|it| &*it.cache))?),
        };
        // Compiled even if another engine decides, so that an invalid pattern is never accepted.
        let rules = Arc::new(PolicyRules::new(&settings.policy)?);
        let policy_override = before.and_then(|before| before.policy_override.clone());
        Ok(Self {
            policy: policy_override.clone().unwrap_or(rules),
            policy_override,
            limits: limits.replace(&settings.limits)?,
            cache: answers,
            settings,
        })
    }

    /// The same rules with another policy engine, or with that of the settings.
    pub fn with_policy(&self, engine: Option<Arc<dyn PolicyEngine>>) -> Result<Self, globset::Error> {
        let rules = self.replace(self.settings.clone())?;
        let policy = match &engine {
            Some(engine) => Arc::clone(engine),
            None => Arc::new(PolicyRules::new(&self.settings.policy)?),
        };
        Ok(Self { policy, policy_override: engine, ..rules })
    }

    /// Asks the policy about a request and records the rule that decided.
    pub fn authorize<'a>(
        &'a self,
        request: &'a Request,
        entry: &'a Entry,
        arguments: Option<&'a Json>,
        record: &mut AuditRecord,
    ) -> Result<Permit<'a>, Denial> {
        let is_uri = matches!(entry.item.kind, ItemKind::Resource | ItemKind::Template | ItemKind::Skill);
        let asked = PolicyRequest {
            caller: &request.caller,
            profile: &request.profile,
            action: Action::Use(request.op.method),
            entry,
            uri: is_uri.then_some(request.op.name.as_str()),
            arguments,
        };
        let decision = authorize(&*self.policy, &asked);
        let permit = decision.inspect_err(|denial| record.set_rule(&denial.rule))?;
        record.set_rule(permit.rule());
        Ok(permit)
    }

    /// The timeout of a call whose caller requested `wanted`.
    pub fn timeout(&self, wanted: Option<Duration>) -> Duration {
        let longest = self.settings.timeout;
        wanted.map_or(longest, |wanted| wanted.min(longest))
    }
}
