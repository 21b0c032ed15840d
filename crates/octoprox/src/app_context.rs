//! Context of every command: settings, logs and a runtime.

use crate::app_error::AppError;
use crate::fleet::Fleet;
use crate::gateway::UpstreamPool;
use crate::settings::{Environment, Flags, LoadedSettings, WORKSPACE_REMEDY, load};
use crate::telemetry::{LogMode, Logs, Redactor, SpanExport, init_logging, settings_secrets};
use crate::terminal::console;
use crate::toolboxes::net_spec;
use octo_grants::Net;
use std::sync::Arc;

/// More threads do not make a hub faster, and each has a stack.
const MAX_WORKER_THREADS: usize = 8;

/// Whether tools are called, so that calls are recorded and traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppMode {
    CallTools,
    ReadOnly,
}

/// Settings, logs and traces of a command.
pub struct AppContext {
    pub loaded: LoadedSettings,
    pub purpose: AppMode,
    pub log_mode: LogMode,
    /// Network access to the servers and collectors named in the settings.
    pub net: Net,
    pub export: Option<SpanExport>,
    /// Redacts secrets in all output.
    pub redactor: Arc<Redactor>,
    pub logs: Arc<Logs>,
    /// Environment that the settings were loaded in.
    pub world: Environment,
    /// Servers that apps of the same process share.
    pub pool: UpstreamPool,
    /// The fleet that this process is a node of.
    pub fleet: Option<Fleet>,
}

/// Loads the settings for interactive commands and reports ignored project files.
pub fn load_settings(flags: &Flags) -> Result<LoadedSettings, AppError> {
    let loaded = load_settings_silently(flags)?;
    loaded.unapproved.iter().for_each(|ignored| console::print_err(&format!("octoprox: {ignored}")));
    Ok(loaded)
}

/// Loads the settings for commands that report ignored files in their log.
pub fn load_settings_silently(flags: &Flags) -> Result<LoadedSettings, AppError> {
    Ok(load(&Environment::current(), flags)?)
}

impl AppContext {
    /// Starts logs and traces. Needs a runtime.
    pub fn start(loaded: LoadedSettings, talk: LogMode, purpose: AppMode) -> Result<Self, AppError> {
        let telemetry = &loaded.settings.telemetry;
        let redactor = Arc::new(Redactor::new(settings_secrets(&loaded)));
        let net = Net::new(net_spec(&loaded.settings))?;
        let export = match purpose {
            AppMode::ReadOnly => None,
            AppMode::CallTools => SpanExport::start(telemetry, &net, &redactor).map_err(|error| {
                AppError::new(format!("telemetry.otlp_endpoint: {error}. Check the URL."))
            })?,
        };
        let logs = init_logging(talk, telemetry, &redactor, export.as_ref().map(SpanExport::tracer))
            .map_err(|error| {
                AppError::new(format!(
                    "telemetry.log_file: cannot write the file: {error}. Use another path."
                ))
            })?;
        match talk {
            LogMode::Command => {
                loaded.notes.iter().for_each(|note| console::print_err(&format!("octoprox: {note}")))
            }
            _ => log_notes(&loaded),
        }
        let (logs, world) = (Arc::new(logs), Environment::current());
        let pool = UpstreamPool::default();
        Ok(Self { loaded, purpose, log_mode: talk, net, export, redactor, logs, world, pool, fleet: None })
    }

    /// The same process for a session with its own environment and settings: logs, spans and servers are shared.
    pub fn for_session(&self, loaded: LoadedSettings, world: Environment) -> Result<Self, AppError> {
        let is_same_telemetry = loaded.settings.telemetry == self.loaded.settings.telemetry;
        self.redactor.add_secrets(settings_secrets(&loaded));
        log_notes(&loaded);
        Ok(Self {
            net: Net::new(net_spec(&loaded.settings))?,
            loaded,
            world,
            purpose: self.purpose,
            log_mode: self.log_mode,
            // Spans go only where the session's own settings say.
            export: self.export.clone().filter(|_| is_same_telemetry),
            redactor: Arc::clone(&self.redactor),
            logs: Arc::clone(&self.logs),
            pool: self.pool.clone(),
            fleet: self.fleet.clone(),
        })
    }

    /// Sends the last spans.
    pub async fn shutdown(self) {
        if let Some(export) = self.export {
            export.shutdown().await;
        }
    }
}

fn log_notes(loaded: &LoadedSettings) {
    loaded.notes.iter().chain(&loaded.unapproved).for_each(|note| tracing::warn!("{note}"));
    log_workspace(loaded);
}

/// Logs the workspace and how it was chosen.
fn log_workspace(loaded: &LoadedSettings) {
    let (reason, folder) = (loaded.workspace.reason(), loaded.settings.workspace.as_deref());
    match folder {
        Some(folder) => tracing::info!(workspace = %folder.display(), reason, "workspace"),
        None => tracing::warn!(reason, "no workspace. {WORKSPACE_REMEDY}"),
    }
}

/// Runs a future on a current-thread runtime.
pub fn block_on_current_thread<T>(work: impl Future<Output = Result<T, AppError>>) -> Result<T, AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// Runs a future on a runtime with one thread per core, up to a limit.
pub fn block_on_multi_thread<T>(work: impl Future<Output = Result<T, AppError>>) -> Result<T, AppError> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(MAX_WORKER_THREADS))
        .thread_name("octoprox")
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}
