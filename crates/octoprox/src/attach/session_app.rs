//! The app of one or more stdio sessions with the same surroundings: hub, servers, and the MCP frontend.

use crate::app::{App, StartServers};
use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::cli::admin_listener;
use crate::gateway::login_spec::login_spec;
use crate::reloader::{Reloader, SettingsWatch};
use crate::settings::{Environment, Flags, LoadedSettings, Settings, TrustStore};
use octo_mcp::{Mcp, McpSettings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct SessionApp {
    pub session: AppContext,
    pub assembly: App,
    pub mcp: Arc<Mcp>,
    flags: Flags,
    /// Whether it was started for a client, which may name a workspace, or for commands.
    is_for_client: bool,
    /// The settings as read when the app was started.
    read_settings: Settings,
    _watch: SettingsWatch,
    _callback: DropGuard,
}

/// The port of OAuth callbacks, and the settings before it was added to them.
pub struct CallbackPort {
    listener: Option<TcpListener>,
    read_settings: Settings,
}

impl CallbackPort {
    /// Binds the port if it is free and a server may need a login.
    pub async fn bind(loaded: &mut LoadedSettings) -> Self {
        let read_settings = loaded.settings.clone();
        let net = octo_grants::Net::default();
        let mut servers = loaded.settings.servers.iter();
        let listener = match servers.any(|(name, server)| login_spec(name, server, &net).is_some()) {
            true => admin_listener::bind_callback(loaded).await,
            false => None,
        };
        Self { listener, read_settings }
    }
}

impl SessionApp {
    /// Starts the servers without waiting for them. Needs a runtime.
    pub fn start(
        session: AppContext,
        flags: Flags,
        callback: CallbackPort,
        is_for_client: bool,
    ) -> Result<Self, AppError> {
        let hangups = signal(SignalKind::hangup())?;
        let assembly = App::build(&session, &StartServers::All)?;
        let over = CancellationToken::new();
        if let Some(listener) = callback.listener {
            admin_listener::serve_callback(listener, &session, &assembly, over.clone());
        }
        let in_force = callback.read_settings.clone();
        let reloader = Reloader::new(&session, &assembly, flags.clone(), in_force, None);
        let watch = reloader.watch(&session, hangups);
        assembly.gateway.keep_logins_alive();
        let mcp = Mcp::new(Arc::clone(&assembly.hub), McpSettings::default())?;
        Ok(Self {
            session,
            assembly,
            mcp,
            flags,
            is_for_client,
            read_settings: callback.read_settings,
            _watch: watch,
            _callback: over.drop_guard(),
        })
    }

    pub fn has_workspace(&self) -> bool {
        self.session.loaded.workspace.refusal().is_none()
    }

    /// Directories that tools may write to, now or in earlier sessions.
    pub fn writable_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.session.loaded.settings.writable_folders();
        let known = TrustStore::open(&self.session.world).ok();
        folders.extend(known.iter().flat_map(TrustStore::writable_roots).map(Path::to_owned));
        folders
    }

    /// Whether nothing would be lost if all sessions left.
    pub fn is_idle(&self) -> bool {
        self.mcp.is_idle() && !self.assembly.has_running_commands()
    }

    /// Whether a session with these settings and surroundings may use this app.
    pub fn suits(
        &self,
        loaded: &LoadedSettings,
        world: &Environment,
        flags: &Flags,
        is_for_client: bool,
    ) -> bool {
        let own = &self.session;
        // The roots of a client become the workspace of its session alone.
        (self.has_workspace() || !self.is_for_client && !is_for_client)
            && own.world.current_dir == world.current_dir
            && (&self.flags.config, &self.flags.servers) == (&flags.config, &flags.servers)
            && self.read_settings == loaded.settings
            && own.loaded.file == loaded.file
            && own.loaded.unapproved == loaded.unapproved
            && tool_variables(&own.loaded.settings, &own.world) == tool_variables(&loaded.settings, world)
    }

    /// Ends the calls and the servers that no other app uses.
    pub async fn shutdown(self) -> AppContext {
        self.mcp.shutdown().await;
        self.assembly.shutdown().await;
        self.session
    }
}

/// Variables that tools read when they are called: declared tools may name any.
fn tool_variables<'a>(settings: &Settings, world: &'a Environment) -> BTreeMap<&'a String, &'a String> {
    let has_declared_tools = !settings.tools.folders.is_empty();
    let passed = &settings.shell.env_passthrough;
    world.variables.iter().filter(|(name, _)| has_declared_tools || passed.contains(name)).collect()
}
