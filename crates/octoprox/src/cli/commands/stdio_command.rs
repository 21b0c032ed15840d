//! `octoprox stdio`: MCP on standard input and output.

use crate::app_context::{AppContext, AppMode, block_on_multi_thread, load_settings_silently};
use crate::app_error::AppError;
use crate::attach::session_app::{CallbackPort, SessionApp};
use crate::attach::session_relay::SessionRelay;
use crate::attach::{AttachError, HubStartup};
use crate::cli::standalone::StandaloneOption;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::{async_stdio, console};
use clap::Args;
use octo_hub::{ListOptions, Structure, Surface};
use octo_model::Caller;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Serve MCP on standard input and output, for clients that start their servers.
///
/// All sessions share one background hub, which starts if necessary and ends when idle: see `octoprox status`, `logs` and
/// `stop`. With --standalone, the session runs in this process, and logs go to standard error as JSON.
///
/// The `octoprox.yaml` of a project is ignored until you approve it with `octoprox trust`. Tools work in the project
/// directory. If a client starts octoprox in / or in your home directory, there is no workspace unless `workspace` is set.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox stdio
  octoprox stdio --profile work --config ~/octoprox.yaml

In the settings of a client:
  {\"mcpServers\": {\"octoprox\": {\"command\": \"octoprox\", \"args\": [\"stdio\"]}}}")]
pub struct Stdio {
    /// Profile to serve
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
    /// Tools to list: auto, full, servers, profile, find or code [default: from the settings]
    #[arg(long, value_name = "NAME", value_parser = surface)]
    surface: Option<Surface>,
    /// Structured results in addition to text: on or off [default: from the settings]
    #[arg(long, value_name = "on|off", value_parser = structure)]
    structure: Option<Structure>,
    #[command(flatten)]
    standalone: StandaloneOption,
}

impl Stdio {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        if self.standalone.is_set()? {
            return self.run_standalone(flags);
        }
        let attached = HubStartup::new(flags).map_err(AttachError::from);
        match attached.and_then(|startup| SessionRelay::attach(startup, &self.profile, self.options())) {
            Ok(relay) => relay.run(),
            Err(error @ AttachError::Refused(_)) => Err(error.into()),
            Err(error @ AttachError::Unavailable(_)) => {
                console::print_err(&format!(
                    "octoprox: {} This session runs without it.",
                    AppError::from(error)
                ));
                self.run_standalone(flags)
            }
        }
    }

    fn options(&self) -> ListOptions {
        ListOptions { surface: self.surface, structure: self.structure }
    }

    fn run_standalone(&self, flags: &Flags) -> Result<(), AppError> {
        let mut loaded = load_settings_silently(flags)?;
        block_on_multi_thread(async {
            let callback = CallbackPort::bind(&mut loaded).await;
            let session = AppContext::start(loaded, LogMode::Stdio, AppMode::CallTools)?;
            let app = SessionApp::start(session, flags.clone(), callback, true)?;
            app.assembly.hub.view(&self.profile)?;
            let (input, output) = (async_stdio::input(), async_stdio::output());
            let mut term = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let (mcp, caller) = (Arc::clone(&app.mcp), Arc::new(Caller::local()));
            let served = tokio::select! {
                served = mcp.serve_stdio(caller, self.profile.clone(), self.options(), input, output) => served,
                _ = term.recv() => Ok(()),
                _ = interrupt.recv() => Ok(()),
            };
            app.shutdown().await.shutdown().await;
            Ok(served?)
        })
    }
}

fn surface(text: &str) -> Result<Surface, String> {
    Surface::parse(text).ok_or_else(|| format!("use one of {}", Surface::ALL.map(Surface::as_str).join(", ")))
}

fn structure(text: &str) -> Result<Structure, String> {
    Structure::parse(text).ok_or_else(|| "use on or off".to_owned())
}
