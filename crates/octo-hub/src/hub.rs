//! The hub itself: its parts, put together once.

use crate::catalogue::absent_servers::AbsentServers;
use crate::catalogue::item::Entry;
use crate::catalogue::profile::Profile;
use crate::catalogue::profile_view::View;
use crate::catalogue::{Catalogue, Change};
use crate::pipeline::approval::Approver;
use crate::pipeline::call_pipeline::Request;
use crate::pipeline::call_rules::{CallRules, RuleSettings};
use crate::pipeline::policy::{PolicyEngine, PolicySettings, check_visible, is_visible};
use crate::pipeline::rate_limit::LimitRule;
use crate::pipeline::response_cache::CacheRule;
use crate::pipeline::telemetry::{Excerpts, Tracer};
use crate::pipeline::validate::ArgumentValidator;
use crate::ports::{AuditLog, ResultStore};
use crate::results::jq_eval::JqRunner;
use crate::results::result_limit::ResultLimits;
use crate::results::results_source;
use crate::subscriptions::subscription_counts::SubscriptionCounts;
use arc_swap::ArcSwap;
use octo_model::{Caller, Json, JsonObject, Operation, ToolError};
use octo_toolkit::{Listing, Source, SourceState};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::broadcast;

/// A call for something of a source that is still starting waits this long.
const STARTING_SOURCE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a hub is made of.
pub struct HubConfig {
    pub sources: Vec<Arc<dyn Source>>,
    pub profiles: Vec<Profile>,
    pub policy: PolicySettings,
    pub limits: Vec<LimitRule>,
    pub cache: Vec<CacheRule>,
    pub shape: ResultLimits,
    pub timeout: Duration,
    pub ledger: Arc<dyn AuditLog>,
    pub spills: Arc<dyn ResultStore>,
    pub jq: JqRunner,
    pub tracer: Option<Arc<dyn Tracer>>,
}

pub struct Hub {
    catalogue: Arc<Catalogue>,
    absent_servers: AbsentServers,
    rules: ArcSwap<CallRules>,
    pub(crate) result_limits: ResultLimits,
    pub(crate) ledger: Arc<dyn AuditLog>,
    pub(crate) spills: Arc<dyn ResultStore>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    pub(crate) validator: ArgumentValidator,
    pub(crate) subscriptions: Arc<SubscriptionCounts>,
    excerpts: OnceLock<Arc<dyn Excerpts>>,
    approver: OnceLock<Arc<dyn Approver>>,
}

impl Hub {
    /// Fails on a pattern that cannot be read. Needs a runtime, since it follows its sources.
    pub fn new(mut parts: HubConfig) -> Result<Arc<Self>, globset::Error> {
        parts.sources.push(results_source::source(
            Arc::clone(&parts.spills),
            parts.jq,
            parts.shape.max_resource_bytes,
        ));
        let catalogue = Catalogue::new(parts.sources, parts.profiles);
        catalogue.watch_sources();
        let rules = RuleSettings {
            policy: parts.policy,
            limits: parts.limits,
            cache: parts.cache,
            timeout: parts.timeout,
        };
        let hub = Arc::new(Self {
            catalogue,
            absent_servers: AbsentServers::default(),
            rules: ArcSwap::from_pointee(CallRules::new(rules, None)?),
            result_limits: parts.shape,
            ledger: parts.ledger,
            spills: parts.spills,
            tracer: parts.tracer,
            validator: ArgumentValidator::default(),
            subscriptions: Arc::default(),
            excerpts: OnceLock::new(),
            approver: OnceLock::new(),
        });
        tokio::spawn(clear_cache_on_change(Arc::downgrade(&hub), hub.changes()));
        Ok(hub)
    }

    /// The rules in force. A call keeps those that it began with.
    pub(crate) fn rules(&self) -> Arc<CallRules> {
        self.rules.load_full()
    }

    /// Puts other rules and profiles in force, or changes nothing when a pattern cannot be read. Calls under way end by the
    /// rules that they began with.
    pub fn apply(&self, rules: RuleSettings, profiles: Vec<Profile>) -> Result<(), globset::Error> {
        let before = self.rules();
        let fresh = CallRules::new(rules, Some(&before))?;
        let decides_anew = fresh.settings.policy != before.settings.policy;
        // A profile gives no rights, so it may be there before the rules are.
        self.catalogue.set_profiles(profiles);
        self.rules.store(Arc::new(fresh));
        if decides_anew {
            self.catalogue.announce_lists();
        }
        Ok(())
    }

