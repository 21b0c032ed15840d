//! How often a caller may call.

use crate::item::Entry;
use crate::profile::globs;
use globset::GlobSet;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use octo_model::{Caller, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A limit for each caller over the tools that match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// Patterns of names as listed at `/mcp`. Empty: all tools together.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Calls that each caller may make in a minute.
    pub per_minute: NonZeroU32,
    /// Calls that may come at once; `per_minute` when absent.
    #[serde(default)]
    pub burst: Option<NonZeroU32>,
}

struct Limit {
    tools: Option<GlobSet>,
    limiter: DefaultKeyedRateLimiter<String>,
}

/// All limits; the first that is used up refuses.
pub struct Limits(Vec<Limit>);

impl Limits {
    pub fn new(rules: &[LimitRule]) -> Result<Self, globset::Error> {
        let limits = rules.iter().map(|rule| {
            let quota = Quota::per_minute(rule.per_minute).allow_burst(rule.burst.unwrap_or(rule.per_minute));
            let tools = if rule.tools.is_empty() { None } else { Some(globs(&rule.tools)?) };
            Ok(Limit { tools, limiter: RateLimiter::keyed(quota) })
        });
        limits.collect::<Result<_, _>>().map(Self)
    }

    pub fn take(&self, caller: &Caller, entry: &Entry) -> Result<(), ToolError> {
        for limit in &self.0 {
            if limit.tools.as_ref().is_some_and(|globs| !globs.is_match(&entry.item.canonical)) {
                continue;
            }
            let key = format!("{}/{}", caller.tenant, caller.subject);
            if let Err(refused) = limit.limiter.check_key(&key) {
                let wait = refused.wait_time_from(DefaultClock::default().now());
                let seconds = wait.as_secs_f64().ceil();
                return Err(ToolError::unavailable(format!(
                    "The limit for calls of {} is used up.",
                    entry.listed
                ))
                .hint(format!("Try again in {seconds} s."))
                .retry_after(wait));
            }
        }
        Ok(())
    }
}
