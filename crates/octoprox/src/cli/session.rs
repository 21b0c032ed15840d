//! What every command needs before it can begin: settings, logs, and a runtime.

use super::failure::Failure;
use super::out;
use crate::settings::{Flags, Loaded, WORKSPACE_REMEDY, World, load};
use crate::telemetry::{Export, Logs, Redactor, Talk, secrets, start};
use crate::toolboxes::reach;
use octo_grants::Net;
use std::sync::Arc;

/// More threads than this do not make a hub faster, and each has a stack.
const MOST_THREADS: usize = 8;

/// Whether anything is called, so that it is recorded and traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Calls,
    Looks,
}

/// Settings and the means of talking about them.
pub struct Session {
    pub loaded: Loaded,
    pub purpose: Purpose,
    pub talk: Talk,
    /// The way to servers and collectors that the settings name.
    pub net: Net,
    pub export: Option<Export>,
    /// Hides secrets in everything that is written.
    pub redactor: Arc<Redactor>,
    pub logs: Arc<Logs>,
}

/// Settings, for commands that a person runs: files of a project that are left alone are told of.
pub fn settings(flags: &Flags) -> Result<Loaded, Failure> {
    let loaded = logged_settings(flags)?;
    loaded.unapproved.iter().for_each(|ignored| out::talk(&format!("octoprox: {ignored}")));
    Ok(loaded)
}

/// Settings, for commands whose log tells of that.
pub fn logged_settings(flags: &Flags) -> Result<Loaded, Failure> {
    Ok(load(&World::real(), flags)?)
}

impl Session {
    /// Starts logs and traces. Needs a runtime.
    pub fn begin(loaded: Loaded, talk: Talk, purpose: Purpose) -> Result<Self, Failure> {
        let telemetry = &loaded.settings.telemetry;
        let redactor = Arc::new(Redactor::new(secrets(&loaded)));
        let net = Net::new(reach(&loaded.settings))?;
        let export = match purpose {
            Purpose::Looks => None,
            Purpose::Calls => Export::start(telemetry, &net, &redactor).map_err(|error| {
                Failure::new(format!("telemetry.otlp_endpoint: {error}. Check the address."))
            })?,
        };
        let logs =
            start(talk, telemetry, &redactor, export.as_ref().map(Export::tracer)).map_err(|error| {
                Failure::new(format!(
                    "telemetry.log_file: the file cannot be written: {error}. Name another."
                ))
            })?;
        for note in &loaded.notes {
            match talk {
                Talk::Person => out::talk(&format!("octoprox: {note}")),
                _ => tracing::warn!("{note}"),
            }
        }
        if talk != Talk::Person {
            loaded.unapproved.iter().for_each(|ignored| tracing::warn!("{ignored}"));
            log_workspace(&loaded);
        }
        Ok(Self { loaded, purpose, talk, net, export, redactor, logs: Arc::new(logs) })
    }

    /// Sends the last spans.
    pub async fn end(self) {
        if let Some(export) = self.export {
            export.end().await;
        }
    }
}

/// Where tools work, and why there.
fn log_workspace(loaded: &Loaded) {
    let (reason, folder) = (loaded.workspace.reason(), loaded.settings.workspace.as_deref());
    match folder {
        Some(folder) => tracing::info!(workspace = %folder.display(), reason, "workspace"),
        None => tracing::warn!(reason, "there is no workspace. {WORKSPACE_REMEDY}"),
    }
}

/// A runtime on this thread alone, for one thing and its end.
pub fn alone<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// A runtime with a thread for each core, within reason.
pub fn together<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(MOST_THREADS))
        .thread_name("octoprox")
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}
