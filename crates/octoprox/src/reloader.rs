//! Changed settings, put in force while the hub runs: when a file changes, on SIGHUP, and for `octoprox config reload`.

use crate::app::{App, invalid_pattern, profiles, rule_settings};
use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::audit_pruner::Pruner;
use crate::gateway::Gateway;
use crate::running_hubs::HubFile;
use crate::settings::{Action, Environment, Flags, ReloadPlan, Settings, SettingsReader, SettingsWatcher};
use crate::telemetry::{ArgumentExcerpts, Logs, Redactor};
use octo_hub::Hub;
use octo_mcp::Mcp;
use octo_web::Tokens;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::Signal;

/// What a reload has done. Names settings and servers, never values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Settings that are in force now.
    pub applied: Vec<String>,
    /// Settings that differ from those in force until the hub is started again.
    pub needs_restart: Vec<String>,
    /// Servers that were connected, dropped or swapped, and why.
    pub servers: Vec<String>,
    /// What the operator should know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Why nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who may come in, where somebody listens.
pub struct ListenerAccess {
    pub tokens: Tokens,
    pub mcp: Arc<Mcp>,
}

/// Puts changed settings in force, one reload after the other.
pub struct Reloader {
    rereader: Mutex<SettingsReader>,
    hub: Arc<Hub>,
    gateway: Gateway,
    redactor: Arc<Redactor>,
    logs: Arc<Logs>,
    contents: Arc<ArgumentExcerpts>,
    pruner: Pruner,
    access: Option<ListenerAccess>,
    /// Where reports go.
    hub_file: Option<HubFile>,
}

/// Follows the settings until it is dropped.
pub struct SettingsWatch {
    _watched: SettingsWatcher,
    _hangups: tokio::task::JoinHandle<()>,
}

impl Reloader {
    /// `in_force` are the settings as they were read. Needs a runtime.
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
        let pruner = Pruner::default();
        pruner.set_retention(in_force.audit.retention());
        if in_force.state_dir.is_some() {
            tokio::spawn(pruner.clone().run(Arc::clone(&assembly.audit_reader)));
        }
        Arc::new(Self {
            rereader: Mutex::new(SettingsReader::new(
                Environment::current(),
                flags,
                &session.loaded,
                in_force,
            )),
            hub: Arc::clone(&assembly.hub),
            gateway: assembly.gateway.clone(),
            redactor: Arc::clone(&session.redactor),
            logs: Arc::clone(&session.logs),
            contents: Arc::clone(&assembly.contents),
            pruner,
            access: door,
            hub_file: file,
        })
    }

    /// Reloads whenever a file changes, and for each signal. Needs a runtime.
    pub fn watch(self: Arc<Self>, session: &AppContext, mut hangups: Signal) -> SettingsWatch {
        let reloader = Arc::clone(&self);
        let watched = SettingsWatcher::start(&session.loaded, move || drop(reloader.reload()));
        let hangups = tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                let reloader = Arc::clone(&self);
                let _ = tokio::task::spawn_blocking(move || {
                    if let Err(error) = reloader.logs.reopen() {
                        tracing::error!(%error, "the log file cannot be opened again");
                    }
                    reloader.reload()
                })
                .await;
            }
        });
        SettingsWatch { _watched: watched, _hangups: hangups }
    }

    /// Reads the settings again and puts in force what has changed, or nothing when something is wrong. Needs a runtime.
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
            tracing::warn!(%error, "what was reloaded cannot be noted for `octoprox config reload`");
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
        // A caller who is let in only now meets the rules of now.
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
        self.gateway.apply(&reloaded);
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

    /// A hub whose last token is gone stays closed, and may not be able to start again.
    fn warnings(&self, reloaded: &ReloadPlan) -> Vec<String> {
        let Some(door) = &self.access else { return Vec::new() };
        let closed = reloaded.settings.auth.tokens.is_empty() && door.tokens.are_required();
        let closed = closed
            .then(|| "No token is left, so every request is refused until the hub is restarted.".to_owned());
        let unfit = reloaded.binding.as_ref().map(|problem| format!("The hub would not start: {problem}"));
        closed.into_iter().chain(unfit).collect()
    }
}

fn report(reloaded: ReloadPlan) -> ReloadReport {
    let changed = reloaded.changes.iter().filter(|change| change.action != Action::Unchanged);
    let servers = changed.map(|change| format!("{} {}: {}", change.action, change.server, change.why));
    ReloadReport {
        servers: servers.collect(),
        applied: reloaded.applied,
        needs_restart: reloaded.needs_restart,
        ..ReloadReport::default()
    }
}
