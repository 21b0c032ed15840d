//! What the settings decide about calls: policy, limits, cache and deadline, put in force as one.

use crate::policy::{Policy, PolicySettings};
use crate::rate_limit::{LimitRule, RateLimits};
use crate::response_cache::{CacheRule, ResponseCache};
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
    pub policy: Policy,
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
            policy: Policy::new(&settings.policy)?,
            limits: RateLimits::new(&settings.limits, before.map(|it| &it.limits))?,
            cache: answers,
            settings,
        })
    }

    /// How long a call may take when its caller asks for this.
    pub fn timeout(&self, wanted: Option<Duration>) -> Duration {
        let longest = self.settings.timeout;
        wanted.map_or(longest, |wanted| wanted.min(longest))
    }
}
