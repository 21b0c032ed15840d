//! What the settings decide about calls: policy, limits, cache and deadline, put in force as one.

use crate::audit_record::AuditRecord;
use crate::call_pipeline::Request;
use crate::item::{Entry, ListKind};
use crate::policy::{Action, Permit, Policy, PolicyEngine, PolicyRequest, PolicySettings, authorize};
use crate::rate_limit::{LimitRule, RateLimits};
use crate::response_cache::{CacheRule, ResponseCache};
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
        Ok(Self {
            policy: Arc::new(Policy::new(&settings.policy)?),
            limits: RateLimits::new(&settings.limits, before.map(|it| &it.limits))?,
            cache: answers,
            settings,
        })
    }

    /// The same rules with another policy.
    pub fn with_policy(&self, policy: Arc<dyn PolicyEngine>) -> Result<Self, globset::Error> {
        let rules = Self::new(self.settings.clone(), Some(self))?;
        Ok(Self { policy, ..rules })
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
