//! `octoprox worker`: runs what cannot move, for the fronts of a fleet.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_multi_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::commands::serve_command::Signals;
use crate::fleet::{Fleet, Roles, no_fleet};
use crate::process::service_manager;
use crate::reloader::Reloader;
use crate::settings::Flags;
use crate::telemetry::{LogMode, PrometheusMetrics};
use crate::terminal::console;
use clap::Args;
use octo_grants::raise_descriptor_limit;

/// Serve the workspace of this machine, its browser and servers that are programs to the fronts of a fleet.
///
/// Connects to the NATS servers of `fleet.nats` and listens on no port, so that it also runs behind NAT. The tools that
/// are enabled here are available at the fronts that have the same `fleet.workspace`.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox worker
  OCTOPROX_FLEET_NATS=tls://nats.example:4222 OCTOPROX_FLEET_WORKSPACE=laptop octoprox worker")]
pub struct Worker {
    /// Serve this workspace from now on, also instead of other files of the same name
    ///
    /// A worker whose files differ from those that were served under its `fleet.workspace` before is refused otherwise.
    #[arg(long)]
    take_over: bool,
}

impl Worker {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let in_force = loaded.settings.clone();
        if loaded.settings.fleet.nats.is_empty() {
            return Err(no_fleet("octoprox worker"));
        }
        raise_descriptor_limit()?;
        block_on_multi_thread(async {
            let Signals { mut interrupts, mut terms, hangups } = Signals::new()?;
            let mut session = AppContext::start(loaded, LogMode::Server, AppMode::CallTools)?;
            let numbers = PrometheusMetrics::install().map_err(|error| AppError::new(format!("{error}.")))?;
            numbers.spawn_upkeep();
            let fleet = Fleet::join(&session.loaded.settings, Roles::WORKER).await?;
            session.fleet = fleet.map(|fleet| fleet.taking_over(self.take_over));
            let assembly = App::build(&session, &StartServers::All)?;
            assembly.metrics_text(numbers);
            let reloader = Reloader::new(&session, &assembly, flags.clone(), in_force, None);
            let _followed = reloader.watch(&session, hangups);
            let workspace = &session.loaded.settings.fleet.workspace;
            console::print_err(&format!(
                "octoprox {} · worker · workspace `{workspace}`",
                env!("CARGO_PKG_VERSION")
            ));
            service_manager::notify_ready();
            service_manager::spawn_watchdog();
            tokio::select! { _ = interrupts.recv() => {}, _ = terms.recv() => {} }
            tracing::info!("stopping");
            service_manager::notify_stopping();
            tokio::select! {
                () = assembly.shutdown() => {}
                _ = interrupts.recv() => tracing::warn!("stopped without waiting for open calls"),
                _ = terms.recv() => tracing::warn!("stopped without waiting for open calls"),
            }
            session.shutdown().await;
            Ok(())
        })
    }
}
