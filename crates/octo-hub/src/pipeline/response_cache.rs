//! Response cache: only for tools that the settings name, and only per caller.

use crate::catalogue::item::Entry;
use crate::catalogue::name_patterns::glob_set;
use crate::catalogue::scoped_uris::is_app_uri;
use crate::catalogue::uri_spellings::is_uri_pattern;
use crate::results::result_limit::reply_size;
use aws_lc_rs::digest::{Context, SHA256};
use globset::GlobSet;
use moka::future::Cache;
use octo_model::{Caller, EffectClass, EffectOrigin, JsonObject, Method, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The `_meta` member that marks a cached reply.
const CACHED_META_KEY: &str = "octoprox/cached";
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Members of `_meta` that do not affect the reply.
const PER_CALL_META_KEYS: [&str; 3] = ["progressToken", "traceparent", "tracestate"];

/// How long replies of some tools are cached. A native tool is only cached if it reads and is idempotent. A
/// call that changes something through the hub invalidates the replies of the same server; all toolboxes
/// count as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    /// Patterns of tool names as listed at `/mcp`, or of resource URIs: those with `://`.
    pub tools: Vec<String>,
    /// How long a reply is reused.
    pub ttl_seconds: u64,
}

type Key = [u8; 32];

/// Cache key and lifetime of a reply.
pub struct CacheSlot {
    key: Key,
    ttl: Duration,
    /// Generation of the server's replies when the call started.
    generation: u64,
}

struct CompiledCacheRule {
    tools: GlobSet,
    uris: GlobSet,
    ttl: Duration,
}

/// A reply and its expiry.
#[derive(Clone)]
struct CachedReply {
    expires_at: Instant,
    generation: u64,
    reply: JsonObject,
}

pub struct ResponseCache {
    rules: Vec<CompiledCacheRule>,
    replies: Cache<Key, CachedReply>,
    /// Number of invalidations per server.
    generations: Arc<Mutex<HashMap<String, u64>>>,
}

/// Invalidates the cached replies of a server when dropped, whatever the outcome of the call.
pub struct InvalidateOnDrop<'a> {
    cache: &'a ResponseCache,
    group: String,
}

impl Drop for InvalidateOnDrop<'_> {
    fn drop(&mut self) {
        *self.cache.generations().entry(std::mem::take(&mut self.group)).or_default() += 1;
    }
}

impl ResponseCache {
    /// A change that started under earlier rules still invalidates replies cached under these.
    pub fn new(rules: &[CacheRule], before: Option<&Self>) -> Result<Self, globset::Error> {
        let rules = rules.iter().map(|rule| {
            let (uris, tools): (Vec<_>, Vec<_>) =
                rule.tools.iter().cloned().partition(|pattern| is_uri_pattern(pattern));
            Ok(CompiledCacheRule {
                tools: glob_set(&tools)?,
                uris: glob_set(&uris)?,
                ttl: Duration::from_secs(rule.ttl_seconds),
            })
        });
        let kept = Cache::builder()
            .max_capacity(MAX_CACHE_BYTES)
            .weigher(|_, kept: &CachedReply| {
                u32::try_from(reply_size(&kept.reply)).unwrap_or(u32::MAX).saturating_add(64)
            })
            .build();
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            replies: kept,
            generations: before.map(|it| Arc::clone(&it.generations)).unwrap_or_default(),
        })
    }

    fn generations(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a reply to this operation is cached.
    fn ttl(&self, entry: &Entry, op: &Operation) -> Option<Duration> {
        let effect = entry.effect();
        let changes = match entry.item.effect_origin {
            EffectOrigin::Native => !(effect.read_only && effect.idempotent),
            EffectOrigin::Declared => !effect.read_only,
            EffectOrigin::Assumed => false,
        };
        // What an app client may read is checked when it is read.
        let is_app = op.method == Method::ReadResource && is_app_uri(&op.name);
        if changes || is_app || op.params.get("requestState").is_some() {
            return None;
        }
        let matches = |rule: &&CompiledCacheRule| match op.method {
            Method::CallTool => rule.tools.is_match(&entry.item.canonical_name),
            Method::ReadResource => rule.uris.is_match(&op.name),
            Method::GetPrompt
            | Method::Complete
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::GetSkill => false,
        };
        self.rules.iter().find(matches).map(|rule| rule.ttl)
    }

    /// The cache slot for this caller, profile, operation and size of the reply, if it may be cached.
    pub fn slot(
        &self,
        caller: &Caller,
        profile: &str,
        entry: &Entry,
        op: &Operation,
        max_bytes: usize,
    ) -> Option<CacheSlot> {
        if self.rules.is_empty() {
            return None;
        }
        let ttl = self.ttl(entry, op)?;
        let target = entry.item.target();
        let mut hash = Context::new(&SHA256);
        let mut add = |part: &str| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        for part in [
            &caller.principal.tenant,
            &caller.principal.subject,
            profile,
            op.method.as_str(),
            &target,
            &op.name,
            &max_bytes.to_string(),
        ] {
            add(part);
        }
        for (name, value) in op.params.iter().filter(|(name, _)| *name != "_meta") {
            add(name);
            add(value.as_str());
        }
        for (name, value) in
            op.params.object("_meta").iter().filter(|(name, _)| !PER_CALL_META_KEYS.contains(name))
        {
            add(name);
            add(value.as_str());
        }
        let mut key = Key::default();
        key.copy_from_slice(hash.finish().as_ref());
        let age = self.generations().get(&invalidation_group(entry)).copied().unwrap_or_default();
        Some(CacheSlot { key, ttl, generation: age })
    }

    /// Guard for a call that may change something. Tools with a cache rule are assumed to change nothing.
    pub fn invalidate_after(&self, entry: &Entry, op: &Operation) -> Option<InvalidateOnDrop<'_>> {
        let reads = || entry.effect().class() == EffectClass::Reads || op.method != Method::CallTool;
        if reads() || self.ttl(entry, op).is_some() {
            return None;
        }
        Some(InvalidateOnDrop { cache: self, group: invalidation_group(entry) })
    }

    pub async fn get(&self, slot: &CacheSlot) -> Option<JsonObject> {
        let kept = self.replies.get(&slot.key).await?;
        (kept.expires_at > Instant::now() && kept.generation == slot.generation)
            .then(|| with_cached_mark(kept.reply))
    }

    pub async fn put(&self, slot: CacheSlot, answer: &JsonObject) {
        let complete = answer.text("resultType").is_none_or(|kind| kind == "complete");
        if complete && !answer.is_true("isError") {
            let kept = CachedReply {
                expires_at: Instant::now() + slot.ttl,
                generation: slot.generation,
                reply: answer.detached(),
            };
            self.replies.insert(slot.key, kept).await;
        }
    }

    /// Clears the cache after a source has changed.
    pub fn clear(&self) {
        self.replies.invalidate_all();
    }
}

/// Marks a reply as cached.
fn with_cached_mark(answer: JsonObject) -> JsonObject {
    let meta = answer.object("_meta").with(CACHED_META_KEY, true);
    answer.with("_meta", meta)
}

/// Toolboxes work on the same machine, so they share one group.
fn invalidation_group(entry: &Entry) -> String {
    if entry.item.source.is_native() { String::new() } else { entry.source_name().to_owned() }
}
