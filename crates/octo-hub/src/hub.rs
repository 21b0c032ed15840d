//! The hub and its construction.

mod app_names;
pub(crate) mod call_pipeline;
mod call_wrapper;
mod client_instructions;
mod embed_tools;
mod find_tools;
pub(crate) mod list_pages;
mod nested_calls;
mod server_questions;
pub(crate) mod subscribe;

use crate::catalogue::absent_servers::AbsentServers;
use crate::catalogue::item::Entry;
use crate::catalogue::list_epoch::ListChanges;
use crate::catalogue::profile::Profile;
use crate::catalogue::profile_view::View;
use crate::catalogue::{Catalogue, Change};
use crate::find::find_source;
use crate::find::tool_index::ToolIndex;
use crate::find::tool_usage::ToolUsage;
use crate::find::tool_vectors::ToolVectors;
use crate::pipeline::approval::Approver;
use crate::pipeline::call_request::Request;
use crate::pipeline::call_rules::{CallRules, RuleSettings};
use crate::pipeline::error_limits::truncate_error;
use crate::pipeline::policy::{PolicyEngine, PolicySettings, is_visible};
use crate::pipeline::rate_limit::{LimitRule, SharedBuckets};
use crate::pipeline::response_cache::CacheRule;
use crate::pipeline::telemetry::{Excerpts, Tracer};
use crate::pipeline::validate::ArgumentValidator;
use crate::results::jq_eval::JqRunner;
use crate::results::result_limit::{HANDLE_META_KEY, ResultLimiter, ResultLimits};
use crate::results::results_source;
use crate::subscriptions::subscription_counts::SubscriptionCounts;
use arc_swap::ArcSwap;
use octo_admission::CallSlots;
use octo_code::ChildCommand;
use octo_model::{Caller, JsonObject, Operation, RemedyText, ToolError};
use octo_ports::{AuditLog, RateBuckets, ResultStore};
use octo_toolkit::{Listing, Source, SourceState};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// How long a call waits for an item of a source that is still starting.
const STARTING_SOURCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls of all callers at once, without nested ones. A call holds its arguments and its reply in memory.
const MAX_RUNNING_CALLS: usize = 5120;

/// Components of a hub.
pub struct HubConfig {
    pub sources: Vec<Arc<dyn Source>>,
    pub profiles: Vec<Profile>,
    pub policy: PolicySettings,
    pub limits: Vec<LimitRule>,
    /// With them, limits hold across all hubs that share them.
    pub rate_buckets: Option<Arc<dyn RateBuckets>>,
    pub cache: Vec<CacheRule>,
    pub result_limits: ResultLimits,
    pub timeout: Duration,
    pub audit_log: Arc<dyn AuditLog>,
    pub result_store: Arc<dyn ResultStore>,
    pub jq: JqRunner,
    /// How the process of a program is started. Without it, there is no `run_code`.
    pub code_child: Option<ChildCommand>,
    pub tracer: Option<Arc<dyn Tracer>>,
    pub remedy_text: RemedyText,
}

/// A source: name, whether it is native, state and listing.
pub type SourceReport = (String, bool, SourceState, Arc<Listing>);

pub struct Hub {
    /// For the contexts of its calls.
    this: Weak<Self>,
    catalogue: Arc<Catalogue>,
    tool_index: ToolIndex,
    tool_vectors: OnceLock<Arc<ToolVectors>>,
    tool_usage: ToolUsage,
    absent_servers: AbsentServers,
    rules: ArcSwap<CallRules>,
    pub(crate) slots: CallSlots,
    pub(crate) results: ResultLimiter,
    pub(crate) audit_log: Arc<dyn AuditLog>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    remedy_text: RemedyText,
    pub(crate) validator: ArgumentValidator,
    pub(crate) subscriptions: Arc<SubscriptionCounts>,
    excerpts: OnceLock<Arc<dyn Excerpts>>,
    approver: OnceLock<Arc<dyn Approver>>,
}

