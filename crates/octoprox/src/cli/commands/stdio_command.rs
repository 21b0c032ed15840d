//! `octoprox stdio`: MCP on standard input and output.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_multi_thread, load_settings_silently};
use crate::app_error::AppError;
use crate::cli::admin_listener;
use crate::reloader::Reloader;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::async_stdio;
use clap::Args;
use octo_mcp::{Mcp, McpSettings};
use octo_model::Caller;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Serve MCP on standard input and output, for clients that start their servers. Logs go to standard error as JSON.
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
}

impl Stdio {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let mut loaded = load_settings_silently(flags)?;
        block_on_multi_thread(async {
            let hangups = signal(SignalKind::hangup())?;
            let in_force = loaded.settings.clone();
            let door = admin_listener::bind_callback(&mut loaded).await;
            let session = AppContext::start(loaded, LogMode::Stdio, AppMode::CallTools)?;
            let assembly = App::build(&session, &StartServers::All)?;
            assembly.hub.view(&self.profile)?;
            let over = CancellationToken::new();
            let _over = over.clone().drop_guard();
            if let Some(listener) = door {
                admin_listener::serve_callback(listener, &session, &assembly, over);
            }
            let reloader = Reloader::new(&session, &assembly, flags.clone(), in_force, None);
            let _followed = reloader.watch(&session, hangups);
            assembly.gateway.keep_logins_alive();
            let mcp = Mcp::new(Arc::clone(&assembly.hub), McpSettings::default())?;
            let (input, output) = (async_stdio::input(), async_stdio::output());
            let mut term = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let face = Arc::clone(&mcp);
            let served = tokio::select! {
                served = face.serve_stdio(Arc::new(Caller::local()), self.profile.clone(), input, output) => served,
                _ = term.recv() => Ok(()),
                _ = interrupt.recv() => Ok(()),
            };
            mcp.shutdown().await;
            assembly.shutdown().await;
            session.shutdown().await;
            Ok(served?)
        })
    }
}