    /// Puts another policy in force in place of the rules of the settings, also when these change; nothing puts the rules in
    /// force again.
    pub fn set_policy(&self, engine: Option<Arc<dyn PolicyEngine>>) -> Result<(), globset::Error> {
        let rules = self.rules().with_policy(engine)?;
        rules.cache.clear();
        self.rules.store(Arc::new(rules));
        self.catalogue.announce_lists();
        Ok(())
    }

    /// Asks this approver about calls that need approval from now on. It is told once.
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        let _ = self.approver.set(approver);
    }

    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.approver.get()
    }

    /// Shows arguments in the log and the audit from now on, as far as these say. It is told once.
    pub fn set_excerpts(&self, excerpts: Arc<dyn Excerpts>) {
        let _ = self.excerpts.set(excerpts);
    }

    pub(crate) fn excerpts(&self) -> Option<&Arc<dyn Excerpts>> {
        self.excerpts.get()
    }

    /// Whether every caller sees the same lists.
    pub fn has_shared_listing(&self) -> bool {
        self.rules.load().policy.allows_everything()
    }

    pub fn view(&self, profile: &str) -> Result<Arc<View>, ToolError> {
        self.catalogue.view(profile).ok_or_else(|| {
            ToolError::not_found(format!("There is no profile `{profile}`."))
                .hint("Profiles are named in the settings.")
        })
    }

    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.catalogue.changes()
    }

    pub async fn wait_until_listed(&self, profile: &str, at_most: Duration) {
        self.catalogue.wait_until_listed(profile, at_most).await;
    }

    /// Gives sources a moment to list after the start of the hub, so that the first list is whole.
    pub async fn wait_for_startup_listing(&self, profile: &str) {
        self.wait_until_listed(profile, self.catalogue.startup_wait_left()).await;
    }

    /// Every source: its name, whether it is native, how it is doing, and what it has.
    pub fn sources(&self) -> Vec<(String, bool, SourceState, Arc<Listing>)> {
        self.catalogue.source_states()
    }

    /// Adds a source while the hub runs, in place of the one with its name and kind if there is one. Needs a runtime.
    pub fn put_source(&self, source: Arc<dyn Source>) {
        self.catalogue.put(source);
    }

    /// Takes a server out of every list; false when there is none with this name. Calls under way end where they began.
    pub fn remove_server(&self, name: &str) -> bool {
        self.catalogue.remove(name)
    }

    /// Servers of the settings that are not connected, each with what the operator can do about it.
    pub fn set_absent_servers(&self, servers: BTreeMap<String, String>) {
        self.absent_servers.set(servers);
    }

    /// The entry a request asks for. What is still starting is waited for.
    pub(crate) async fn find(&self, request: &Request) -> Result<Entry, ToolError> {
        let view = self.view(&request.profile)?;
        if let Some(entry) = view.find(&request.op) {
            return Ok(entry);
        }
        if !view.is_starting {
            return Err(self.not_found_error(&request.profile, &view, &request.caller, &request.op));
        }
        self.wait_until_listed(&request.profile, STARTING_SOURCE_TIMEOUT).await;
        let view = self.view(&request.profile)?;
        view.find(&request.op)
            .ok_or_else(|| self.not_found_error(&request.profile, &view, &request.caller, &request.op))
    }

    /// Why a name leads nowhere, told without naming what the caller may not use.
    pub fn not_found_error(&self, profile: &str, view: &View, caller: &Caller, op: &Operation) -> ToolError {
        let rules = self.rules();
        view.not_found_error(op, &self.absent_servers.get(), |entry| {
            is_visible(&*rules.policy, profile, caller, entry)
        })
    }

    /// A tool as this caller may call it at this profile, or why not.
    pub fn tool(&self, profile: &str, caller: &Caller, name: &str) -> Result<Entry, ToolError> {
        let view = self.view(profile)?;
        let op = Operation::tool(name, Json::empty_object());
        let entry = view.find(&op).ok_or_else(|| self.not_found_error(profile, &view, caller, &op))?;
        check_visible(&*self.rules().policy, profile, caller, &entry)?;
        Ok(entry)
    }

    /// A reply as it was before it was cut.
    pub async fn untruncated(&self, caller: &Caller, result: JsonObject) -> Result<JsonObject, ToolError> {
        match result.inner_text("_meta", "octoprox/result_handle") {
            Some(handle) => self.spills.load(caller, &handle).await?.members().map_err(ToolError::internal),
            None => Ok(result),
        }
    }
}

/// A source that changed may answer differently.
async fn clear_cache_on_change(hub: std::sync::Weak<Hub>, mut changes: broadcast::Receiver<Change>) {
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
