//! Rate limits per caller.

use crate::catalogue::item::Entry;
use crate::catalogue::profile::glob_set;
use globset::GlobSet;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use octo_model::{Caller, Principal, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Rate limit per caller for the tools that match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// Patterns of tool names as listed at `/mcp`. Empty: all tools together.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Calls per caller and minute.
    pub per_minute: NonZeroU32,
    /// Calls at once; default: `per_minute`.
    #[serde(default)]
    pub burst: Option<NonZeroU32>,
}

struct CompiledLimit {
    rule: LimitRule,
    tools: Option<GlobSet>,
    limiter: Arc<DefaultKeyedRateLimiter<Principal>>,
}

/// All limits. A call is refused by the first one that is exceeded.
pub struct RateLimits(Vec<CompiledLimit>);

impl RateLimits {
    /// Unchanged rules keep their counts.
    pub fn new(rules: &[LimitRule], before: Option<&Self>) -> Result<Self, globset::Error> {
        let mut known: Vec<&CompiledLimit> = before.into_iter().flat_map(|before| &before.0).collect();
        let limits = rules.iter().map(|rule| {
            let tools = if rule.tools.is_empty() { None } else { Some(glob_set(&rule.tools)?) };
            let limiter = match known.iter().position(|limit| limit.rule == *rule) {
                Some(at) => Arc::clone(&known.remove(at).limiter),
                None => Arc::new(RateLimiter::keyed(quota(rule))),
            };
            Ok(CompiledLimit { rule: rule.clone(), tools, limiter })
        });
        limits.collect::<Result<_, _>>().map(Self)
    }

    pub fn check(&self, caller: &Caller, entry: &Entry) -> Result<(), ToolError> {
        for limit in &self.0 {
            if limit.tools.as_ref().is_some_and(|globs| !globs.is_match(&entry.item.canonical_name)) {
                continue;
            }
            if let Err(refused) = limit.limiter.check_key(&caller.principal) {
                let wait = refused.wait_time_from(DefaultClock::default().now());
                let seconds = wait.as_secs_f64().ceil();
                let message = format!("Rate limit exceeded for {}.", entry.listed_name);
                return Err(ToolError::rate_limited(message, wait).hint(format!("Try again in {seconds} s.")));
            }
        }
        Ok(())
    }
}

fn quota(rule: &LimitRule) -> Quota {
    Quota::per_minute(rule.per_minute).allow_burst(rule.burst.unwrap_or(rule.per_minute))
}
