//! What the settings decide about calls: policy, limits, cache and deadline, put in force as one.

use crate::catalogue::item::{Entry, ListKind};
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::call_pipeline::Request;
use crate::pipeline::policy::{
    Action, Permit, PolicyEngine, PolicyRequest, PolicyRules, PolicySettings, authorize,
};
use crate::pipeline::rate_limit::{LimitRule, RateLimits};
use crate::pipeline::response_cache::{CacheRule, ResponseCache};
use octo_model::{Json, ToolError};
use std::sync::Arc;
use std::time::Duration;

/// Rules as the settings write them.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSettings {
    pub policy: PolicySettings,
    pub limits: Vec<LimitRule>,
    pub cache: Vec<CacheRule>,
    /// Longest that a call may take.
    pub timeout: Duration,
}

/// Rules with their patterns compiled.
pub struct CallRules {
    pub settings: RuleSettings,
    pub policy: Arc<dyn PolicyEngine>,
    /// The engine that stands in place of the rules of the settings.
    policy_override: Option<Arc<dyn PolicyEngine>>,
    pub limits: RateLimits,
    pub cache: Arc<ResponseCache>,
}

impl CallRules {
    /// What was used up of a limit that stays is still used up, and answers are kept as long as the rules about them stay.
    pub fn new(settings: RuleSettings, before: Option<&Self>) -> Result<Self, globset::Error> {
        let answers = match before {
            Some(before) if before.settings.cache == settings.cache => Arc::clone(&before.cache),
            before => Arc::new(ResponseCache::new(&settings.cache, before.map(|it| &*it.cache))?),
        };
        // Also compiled when another engine decides, so that a pattern that cannot be read is never taken on.
        let rules = Arc::new(PolicyRules::new(&settings.policy)?);
        let policy_override = before.and_then(|before| before.policy_override.clone());
        Ok(Self {
            policy: policy_override.clone().unwrap_or(rules),
            policy_override,
            limits: RateLimits::new(&settings.limits, before.map(|it| &it.limits))?,
            cache: answers,
            settings,
        })
    }

    /// The same rules with another policy engine, or with that of the settings again.
    pub fn with_policy(&self, engine: Option<Arc<dyn PolicyEngine>>) -> Result<Self, globset::Error> {
        let rules = Self::new(self.settings.clone(), Some(self))?;
        let policy = match &engine {
            Some(engine) => Arc::clone(engine),
            None => Arc::new(PolicyRules::new(&self.settings.policy)?),
        };
        Ok(Self { policy, policy_override: engine, ..rules })
    }

    /// Asks the policy about a request, and notes the rule that decides.
    pub fn authorize<'a>(
        &'a self,
        request: &'a Request,
        entry: &'a Entry,
        arguments: Option<&'a Json>,
        record: &mut AuditRecord,
    ) -> Result<Permit<'a>, ToolError> {
        let is_uri = matches!(entry.item.kind, ListKind::Resources | ListKind::Templates);
        let decision = authorize(
            &*self.policy,
            &PolicyRequest {
                caller: &request.caller,
                profile: &request.profile,
                action: Action::Use(request.op.method),
                entry,
                uri: is_uri.then_some(request.op.name.as_str()),
                arguments,
            },
        );
        let permit = decision.inspect_err(|denial| record.set_rule(&denial.rule))?;
        record.set_rule(permit.rule());
        Ok(permit)
    }

    /// How long a call may take when its caller asks for this.
    pub fn timeout(&self, wanted: Option<Duration>) -> Duration {
        let longest = self.settings.timeout;
        wanted.map_or(longest, |wanted| wanted.min(longest))
    }
}
