//! Rate limits per caller, of one hub or of all hubs that share a database.

mod bucket_outage;
mod leased_slice;
mod shared_limit;

pub(crate) use shared_limit::SharedBuckets;

use crate::catalogue::item::Entry;
use crate::catalogue::name_patterns::glob_set;
use globset::GlobSet;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use octo_model::{Caller, Principal, ToolError, sha256_hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shared_limit::SharedLimit;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

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
    counts: Arc<Counts>,
}

/// The calls of each caller.
struct Counts {
    /// Decides alone if there are no shared buckets or if they cannot be reached.
    local: DefaultKeyedRateLimiter<Principal>,
    shared: Option<SharedLimit>,
}

/// All limits. A call is refused by the first one that is exceeded.
pub struct RateLimits {
    limits: Vec<CompiledLimit>,
    buckets: Option<Arc<SharedBuckets>>,
}

impl RateLimits {
    /// No limits yet.
    pub fn none(buckets: Option<Arc<SharedBuckets>>) -> Self {
        Self { limits: Vec::new(), buckets }
    }

    /// Unchanged rules keep their counts.
    pub fn replace(&self, rules: &[LimitRule]) -> Result<Self, globset::Error> {
        let mut known: Vec<&CompiledLimit> = self.limits.iter().collect();
        let limits = rules.iter().enumerate().map(|(at, rule)| {
            let tools = if rule.tools.is_empty() { None } else { Some(glob_set(&rule.tools)?) };
            let counts = match known.iter().position(|limit| limit.rule == *rule) {
                Some(at) => Arc::clone(&known.remove(at).counts),
                None => {
                    let twins = rules.iter().take(at).filter(|before| *before == rule).count();
                    Arc::new(Counts::new(rule, twins, self.buckets.as_ref()))
                }
            };
            Ok(CompiledLimit { rule: rule.clone(), tools, counts })
        });
        let limits = limits.collect::<Result<_, _>>()?;
        Ok(Self { limits, buckets: self.buckets.clone() })
    }

    pub async fn check(&self, caller: &Caller, entry: &Entry) -> Result<(), ToolError> {
        for limit in &self.limits {
            if limit.tools.as_ref().is_some_and(|globs| !globs.is_match(&entry.item.canonical_name)) {
                continue;
            }
            if let Err(wait) = limit.counts.check(&caller.principal).await {
                let seconds = wait.as_secs_f64().ceil();
                let message = format!("Rate limit exceeded for {}.", entry.listed_name);
                return Err(ToolError::rate_limited(message, wait).hint(format!("Try again in {seconds} s.")));
            }
        }
        Ok(())
    }
}

impl RateLimits {
    /// Questions of servers count only for rules that name them.
    pub async fn check_question(&self, caller: &Caller, name: &str) -> Result<(), ToolError> {
        for limit in &self.limits {
            if limit.tools.as_ref().is_some_and(|globs| globs.is_match(name))
                && let Err(wait) = limit.counts.check(&caller.principal).await
            {
                return Err(ToolError::rate_limited(format!("Rate limit exceeded for {name}."), wait));
            }
        }
        Ok(())
    }
}

impl Counts {
    /// `twins` is the number of equal rules before this one: each counts for itself.
    fn new(rule: &LimitRule, twins: usize, buckets: Option<&Arc<SharedBuckets>>) -> Self {
        let burst = rule.burst.unwrap_or(rule.per_minute);
        let quota = Quota::per_minute(rule.per_minute).allow_burst(burst);
        let shared = buckets.map(|buckets| {
            let identity = serde_json::json!([rule, twins]).to_string();
            SharedLimit::new(buckets, sha256_hex(identity.as_bytes()), burst.get(), rule.per_minute.get())
        });
        Self { local: RateLimiter::keyed(quota), shared }
    }

    /// Counts a call; an error is the time to wait.
    async fn check(&self, principal: &Principal) -> Result<(), Duration> {
        if let Some(shared) = &self.shared
            && let Some(decision) = shared.check(principal).await
        {
            return decision;
        }
        let refused = self.local.check_key(principal);
        refused.map_err(|refused| refused.wait_time_from(DefaultClock::default().now()))
    }
}