impl Hub {
    /// Fails on an invalid pattern. Needs a runtime, because it spawns tasks that watch the sources.
    pub fn new(mut parts: HubConfig) -> Result<Arc<Self>, globset::Error> {
        parts.sources.push(results_source::source(
            Arc::clone(&parts.result_store),
            parts.jq,
            parts.result_limits.max_resource_bytes,
        ));
        parts.sources.push(find_source::source(parts.code_child));
        let catalogue = Catalogue::new(parts.sources, parts.profiles, parts.remedy_text);
        catalogue.watch_sources();
        let rules = RuleSettings {
            policy: parts.policy,
            limits: parts.limits,
            cache: parts.cache,
            timeout: parts.timeout,
        };
        let buckets = parts.rate_buckets.map(|store| Arc::new(SharedBuckets::new(store)));
        let rules = CallRules::new(rules, buckets)?;
        let hub = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            catalogue,
            tool_index: ToolIndex::default(),
            tool_vectors: OnceLock::new(),
            tool_usage: ToolUsage::default(),
            absent_servers: AbsentServers::default(),
            rules: ArcSwap::from_pointee(rules),
            slots: CallSlots::new("calls", MAX_RUNNING_CALLS),
            results: ResultLimiter::new(parts.result_limits, parts.result_store),
            audit_log: parts.audit_log,
            tracer: parts.tracer,
            remedy_text: parts.remedy_text,
            validator: ArgumentValidator::default(),
            subscriptions: Arc::default(),
            excerpts: OnceLock::new(),
            approver: OnceLock::new(),
        });
        tokio::spawn(clear_cache_on_change(Arc::downgrade(&hub), hub.changes()));
        tokio::spawn(update_tool_index(Arc::downgrade(&hub), hub.catalogue.versions()));
        Ok(hub)
    }

    /// The current rules. A call keeps the rules it started with.
    pub(crate) fn rules(&self) -> Arc<CallRules> {
        self.rules.load_full()
    }

    /// Replaces rules and profiles; changes nothing if a pattern is invalid. Calls in progress keep the rules
    /// they started with.
    pub fn apply(&self, rules: RuleSettings, profiles: Vec<Profile>) -> Result<(), globset::Error> {
        let before = self.rules();
        let fresh = before.replace(rules)?;
        let decides_anew = fresh.settings.policy != before.settings.policy;
        // A profile grants no rights, so it may be replaced before the rules are.
        self.catalogue.set_profiles(profiles);
        self.rules.store(Arc::new(fresh));
        if decides_anew {
            self.catalogue.announce_lists();
        }
        Ok(())
    }

    /// Replaces the policy from the settings by `engine`, also across reloads; `None` restores the policy
    /// from the settings.
    pub fn set_policy(&self, engine: Option<Arc<dyn PolicyEngine>>) -> Result<(), globset::Error> {
        let rules = self.rules().with_policy(engine)?;
        rules.cache.clear();
        self.rules.store(Arc::new(rules));
        self.catalogue.announce_lists();
        Ok(())
    }

    /// Sets the approver for calls that need approval. Only the first call has an effect.
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        let _ = self.approver.set(approver);
    }

    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.approver.get()
    }

    /// Sets which arguments appear in the log and the audit log. Only the first call has an effect.
    pub fn set_excerpts(&self, excerpts: Arc<dyn Excerpts>) {
        let _ = self.excerpts.set(excerpts);
    }

    pub(crate) fn excerpts(&self) -> Option<&Arc<dyn Excerpts>> {
        self.excerpts.get()
    }

    /// An error as it leaves the hub.
    pub(crate) fn finish_error(&self, error: ToolError) -> ToolError {
        truncate_error(error.with_remedy_text(self.remedy_text), self.results.limits.max_bytes)
    }

    /// Returns whether all callers see the same lists.
    pub fn has_shared_listing(&self) -> bool {
        self.rules.load().policy.allows_everything()
    }

    pub fn view(&self, profile: &str) -> Result<Arc<View>, ToolError> {
        self.catalogue.view(profile).ok_or_else(|| {
            ToolError::not_found(format!("Profile not found: `{profile}`."))
                .hint("Profiles are named in the settings.")
        })
    }

    /// Notifies clients of additions to a profile from now on, also those that have listed it elsewhere.
    pub fn watch_lists(&self, profile: &str) {
        self.catalogue.watch_lists(profile);
    }

    /// Number of announced list changes, so that a client can tell whether it missed one.
    pub fn announcements(&self) -> u64 {
        self.catalogue.announcements()
    }

    /// Returns how often the lists of clients have changed.
    pub fn list_changes(&self) -> ListChanges {
        self.catalogue.list_changes()
    }

    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.catalogue.changes()
    }

    pub async fn wait_until_listed(&self, profile: &str, at_most: Duration) {
        self.catalogue.wait_until_listed(profile, at_most).await;
    }

    /// Waits briefly for sources to list after startup, so that the first list is complete.
    pub async fn wait_for_startup_listing(&self, profile: &str) {
        self.wait_until_listed(profile, self.catalogue.startup_wait_left()).await;
    }

    /// All sources.
    pub fn sources(&self) -> Vec<SourceReport> {
        self.catalogue.source_states()
    }

    /// The sources of which this caller may list something, or could if they were up. Administrators see all.
    pub fn sources_of(&self, caller: &Caller) -> Result<Vec<SourceReport>, ToolError> {
        let mut sources = self.sources();
        let rules = self.rules();
        if !(caller.is_admin() || rules.policy.allows_everything()) {
            let visible =
                self.view("")?.visible_sources(|entry| is_visible(&*rules.policy, "", caller, entry));
            sources.retain(|(name, ..)| visible.contains(name));
        }
        Ok(sources)
    }

    /// Adds a source while the hub runs, replacing one with the same name and kind. Needs a runtime.
    pub fn put_source(&self, source: Arc<dyn Source>) {
        self.catalogue.put(source);
    }

    /// Removes a server; returns false if there is none with this name. Calls in progress finish on the
    /// removed server.
    pub fn remove_server(&self, name: &str) -> bool {
        self.catalogue.remove(name)
    }

    /// Sets the configured servers that are not connected, each with what the operator can do about it.
    pub fn set_absent_servers(&self, servers: BTreeMap<String, String>) {
        self.absent_servers.set(servers);
    }

    /// Finds the entry that a request names. Waits for sources that are still starting.
    pub(crate) async fn find(&self, request: &Request) -> Result<Entry, ToolError> {
        let view = self.view(&request.profile)?;
        if let Some(entry) = view.find(&request.op) {
            // A tool for apps does not exist for a client that cannot show them.
            return if request.may_see(&entry) {
                Ok(entry)
            } else {
                Err(self.not_found_error(&request.profile, &view, &request.caller, &request.op))
            };
        }
        if !view.is_starting {
            return Err(self.not_found_error(&request.profile, &view, &request.caller, &request.op));
        }
        self.wait_until_listed(&request.profile, STARTING_SOURCE_TIMEOUT).await;
        let view = self.view(&request.profile)?;
        view.find(&request.op)
            .filter(|entry| request.may_see(entry))
            .ok_or_else(|| self.not_found_error(&request.profile, &view, &request.caller, &request.op))
    }

    /// The error for an unknown name. Does not mention items that the caller may not use.
    pub fn not_found_error(&self, profile: &str, view: &View, caller: &Caller, op: &Operation) -> ToolError {
        let rules = self.rules();
        view.not_found_error(op, &self.absent_servers.get(), |entry| {
            entry.item.app.is_for_model && is_visible(&*rules.policy, profile, caller, entry)
        })
    }

    /// Returns a reply as it was before truncation.
    pub async fn untruncated(&self, caller: &Caller, result: JsonObject) -> Result<JsonObject, ToolError> {
        match result.inner_text("_meta", HANDLE_META_KEY) {
            Some(handle) => {
                self.results.store.load(caller, &handle).await?.members().map_err(ToolError::internal)
            }
            None => Ok(result),
        }
    }
}

/// Clears the response cache when a source changes, since replies may differ.
async fn clear_cache_on_change(hub: Weak<Hub>, mut changes: broadcast::Receiver<Change>) {
    loop {
        match changes.recv().await {
            Err(broadcast::error::RecvError::Closed) => return,
            _ => match hub.upgrade() {
                Some(hub) => hub.rules().cache.clear(),
                None => return,
            },
        }
    }
}

/// Keeps the index of tools up to date for the next search.
async fn update_tool_index(hub: Weak<Hub>, mut versions: watch::Receiver<u64>) {
    while versions.changed().await.is_ok() {
        let Some(hub) = hub.upgrade() else { return };
        hub.tool_index.follow(&hub.catalogue).await;
    }
}
