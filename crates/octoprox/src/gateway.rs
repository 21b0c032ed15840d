//! Upstream servers: started from the settings, updated when the settings change, stopped with the hub.

mod fleet_servers;
pub mod login_spec;
pub mod package_runner;
mod question_rules;
mod server_start;
mod upstream_factory;
mod upstream_pool;

use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::remedy_text::remedy_text;
use crate::settings::{Action, AppliedServers, ReloadPlan, Server, ServerChange, Servers as Wanted};
use crate::stores::stores_with_logins;
use octo_grants::Capabilities;
use octo_hub::Hub;
use octo_hub::trust::{DeclaredEffects, Trust, server_identity};
use octo_model::{Caller, ToolError};
use octo_oauth::{Auth, ClientIdentity, LoginSharing, Logins};
use octo_ports::{Pins, Stores};
use octo_toolkit::{Source, SourceState};

use fleet_servers::FleetServers;
use octo_upstream::{LoginOnDemand, Upstream, UpstreamSpec};
use question_rules::question_rules;
pub use server_start::{ServerStart, StartPlaces, WORKSPACE_REFERENCE};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tools_servers::{ServerEntry, ServerKind, Servers};
pub use upstream_factory::{UpstreamFactory, server_home};
use upstream_pool::UpstreamLease;
pub use upstream_pool::UpstreamPool;

/// Maximum time to stop one server.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Poll interval for the remaining calls of a replaced server.
const RETIRE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// All upstream servers of a hub.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

