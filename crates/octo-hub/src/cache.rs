//! Answers that may be given again: only what the settings name, only for the same caller.

use crate::item::Entry;
use crate::profile::globs;
use aws_lc_rs::digest::{Context, SHA256};
use globset::GlobSet;
use moka::future::Cache;
use octo_model::{Caller, Members, Op};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const MAX_BYTES: u64 = 64 << 20;

/// For how long answers of some tools are kept. A native tool is only ever cached when it reads and repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    /// Patterns of names as listed at `/mcp`.
    pub tools: Vec<String>,
    /// How long an answer is given again.
    pub ttl_seconds: u64,
}

type Key = [u8; 32];

pub struct Answers {
    rules: Vec<(GlobSet, Duration)>,
    kept: Cache<Key, (Instant, Members)>,
}

impl Answers {
    pub fn new(rules: &[CacheRule]) -> Result<Self, globset::Error> {
        let rules = rules.iter().map(|rule| Ok((globs(&rule.tools)?, Duration::from_secs(rule.ttl_seconds))));
        let kept = Cache::builder()
            .max_capacity(MAX_BYTES)
            .weigher(|_, (_, answer): &(Instant, Members)| {
                answer.iter().map(|(_, value)| value.bytes().len() as u32).sum::<u32>().max(64)
            })
            .build();
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, kept })
    }

    /// The key under which an answer may be kept, or nothing.
    pub fn key(&self, caller: &Caller, entry: &Entry, op: &Op) -> Option<(Key, Duration)> {
        if self.rules.is_empty() || op.params.get("requestState").is_some() {
            return None;
        }
        let ttl = self.rules.iter().find(|(globs, _)| globs.is_match(&entry.item.canonical))?.1;
        let effect = entry.effect();
        if entry.item.vouched && !(effect.read_only && effect.idempotent) {
            return None;
        }
        let mut hash = Context::new(&SHA256);
        let arguments = op.params.get("arguments").map(|json| json.as_str()).unwrap_or_default();
        let target = entry.item.target();
        for part in [&caller.tenant, &caller.subject, op.method.as_str(), target.as_str(), arguments] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut key = Key::default();
        key.copy_from_slice(hash.finish().as_ref());
        Some((key, ttl))
    }

    pub async fn get(&self, key: &Key) -> Option<Members> {
        let (until, answer) = self.kept.get(key).await?;
        (until > Instant::now()).then_some(answer)
    }

    pub async fn put(&self, key: Key, ttl: Duration, answer: &Members) {
        let complete = answer.text("resultType").is_none_or(|kind| kind == "complete");
        if complete && !answer.is_true("isError") {
            self.kept.insert(key, (Instant::now() + ttl, answer.clone())).await;
        }
    }

    /// Forgets everything: a source has changed.
    pub fn clear(&self) {
        self.kept.invalidate_all();
    }
}
