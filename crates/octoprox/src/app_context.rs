//! What every command needs before it can begin: settings, logs, and a runtime.

use crate::app_error::AppError;
use crate::settings::{Environment, Flags, LoadedSettings, WORKSPACE_REMEDY, load};
use crate::telemetry::{LogMode, Logs, Redactor, SpanExport, init_logging, settings_secrets};
use crate::terminal::console;
use crate::toolboxes::net_spec;
use octo_grants::Net;
use std::sync::Arc;

/// More threads than this do not make a hub faster, and each has a stack.
const MAX_WORKER_THREADS: usize = 8;

/// Whether anything is called, so that it is recorded and traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppMode {
    CallTools,
    ReadOnly,
}

/// Settings and the means of talking about them.
pub struct AppContext {
    pub loaded: LoadedSettings,
    pub purpose: AppMode,
    pub log_mode: LogMode,
    /// The way to servers and collectors that the settings name.
    pub net: Net,
    pub export: Option<SpanExport>,
    /// Hides secrets in everything that is written.
    pub redactor: Arc<Redactor>,
    pub logs: Arc<Logs>,
}

/// Settings, for commands that a person runs: files of a project that are left alone are told of.
pub fn load_settings(flags: &Flags) -> Result<LoadedSettings, AppError> {
    let loaded = load_settings_silently(flags)?;
    loaded.unapproved.iter().for_each(|ignored| console::print_err(&format!("octoprox: {ignored}")));
    Ok(loaded)
}

/// Settings, for commands whose log tells of that.
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
                AppError::new(format!("telemetry.otlp_endpoint: {error}. Check the address."))
            })?,
        };
        let logs = init_logging(talk, telemetry, &redactor, export.as_ref().map(SpanExport::tracer))
            .map_err(|error| {
                AppError::new(format!(
                    "telemetry.log_file: the file cannot be written: {error}. Name another."
                ))
            })?;
        for note in &loaded.notes {
            match talk {
                LogMode::Command => console::print_err(&format!("octoprox: {note}")),
                _ => tracing::warn!("{note}"),
            }
        }
        if talk != LogMode::Command {
            loaded.unapproved.iter().for_each(|ignored| tracing::warn!("{ignored}"));
            log_workspace(&loaded);
        }
        Ok(Self { loaded, purpose, log_mode: talk, net, export, redactor, logs: Arc::new(logs) })
    }

    /// Sends the last spans.
    pub async fn shutdown(self) {
        if let Some(export) = self.export {
            export.shutdown().await;
        }
    }
}

/// Where tools work, and why there.
fn log_workspace(loaded: &LoadedSettings) {
    let (reason, folder) = (loaded.workspace.reason(), loaded.settings.workspace.as_deref());
    match folder {
        Some(folder) => tracing::info!(workspace = %folder.display(), reason, "workspace"),
        None => tracing::warn!(reason, "there is no workspace. {WORKSPACE_REMEDY}"),
    }
}

/// A runtime on this thread alone, for one thing and its end.
pub fn block_on_current_thread<T>(work: impl Future<Output = Result<T, AppError>>) -> Result<T, AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// A runtime with a thread for each core, within reason.
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