struct GatewayState {
    servers: Servers,
    factory: Arc<UpstreamFactory>,
    fleet: Option<FleetServers>,
    pins: Arc<dyn Pins>,
    pool: UpstreamPool,
    /// Uses of servers, by name. Nobody else stops a server that is in use.
    leases: Mutex<BTreeMap<String, UpstreamLease>>,
    /// Stops background tasks.
    stop: CancellationToken,
    /// Replaced or dropped servers that stop when their calls have completed.
    retiring: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for GatewayState {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Gateway {
    /// Starts the servers selected by `which`, without waiting for them. Needs a runtime.
    pub fn start(
        session: &AppContext,
        stores: &Stores,
        which: impl Fn(&str) -> bool,
    ) -> Result<Self, AppError> {
        Self::with_factory(UpstreamFactory::new(session, stores)?, session, stores, which)
    }

    /// Like `start`, but ignores cached listings, to determine the current state.
    pub fn start_uncached(session: &AppContext, which: impl Fn(&str) -> bool) -> Result<Self, AppError> {
        let stores = stores_with_logins(&session.loaded.settings, &session.world)?;
        Self::with_factory(UpstreamFactory::new(session, &stores)?.without_cache(), session, &stores, which)
    }

    fn with_factory(
        ground: UpstreamFactory,
        session: &AppContext,
        stores: &Stores,
        which: impl Fn(&str) -> bool,
    ) -> Result<Self, AppError> {
        let settings = &session.loaded.settings;
        let identity = ClientIdentity::new(callback_url(session));
        let servers = Servers::new(Logins::new(stores, identity)?);
        let pins = Arc::clone(&stores.pins);
        let (stop, leaving) = (CancellationToken::new(), Mutex::default());
        let (pool, leases) = (session.pool.clone(), Mutex::default());
        let fleet = session.fleet.clone().map(|fleet| FleetServers::new(fleet, settings, stores));
        let factory = Arc::new(ground);
        let inner = GatewayState { servers, factory, fleet, pins, pool, leases, stop, retiring: leaving };
        let gateway = Self(Arc::new(inner));
        for (name, server) in settings.servers.iter().filter(|(name, _)| which(name)) {
            let off = session.loaded.unset_variables.remedy(name);
            gateway.replace_server(name, server, off, &settings.servers);
        }
        Ok(gateway)
    }

    pub fn servers(&self) -> &Servers {
        &self.0.servers
    }

    /// Refreshes unused logins while the hub runs. Needs a runtime.
    pub fn keep_logins_alive(&self) {
        tokio::spawn(self.0.servers.logins().clone().keep_alive(self.0.stop.clone()));
    }

    /// Returns the sources for the catalogue.
    pub fn sources(&self) -> Vec<Arc<dyn Source>> {
        self.0.servers.all().into_values().filter_map(|known| known.source).collect()
    }

    /// Returns the servers that are not connected, with the reasons.
    pub fn absent_servers(&self) -> BTreeMap<String, String> {
        let all = self.0.servers.all().into_iter();
        all.filter_map(|(name, known)| known.disabled.map(|why| (name, with_period(&why)))).collect()
    }

    /// Connects, drops or swaps changed servers and logs each change. Running calls complete on their old connection.
    pub fn apply(&self, hub: &Hub, reloaded: &ReloadPlan) {
        for ServerChange { server: name, action, reason } in &reloaded.changes {
            match (action, reloaded.settings.servers.get(name)) {
                (Action::Unchanged, _) => continue,
                (Action::Connect | Action::Swap | Action::Drop, Some(server)) => {
                    let source = self.replace_server(
                        name,
                        server,
                        reloaded.missing.remedy(name),
                        &reloaded.settings.servers,
                    );
                    match source {
                        Some(source) => hub.put_source(source),
                        None => drop(hub.remove_server(name)),
                    }
                }
                (_, None) => {
                    hub.remove_server(name);
                    self.0.servers.logins().unregister(name);
                    self.0.servers.remove(name);
                    if let Some(fleet) = &self.0.fleet {
                        fleet.remove(name);
                    }
                    self.retire(self.take_lease(name));
                }
            }
            tracing::info!(target: "servers", server = %name, %action, reason, "server settings changed");
        }
        hub.set_absent_servers(self.absent_servers());
        if !reloaded.settings.servers.is_empty() && self.0.factory.servers_toolbox_enabled() {
            let doors = Capabilities::default().with(self.0.servers.clone());
            hub.put_source(tools_servers::toolbox().into_source(doors, SourceState::Ready));
        }
        self.record_applied(&reloaded.settings.servers);
    }

    /// Records the applied servers for `octoprox servers plan`.
    pub fn record_applied(&self, servers: &Wanted) {
        let Some(state) = &self.0.factory.state else { return };
        let before = AppliedServers::read(state);
        let moved = before.as_ref().map(|before| before.started_in_workspace(servers)).unwrap_or_default();
        let is_around =
            |name: &&str| servers.get(*name).is_some_and(|it| self.0.factory.workspace_around(it).is_some());
        let moved: Vec<&str> = moved.into_iter().filter(is_around).collect();
        if !moved.is_empty() {
            tracing::warn!(
                target: "servers",
                servers = moved.join(", "),
                "servers start in a directory of their own now, not in the workspace; to start one there, set \
                 `cwd: {WORKSPACE_REFERENCE}`"
            );
        }
        if let Err(error) = AppliedServers::new_salted(servers).and_then(|applied| applied.write(state)) {
            tracing::warn!(target: "servers", %error, "cannot record the applied servers");
        }
    }

    /// Starts a server, replacing the one with the same name. Returns its source for the catalogue, if any.
    fn replace_server(
        &self,
        name: &str,
        server: &Server,
        missing: Option<String>,
        all: &Wanted,
    ) -> Option<Arc<dyn Source>> {
        let off = missing.or_else(|| (!server.enabled).then(|| "`enabled` is false".to_owned()));
        let mut known = ServerEntry {
            title: server.name.clone(),
            kind: server_kind(server),
            disabled: off,
            login: None,
            requires_login: login_spec::is_required(server),
            source: None,
            upstream: None,
        };
        let replaced = self.take_lease(name);
        let mut asked = None;
        if known.disabled.is_none() {
            match self.start_server(name, server, &mut known) {
                Ok(sharing) => asked = sharing,
                Err(why) => {
                    tracing::error!(target: "servers", server = name, %why, "cannot start the server");
                    known.disabled = Some(why.with_remedy_text(remedy_text).text());
                }
            }
        }
        let trust = Trust::new(Arc::clone(&self.0.pins), all.keys().cloned());
        let parts = server
            .package
            .iter()
            .chain(&server.command)
            .chain(&server.args)
            .chain(&server.url)
            .chain(&server.document);
        let identity = server_identity(parts.map(String::as_str));
        // The settings were checked: their patterns are valid.
        let effects = server.effects.as_ref().and_then(|effects| DeclaredEffects::new(effects).ok());
        let questions = question_rules(server);
        let reviewed = |source| trust.guard(source, identity, server.trust, effects, questions);
        // The hub prompts for a login in its own name, and for all else in that of the server.
        known.source = known.source.map(reviewed).map(|source| match asked {
            Some(whose) => LoginOnDemand::wrap(source, self.0.servers.logins().clone(), whose),
            None => source,
        });
        let source = known.source.clone();
        self.0.servers.put(name, known);
        self.retire(replaced);
        source
    }

    /// Starts a server. Returns who logs in, if its calls can prompt for that.
    fn start_server(
        &self,
        name: &str,
        server: &Server,
        known: &mut ServerEntry,
    ) -> Result<Option<LoginSharing>, ToolError> {
        // It may have been a program before.
        if let Some(fleet) = self.0.fleet.as_ref().filter(|_| known.kind != ServerKind::Program) {
            fleet.remove(name);
        }
        if known.kind == ServerKind::Document {
            known.source = Some(octo_openapi_source::start(self.0.factory.document_spec(name, server)));
            return Ok(None);
        }
        if let Some(fleet) = &self.0.fleet
            && known.kind == ServerKind::Program
        {
            known.source = fleet.put(name, server, &self.0.factory, &self.0.pins)?;
            return Ok(None);
        }
        let logins = self.0.servers.logins();
        let mut spec: UpstreamSpec = self.0.factory.upstream_spec(name, server, &self.0.pins)?;
        let login = login_spec::login_spec(name, server, &spec.net);
        let asked =
            login.as_ref().filter(|login| matches!(login.auth, Auth::OAuth(_))).map(|login| login.sharing);
        match login {
            Some(login) => {
                known.login = Some(login.sharing);
                logins.register(login);
                spec.listing_caller = Some(Caller::local());
                spec.accounts = Some(logins.accounts(name)?);
            }
            None => logins.unregister(name),
        }
        // A login belongs to this gateway, so its server does, too.
        let key = match known.login {
            None => self.0.factory.pool_key(name, server),
            Some(_) => UpstreamPool::unique_key(),
        };
        let (lease, upstream) = self.0.pool.lease(key, || Upstream::start(spec));
        self.leases().insert(name.to_owned(), lease);
        known.source = Some(Arc::clone(&upstream) as Arc<dyn Source>);
        known.upstream = Some(upstream);
        Ok(asked)
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<String, UpstreamLease>> {
        self.0.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_lease(&self, name: &str) -> Option<UpstreamLease> {
        self.leases().remove(name)
    }

    /// Waits for the calls of an unlisted server, then stops it, unless another gateway uses it.
    fn retire(&self, lease: Option<UpstreamLease>) {
        let Some(upstream) = lease.and_then(UpstreamLease::release) else { return };
        let task = tokio::spawn(async move {
            while upstream.report().calls > 0 {
                tokio::time::sleep(RETIRE_POLL_INTERVAL).await;
            }
            upstream.stop().await;
        });
        let mut leaving = self.0.retiring.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|task| !task.is_finished());
        leaving.push(task);
    }

    /// Hands the servers that this worker runs over to other workers.
    pub async fn leave_fleet(&self) {
        if let Some(fleet) = &self.0.fleet {
            fleet.drain().await;
        }
    }

    /// Stops all servers, with a timeout.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        let leases = std::mem::take(&mut *self.leases());
        let ends = leases
            .into_values()
            .filter_map(UpstreamLease::release)
            .map(|upstream| tokio::spawn(async move { upstream.stop().await }));
        let ends: Vec<_> = ends.collect();
        let leaving = std::mem::take(&mut *self.0.retiring.lock().unwrap_or_else(PoisonError::into_inner));
        leaving.iter().for_each(JoinHandle::abort);
        for end in ends.into_iter().chain(leaving) {
            let _ = tokio::time::timeout(STOP_TIMEOUT, end).await;
        }
    }
}

/// Returns the OAuth redirect URL.
pub fn callback_url(session: &AppContext) -> String {
    let settings = &session.loaded.settings;
    let usual = || format!("http://localhost:{}/auth/callback", settings.admin.port);
    settings.logins.callback_url.clone().unwrap_or_else(usual)
}

fn with_period(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

fn server_kind(server: &Server) -> ServerKind {
    match &server.document {
        Some(_) => ServerKind::Document,
        None if server.is_program() => ServerKind::Program,
        None => ServerKind::Url,
    }
}
