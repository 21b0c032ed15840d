//! Applies changed settings at run time: when a file changes, on SIGHUP, and for `octoprox config reload`.

use crate::app::{App, invalid_pattern, profiles, rule_settings};
use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::gateway::Gateway;
use crate::process::running_hubs::HubFile;
use crate::process::service_manager;
use crate::settings::{Action, Flags, ReloadPlan, Settings, SettingsReader, SettingsWatcher};
use crate::stores::audit_pruner::Pruner;
use crate::stores::call_history::learn_from_history;
use crate::stores::text_model::TextModel;
use crate::telemetry::{ArgumentExcerpts, Logs, Redactor};
use octo_hub::Hub;
use octo_mcp::Mcp;
use octo_web::Tokens;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::Signal;
use tokio_util::task::AbortOnDropHandle;
use tools_memory::SemanticMemory;

/// Result of a reload. Names settings and servers, never values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Settings that were applied.
    pub applied: Vec<String>,
    /// Settings that require a restart.
    pub needs_restart: Vec<String>,
    /// Servers that were connected, dropped or swapped, with the reasons.
    pub servers: Vec<String>,
    /// Warnings for the operator.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Why nothing was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Authentication state of the listeners.
pub struct ListenerAccess {
    pub tokens: Tokens,
    pub mcp: Arc<Mcp>,
}

/// Applies changed settings, one reload at a time.
pub struct Reloader {
    rereader: Mutex<SettingsReader>,
    hub: Arc<Hub>,
    gateway: Gateway,
    redactor: Arc<Redactor>,
    logs: Arc<Logs>,
    contents: Arc<ArgumentExcerpts>,
    state_dir: Option<PathBuf>,
    memory: Option<Arc<SemanticMemory>>,
    pruner: Pruner,
    _pruning: Option<AbortOnDropHandle<()>>,
    access: Option<ListenerAccess>,
    /// File for the reports.
    hub_file: Option<HubFile>,
}

/// Watches the settings until dropped.
pub struct SettingsWatch {
    _watched: SettingsWatcher,
    _hangups: AbortOnDropHandle<()>,
}

impl Reloader {
    /// `in_force` are the settings as read. Needs a runtime.
    pub fn new(
        session: &AppContext,
        assembly: &App,
        flags: Flags,
        in_force: Settings,
        door: Option<ListenerAccess>,
    ) -> Arc<Self> {
        let file = session.loaded.settings.state_dir.as_deref().filter(|_| door.is_some());
        let file = file.and_then(|state| {
            HubFile::create(state)
                .inspect_err(
                    |error| tracing::warn!(%error, "`octoprox config reload` will not find this hub"),
                )
                .ok()
        });
        assembly.gateway.record_applied(&in_force.servers);
        let state_dir = in_force.state_dir.clone();
        load_text_model(state_dir.as_deref(), &assembly.hub, assembly.memory.as_ref());
        learn_from_history(&assembly.hub, &assembly.audit_reader);
        let pruner = Pruner::default();
        pruner.set_retention(in_force.audit.retention());
        let pruning = in_force.state_dir.is_some().then(|| {
            AbortOnDropHandle::new(tokio::spawn(pruner.clone().run(Arc::clone(&assembly.audit_reader))))
        });
        Arc::new(Self {
            rereader: Mutex::new(SettingsReader::new(
                session.world.clone(),
                flags,
                &session.loaded,
                in_force,
            )),
            hub: Arc::clone(&assembly.hub),
            gateway: assembly.gateway.clone(),
            redactor: Arc::clone(&session.redactor),
            logs: Arc::clone(&session.logs),
            contents: Arc::clone(&assembly.contents),
            state_dir,
            memory: assembly.memory.clone(),
            pruner,
            _pruning: pruning,
            access: door,
            hub_file: file,
        })
    }

