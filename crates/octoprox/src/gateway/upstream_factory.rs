//! Converts server settings to connection specs.

use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::gateway::package_runner::{INSTALL_TIMEOUT, is_package_runner};
use crate::gateway::server_start::{HOMES_DIR, StartPlaces};
use crate::packages::package_lookup;
use crate::process::this_program::this_program;
use crate::settings::{self, AppliedServers, Era, ScriptScope, Server, Settings};
use crate::toolboxes::{LAUNCHER_COMMAND, sandboxed_exec, server_search_path};
use octo_grants::config_dirs::FileApproval;
use octo_grants::exec::NetworkAccess;
use octo_grants::net::HostList;
use octo_grants::{Command, Net};
use octo_model::{Secret, ToolError, sha256_hex};
use octo_openapi_source::{DocumentSource, DocumentSpec};
use octo_ports::{Listings, Pins, Stores};
use octo_upstream::{
    CallLimits, ConnectMode, PrepareStart, SHARED_HOME, SandboxSpec, Share, TransportSpec, UpstreamSpec,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Shared dependencies of all servers of a hub.
pub struct UpstreamFactory {
    settings: Settings,
    net: Net,
    program: PathBuf,
    listing_cache: Option<Listings>,
    connect_now: bool,
    approve: Option<FileApproval>,
    starts: StartPlaces,
    /// PATH of servers outside a sandbox.
    search_path: OsString,
    scripts: Option<ScriptScope>,
    /// State directory.
    pub state: Option<PathBuf>,
}

impl UpstreamFactory {
    pub fn new(session: &AppContext, stores: &Stores) -> Result<Self, AppError> {
        let mut settings = session.loaded.settings.clone();
        settings.servers.clear();
        let state = settings.state_dir.clone();
        let lists = state.as_ref().map(|_| Arc::clone(&stores.listings));
        Ok(Self {
            net: session.net.clone(),
            program: this_program()?,
            listing_cache: lists,
            connect_now: false,
            approve: session.loaded.approve.clone(),
            starts: StartPlaces::new(&session.loaded.settings, &session.world),
            search_path: server_search_path(&session.loaded.settings),
            scripts: session.loaded.scripts.clone(),
            state,
            settings,
        })
    }

    /// Connects immediately, ignoring cached listings.
    pub fn without_cache(self) -> Self {
        Self { listing_cache: None, connect_now: true, ..self }
    }

    /// Returns whether the `servers` toolbox is enabled.
    pub fn servers_toolbox_enabled(&self) -> bool {
        self.settings.toolboxes.servers
    }

    /// Returns the spec of a program or URL.
    pub fn upstream_spec(
        &self,
        name: &str,
        server: &Server,
        pins: &Arc<dyn Pins>,
    ) -> Result<UpstreamSpec, ToolError> {
        let start = self.starts.start(name, server);
        let mut spec = UpstreamSpec::new(name, self.transport(server, start.working_dir()));
        // Scripts may have changed since they were approved, by a tool as well, so each start checks them.
        let scripts = self.scripts.clone().map(|scripts| (scripts, name.to_owned(), server.clone()));
        let prepare = move || {
            if let Some((scripts, name, server)) = &scripts {
                scripts.check(name, server)?;
            }
            start.prepare()
        };
        spec.prepare_start = server.is_program().then(|| Arc::new(prepare) as PrepareStart);
        spec.package = package_lookup(name, server, self.state.as_deref(), pins)?;
        spec.sse = server.kind == Some(settings::Kind::Sse);
        spec.net = self.net.clone();
        spec.call_timeout = Duration::from_secs(server.timeout_seconds);
        spec.start_timeout = Duration::from_secs(server.start_timeout_seconds);
        spec.install_timeout = is_package_runner(server).then_some(INSTALL_TIMEOUT);
        spec.idle_timeout = Duration::from_secs(server.idle_timeout_seconds);
        spec.launcher = vec![self.program.clone().into(), LAUNCHER_COMMAND.into()];
        spec.listing_cache = self.listing_cache.clone();
        spec.limits = CallLimits { per_minute: server.per_minute, in_flight: server.max_concurrent };
        spec.sandbox = self.sandbox(name, server)?;
        spec.connect = match server.connect {
            settings::Connect::Always => ConnectMode::Always,
            settings::Connect::OnDemand if self.connect_now => ConnectMode::Always,
            settings::Connect::OnDemand => ConnectMode::OnDemand,
        };
        spec.share = match server.share {
            settings::Share::One => Share::One,
            settings::Share::Pool => Share::Pool(server.pool),
            settings::Share::PerCaller => Share::PerCaller,
            settings::Share::PerSession => Share::PerSession,
        };
        spec.era = match server.era {
            Era::Auto => None,
            Era::Legacy => Some(octo_wire::Era::Legacy),
            Era::Modern => Some(octo_wire::Era::Modern),
        };
        Ok(spec)
    }

    /// Everything that a server depends on: with the same key, one process can serve several gateways.
    pub fn pool_key(&self, name: &str, server: &Server) -> String {
        let servers = [(name.to_owned(), server.clone())].into();
        let applied = AppliedServers::with_salt(&servers, String::new());
        let Settings { net, shell, .. } = &self.settings;
        let place = self.workspace_around(server);
        let around = (place, &self.search_path, &self.state, self.connect_now);
        sha256_hex(format!("{applied:?} {around:?} {net:?} {shell:?}").as_bytes())
    }

    /// Returns the spec of an OpenAPI document.
    pub fn document_spec(&self, name: &str, server: &Server) -> DocumentSpec {
        let document = server.document.clone().unwrap_or_default();
        let document = if document.contains("://") {
            DocumentSource::Url(document)
        } else {
            DocumentSource::File(PathBuf::from(document))
        };
        DocumentSpec {
            url: server.url.clone(),
            headers: expose_all(&server.headers),
            net: self.net.clone(),
            query_key: query_key(server),
            approval: self.approve.clone(),
            timeout: Duration::from_secs(server.timeout_seconds),
            ..DocumentSpec::new(name, document)
        }
    }

    /// The program of a package is found when it starts.
    fn transport(&self, server: &Server, cwd: Option<PathBuf>) -> TransportSpec {
        match (server.package.clone().or_else(|| server.command.clone()), &server.url) {
            (Some(program), _) => TransportSpec::Stdio(Command {
                program,
                args: server.args.clone(),
                env: self.child_env(server),
                cwd,
            }),
            (None, url) => TransportSpec::Http {
                url: url.clone().unwrap_or_default(),
                headers: expose_all(&server.headers),
            },
        }
    }

    /// Unless the settings set PATH, a server's search path excludes directories that tools can write to: a program
    /// planted there would run outside the sandbox. A sandbox sets its own search path.
    fn child_env(&self, server: &Server) -> BTreeMap<String, String> {
        let mut all = expose_all(&server.env);
        if server.sandbox.is_none()
            && let Some(path) = self.search_path.to_str()
        {
            all.entry("PATH".to_owned()).or_insert_with(|| path.to_owned());
        }
        all
    }

    /// The configured directory, else the workspace, unless a sandbox hides it: sessions in different directories do not
    /// share the state that a server may keep about them.
    pub fn workspace_around(&self, server: &Server) -> Option<PathBuf> {
        let is_visible = |folder: &PathBuf| {
            server.sandbox.as_ref().is_none_or(|sandbox| {
                sandbox.read.iter().chain(&sandbox.write).any(|visible| folder.starts_with(visible))
            })
        };
        server.cwd.clone().or_else(|| self.settings.workspace.clone().filter(is_visible))
    }

    fn sandbox(&self, name: &str, server: &Server) -> Result<Option<SandboxSpec>, ToolError> {
        let Some(sandbox) = &server.sandbox else { return Ok(None) };
        let state = self.state.as_ref().ok_or_else(|| {
            ToolError::denied("The sandbox requires a state directory, and none is available.")
                .hint("Set OCTOPROX_STATE_DIR.")
        })?;
        let exec = sandboxed_exec(&self.settings, sandbox, state, &self.program)?;
        let network = match (sandbox.network, sandbox.hosts.as_slice()) {
            (true, _) => NetworkAccess::Full,
            (false, []) => NetworkAccess::None,
            (false, hosts) => {
                NetworkAccess::Hosts(HostList::parse("sandbox.hosts", hosts)?, self.net.clone())
            }
        };
        Ok(Some(SandboxSpec { exec, network, homes: state.join(HOMES_DIR).join(name) }))
    }
}

/// Home directory of a sandboxed server that callers share.
pub fn server_home(state: &Path, name: &str) -> PathBuf {
    state.join(HOMES_DIR).join(name).join(SHARED_HOME)
}

fn expose_all(values: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

/// Returns the query parameter of the API key, and the key.
fn query_key(server: &Server) -> Option<(String, Secret)> {
    let auth = server.auth.as_ref()?;
    let key = server.env.get(auth.env.as_deref()?)?;
    Some((auth.query.clone()?, Secret::new(key.expose())))
}