    /// Reloads on file changes and signals. Needs a runtime.
    pub fn watch(self: Arc<Self>, session: &AppContext, mut hangups: Signal) -> SettingsWatch {
        let reloader = Arc::clone(&self);
        let watched = SettingsWatcher::start(&session.loaded, move || drop(reloader.reload()));
        let hangups = tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                let reloader = Arc::clone(&self);
                service_manager::notify_reloading();
                let _ = tokio::task::spawn_blocking(move || {
                    if let Err(error) = reloader.logs.reopen() {
                        tracing::error!(%error, "cannot reopen the log file");
                    }
                    reloader.reload()
                })
                .await;
                service_manager::notify_ready();
            }
        });
        SettingsWatch { _watched: watched, _hangups: AbortOnDropHandle::new(hangups) }
    }

    /// Reads the settings again and applies the changes, or nothing if they are invalid. Needs a runtime.
    pub fn reload(&self) -> ReloadReport {
        let mut rereader = self.rereader.lock().unwrap_or_else(PoisonError::into_inner);
        let applied = tokio::task::block_in_place(|| self.apply(&mut rereader));
        let report = match applied {
            Ok(report) => report,
            Err(error) => {
                let error = self.redactor.redact(error.text()).into_owned();
                tracing::error!(error, "invalid settings; keeping the current ones");
                ReloadReport { error: Some(error), ..ReloadReport::default() }
            }
        };
        if let Some(file) = &self.hub_file
            && let Err(error) = file.report(&report)
        {
            tracing::warn!(%error, "cannot record the result for `octoprox config reload`");
        }
        report
    }

    fn apply(&self, rereader: &mut SettingsReader) -> Result<ReloadReport, AppError> {
        let reloaded = rereader.read_stable()?;
        self.redactor.add_secrets(reloaded.secrets.iter().cloned());
        let settings = &reloaded.settings;
        let tokens = Tokens::new(&settings.auth.tokens)
            .map_err(|error| AppError::invalid(format!("auth.tokens: {error}")))?;
        let profiles = profiles(settings)?;
        // Rules are applied before tokens, so that newly accepted callers are subject to the new rules.
        self.hub.apply(rule_settings(settings), profiles).map_err(|error| invalid_pattern(&error))?;
        if let Some(door) = &self.access {
            door.tokens.replace(&tokens);
            door.mcp.end_revoked_callers(|caller| door.tokens.still_accepts(caller));
            if door.tokens.are_required() {
                door.mcp.keep_lists_private();
            }
        }
        self.contents.update(settings);
        self.pruner.set_retention(settings.audit.retention());
        self.logs.set_level(&settings.telemetry.log_level);
        self.gateway.apply(&self.hub, &reloaded);
        load_text_model(self.state_dir.as_deref(), &self.hub, self.memory.as_ref());
        rereader.mark_applied(&reloaded);
        for setting in &reloaded.applied {
            tracing::info!(setting, "setting applied");
        }
        for setting in &reloaded.needs_restart {
            tracing::warn!(setting, "setting changed; restart the hub to apply it");
        }
        let warnings = self.warnings(&reloaded);
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(ReloadReport { warnings, ..report(reloaded) })
    }

    /// Warns if no token is left: the hub then refuses all requests and may fail to restart.
    fn warnings(&self, reloaded: &ReloadPlan) -> Vec<String> {
        let Some(door) = &self.access else { return Vec::new() };
        let closed = reloaded.settings.auth.tokens.is_empty() && door.tokens.are_required();
        let closed = closed
            .then(|| "No tokens left, so every request is refused until the hub is restarted.".to_owned());
        let unfit = reloaded.binding.as_ref().map(|problem| format!("The hub would not start: {problem}"));
        closed.into_iter().chain(unfit).collect()
    }
}

/// The model for the search by meaning may have been installed since the last time.
fn load_text_model(state_dir: Option<&Path>, hub: &Arc<Hub>, memory: Option<&Arc<SemanticMemory>>) {
    if let Some(state_dir) = state_dir {
        TextModel::new(state_dir).load(hub, memory);
    }
}

fn report(reloaded: ReloadPlan) -> ReloadReport {
    let changed = reloaded.changes.iter().filter(|change| change.action != Action::Unchanged);
    let servers = changed.map(|change| format!("{} {}: {}", change.action, change.server, change.reason));
    ReloadReport {
        servers: servers.collect(),
        applied: reloaded.applied,
        needs_restart: reloaded.needs_restart,
        ..ReloadReport::default()
    }
}
