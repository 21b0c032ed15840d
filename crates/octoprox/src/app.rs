//! Assembly of the application: settings become sources, stores and a hub.

use crate::app_context::{AppContext, AppMode};
use crate::app_error::AppError;
use crate::cli::CODE_CHILD_COMMAND;
use crate::client_roots::ClientRoots;
use crate::dialects::with_dialects;
use crate::fleet::{Fleet, NodeServices};
use crate::gateway::Gateway;
use crate::hub_probe::HubProbe;
use crate::jq_workers;
use crate::process::this_program::this_program;
use crate::remedy_text::remedy_text;
use crate::settings::{Settings, WORKSPACE_REMEDY, seal_keys, state_dir};
use crate::shipped_prompts::SHIPPED;
use crate::stores::read_only_stores::ReadOnlyStores;
use crate::stores::{stores_of_hub, stores_with_logins};
use crate::telemetry::{ArgumentExcerpts, LogMode, MetricsSources, PrometheusMetrics};
use crate::toolboxes::{
    WorkspaceGuard, no_capabilities, open_capabilities, toolbox_capabilities, toolboxes, with_shared_browser,
};
use octo_flow::WorkflowEngine;
use octo_grants::config_dirs::ConfigDirs;
use octo_grants::exec::Sessions;
use octo_grants::{Capabilities, JqRunner, Workspace};
use octo_hub::declared::DeclaredToolsConfig;
use octo_hub::{ChildCommand, Hub, HubConfig, Profile, RESULT_READ_TOOL, RuleSettings};
use octo_mcp::{FrontLink, Mcp, McpSettings, SharedFrontsConfig};
use octo_ports::{
    AuditLog, AuditReader, FleetRecords, HealthCheck, Keyring, Leases, ResultStore, ResultWriter, Stores,
};
use octo_toolkit::{Requirement, Source, SourceState, Toolbox};
use octo_web::{NoProbe, ReadinessProbe, RenderMetrics};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tools_memory::SemanticMemory;

/// Maximum time to write the records of the last calls.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Servers to start.
#[derive(Debug, PartialEq, Eq)]
pub enum StartServers {
    All,
    One(String),
    NoServers,
}

/// A hub with its dependencies.
pub struct App {
    pub hub: Arc<Hub>,
    /// Not available in read-only mode.
    pub workflows: Option<WorkflowEngine>,
    pub gateway: Gateway,
    /// Not available in read-only mode.
    pub memory: Option<Arc<SemanticMemory>>,
    /// Argument excerpts for logs and the audit log.
    pub contents: Arc<ArgumentExcerpts>,
    /// Background commands; not available in read-only mode.
    commands: Option<Sessions>,
    /// Not available in read-only mode.
    audit: Option<Arc<dyn AuditLog>>,
    /// The workspace that this node serves to the fleet.
    services: Mutex<Option<NodeServices>>,
    fleet: Option<Fleet>,
    health: Arc<dyn HealthCheck>,
    state_dir: Option<PathBuf>,
    has_shared_database: bool,
    pub audit_reader: Arc<dyn AuditReader>,
    /// Set if other hubs share the sessions of clients.
    shared_sessions: Option<SharedSessions>,
    /// Set if other hubs share the database.
    pub fleet_records: Option<Arc<dyn FleetRecords>>,
}

/// What hubs share of the sessions of their clients.
struct SharedSessions {
    sessions: octo_ports::Sessions,
    leases: Arc<dyn Leases>,
    link: Option<Arc<dyn FrontLink>>,
}

impl StartServers {
    /// Selects the server that a tool's name begins with, since one call need not start all of them.
    pub fn for_tool(settings: &Settings, tool: &str, profile: &str) -> Self {
        if !profile.is_empty() {
            return Self::All;
        }
        let toolboxes = toolboxes(settings);
        let home = toolboxes.iter().find(|toolbox| toolbox.tools.iter().any(|own| own.name == tool));
        match home {
            Some(toolbox) if toolbox.uses_servers => return Self::All,
            Some(_) => return Self::NoServers,
            None if tool == RESULT_READ_TOOL => return Self::NoServers,
            None => {}
        }
        let server = tool.split_once("__").or_else(|| tool.split_once(':')).map(|(server, _)| server);
        match server.filter(|server| settings.servers.contains_key(*server)) {
            Some(server) => Self::One(server.to_owned()),
            None => Self::All,
        }
    }

    fn includes(&self, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => name == server,
            Self::NoServers => false,
        }
    }
}

impl App {
    /// Builds the app. Starts servers without waiting for them. Needs a runtime.
    pub fn build(session: &AppContext, reach: &StartServers) -> Result<Self, AppError> {
        let loaded = &session.loaded;
        let settings = &loaded.settings;
        let (stores, audit) = match session.purpose {
            AppMode::CallTools => {
                let stores = stores_of_hub(settings, &session.world)?;
                let audit = Arc::clone(&stores.audit);
                (stores, Some(audit))
            }
            AppMode::ReadOnly => (stores_with_logins(settings, &session.world)?, None),
        };
        let gateway = Gateway::start(session, &stores, |name| reach.includes(name))?;
        let (audit_log, result_store): (Arc<dyn AuditLog>, Arc<dyn ResultStore>) = match &audit {
            Some(audit) => (Arc::clone(audit), Arc::clone(&stores.results)),
            None => (Arc::new(ReadOnlyStores), Arc::new(ReadOnlyStores)),
        };
        let jq = JqRunner::new(Arc::new(jq_workers::JqWorkers::new()?));
        let doors = match session.purpose {
            AppMode::CallTools => build_capabilities(session, &stores)?.with(jq.clone()),
            AppMode::ReadOnly => no_capabilities(),
        };
        let doors = doors.with(gateway.servers().clone());
        let roots = client_roots(session, &doors);
        let NativeSources { listed, served } =
            native_sources(session, &doors, roots.as_ref(), &result_store)?;
        let sources = listed.into_iter().chain(gateway.sources());
        let services = match &session.fleet {
            Some(fleet) if fleet.roles().worker => Some(fleet.serve_workspace(settings, &stores, served)?),
            _ => None,
        };
        let hub = Hub::new(HubConfig {
            sources: sources.collect(),
            profiles: profiles(settings)?,
            policy: settings.policy.clone(),
            limits: settings.limits.clone(),
            rate_buckets: stores.rate_buckets.clone(),
            cache: settings.cache.clone(),
            result_limits: settings.results.clone(),
            timeout: Duration::from_secs(settings.calls.timeout_seconds),
            audit_log,
            result_store,
            jq,
            code_child: Some(ChildCommand {
                program: this_program()?,
                args: vec![CODE_CHILD_COMMAND.to_owned()],
            }),
            tracer: session.export.as_ref().map(|export| export.hub_tracer()),
            remedy_text,
        });
        let hub = hub.map_err(|error| invalid_pattern(&error))?;
        let flows = doors.open::<WorkflowEngine>().ok();
        let commands = doors.open::<Sessions>().ok();
        let memory = doors.open::<Arc<SemanticMemory>>().ok();
        hub.set_absent_servers(gateway.absent_servers());
        let contents = Arc::new(ArgumentExcerpts::new(Arc::clone(&session.redactor), settings));
        hub.set_excerpts(Arc::clone(&contents) as _);
        let shared_sessions = shared_sessions(session, &stores);
        let audit_reader = stores.audit_reader;
        Ok(Self {
            hub,
            workflows: flows,
            gateway,
            memory,
            contents,
            commands,
            audit,
            services: Mutex::new(services),
            fleet: session.fleet.clone(),
            health: stores.health,
            state_dir: settings.state_dir.clone(),
            has_shared_database: settings.store.postgres.is_some(),
            audit_reader,
            shared_sessions,
            fleet_records: stores.fleet_records,
        })
    }

    /// The MCP frontend. Needs a runtime.
    pub fn mcp(&self, limits: McpSettings, session: &AppContext) -> Result<Arc<Mcp>, AppError> {
        let hub = Arc::clone(&self.hub);
        let Some(shared) = &self.shared_sessions else { return Ok(Mcp::new(hub, limits)?) };
        let keys = seal_keys(&session.loaded.settings.logins, &session.world)?;
        let secret =
            keys.secret.ok_or_else(|| AppError::invalid("store.postgres: requires `logins.secret`."))?;
        let keys = Keyring::for_fronts(&secret, &keys.previous)
            .map_err(|error| AppError::invalid(format!("{error}.")))?;
        let fronts = SharedFrontsConfig {
            sessions: Arc::clone(&shared.sessions),
            leases: Arc::clone(&shared.leases),
            keys,
            link: shared.link.clone(),
        };
        Ok(Mcp::with_fronts(hub, limits, fronts))
    }

    /// Whether a background command runs, which ends with the app.
    pub fn has_running_commands(&self) -> bool {
        self.commands.as_ref().is_some_and(Sessions::has_running)
    }

    /// Returns the checks of `/ready`; none in read-only mode.
    pub fn probe(&self) -> Arc<dyn ReadinessProbe> {
        match &self.audit {
            Some(audit) => {
                let database = self.has_shared_database.then(|| Arc::clone(&self.health));
                let fleet = self.fleet.clone();
                let servers = self.gateway.servers().clone();
                Arc::new(HubProbe::new(Arc::clone(audit), database, fleet, servers))
            }
            None => Arc::new(NoProbe),
        }
    }

    /// Returns a function that renders the metrics of this process, which other nodes can ask for, too.
    pub fn metrics_text(&self, numbers: PrometheusMetrics) -> RenderMetrics {
        let audit = self.audit.clone().unwrap_or_else(|| Arc::new(ReadOnlyStores));
        let sources = MetricsSources {
            hub: Arc::clone(&self.hub),
            state_dir: self.state_dir.clone(),
            audit: Arc::clone(&audit),
            health: Arc::clone(&self.health),
        };
        let render: RenderMetrics = Arc::new(move || numbers.render(&sources));
        if let Some(fleet) = &self.fleet {
            fleet.set_report(audit, Arc::clone(&render));
        }
        render
    }

    /// Takes no more calls of other nodes, and waits for those in progress.
    pub async fn leave_fleet(&self) {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner).take();
        let workspace = async {
            if let Some(services) = services {
                services.drain().await;
            }
        };
        tokio::join!(workspace, self.gateway.leave_fleet());
    }

    /// Waits for the calls of other nodes and the current workflow steps, stops the servers and writes the remaining
    /// audit records.
    pub async fn shutdown(self) {
        self.leave_fleet().await;
        if let Some(flows) = &self.workflows {
            flows.shutdown().await;
        }
        self.gateway.shutdown().await;
        if let Some(audit) = &self.audit
            && !matches!(tokio::time::timeout(FLUSH_TIMEOUT, audit.flush()).await, Ok(Ok(())))
        {
            tracing::error!("failed to write the last audit records");
        }
    }
}

fn build_capabilities(session: &AppContext, stores: &Stores) -> Result<Capabilities, AppError> {
    let loaded = &session.loaded;
    let settings = &loaded.settings;
    let state = state_dir(settings.state_dir.as_ref())?;
    let no_root = loaded.workspace.refusal().map(|why| (why, WORKSPACE_REMEDY.to_owned()));
    let guard = WorkspaceGuard { protected: loaded.protected.clone(), no_root };
    let variables = &session.world.variables;
    let doors = open_capabilities(settings, variables, guard, &state, &this_program()?, stores)?;
    let workspace = doors.open::<Workspace>()?;
    let writable = workspace.roots().iter().filter(|root| root.writable);
    let writable: Vec<PathBuf> = writable.map(|root| root.path.clone()).collect();
    loaded.trust.clone().remember_roots(&writable).map_err(|error| {
        AppError::new(format!("Cannot write the list of approved files: {error}. Check the state directory."))
    })?;
    Ok(doors)
}

/// A client with its own process may name a root if the current directory is unsuitable.
fn client_roots(session: &AppContext, doors: &Capabilities) -> Option<Arc<ClientRoots>> {
    let is_refused = session.log_mode == LogMode::Stdio && session.loaded.workspace.refusal().is_some();
    let workspace = doors.open::<Workspace>().ok().filter(|_| is_refused)?;
    workspace.roots().is_empty().then(|| ClientRoots::new(session, workspace))
}

/// Sources of this binary.
struct NativeSources {
    /// Those of the catalogue.
    listed: Vec<Arc<dyn Source>>,
    /// Those that this node serves to the fleet.
    served: Vec<Arc<dyn Source>>,
}

fn native_sources(
    session: &AppContext,
    doors: &Capabilities,
    roots: Option<&Arc<ClientRoots>>,
    results: &Arc<dyn ResultStore>,
) -> Result<NativeSources, AppError> {
    let settings = &session.loaded.settings;
    let (toolboxes, doors) = with_shared_browser(settings, doors);
    let names = toolboxes.iter().flat_map(|toolbox| toolbox.tools.iter().map(|tool| tool.name.to_owned()));
    let reserved: BTreeSet<String> = names.chain([RESULT_READ_TOOL.to_owned()]).collect();
    let mut sources = NativeSources { listed: Vec::new(), served: Vec::new() };
    for toolbox in toolboxes {
        let state = toolbox_state(settings, &toolbox);
        let doors = toolbox_capabilities(&toolbox, settings, &doors);
        match session.fleet.as_ref().filter(|_| toolbox.is_machine_bound && state == SourceState::Ready) {
            Some(fleet) => {
                if fleet.roles().front {
                    sources.listed.push(fleet.workspace_source(&toolbox, results)?);
                }
                if fleet.roles().worker {
                    let doors = doors.with(ResultWriter::new(Arc::new(fleet.caller_results())));
                    sources.served.push(toolbox.into_source(doors, state));
                }
            }
            None => {
                let roots = roots.filter(|_| toolbox.uses_workspace);
                let source = toolbox.into_source(doors, state);
                sources.listed.push(match roots {
                    Some(roots) => roots.wrap(source),
                    None => source,
                });
            }
        }
    }
    sources.listed.extend(yaml_sources(session, &reserved, &doors));
    Ok(sources)
}

fn shared_sessions(session: &AppContext, stores: &Stores) -> Option<SharedSessions> {
    let leases = fleet_leases(&session.loaded.settings, stores)?;
    let link = session.fleet.as_ref().map(|fleet| fleet.front_link(&stores.results));
    Some(SharedSessions { sessions: stores.sessions.clone()?, leases, link })
}

/// Leases decide which node serves what, if the nodes share a database.
pub fn fleet_leases(settings: &Settings, stores: &Stores) -> Option<Arc<dyn Leases>> {
    settings.store.postgres.as_ref().map(|_| Arc::clone(&stores.leases))
}

/// Declared tools, your own prompts, the built-in prompts, and skills.
fn yaml_sources(
    session: &AppContext,
    reserved: &BTreeSet<String>,
    doors: &Capabilities,
) -> [Arc<dyn Source>; 3] {
    let loaded = &session.loaded;
    let settings = &loaded.settings;
    let approved =
        |folders: &[PathBuf]| ConfigDirs::new(folders.to_vec()).with_approval(loaded.approve.clone());
    let shipped = if settings.prompts.builtin { SHIPPED } else { &[] };
    let variables = session.world.variables.clone();
    let workspace = doors.open::<Workspace>().ok();
    let declared = DeclaredToolsConfig {
        folders: approved(&settings.tools.folders),
        doors: doors.clone(),
        environment: Arc::new(move |name| variables.get(name).cloned()),
        reserved: reserved.clone(),
        state: switch_state("declared", settings.toolboxes.declared),
    };
    [
        octo_hub::prompt_files::source(shipped, approved(&settings.prompts.folders)),
        octo_hub::declared::source(declared),
        octo_hub::skills::skill_files::source(approved(&settings.skills.folders), workspace.as_ref()),
    ]
}

fn toolbox_state(settings: &Settings, toolbox: &Toolbox) -> SourceState {
    match toolbox.requirement {
        Some(Requirement::Server) if settings.servers.is_empty() => {
            SourceState::Off("add a server: `octoprox add --help`".to_owned())
        }
        Some(Requirement::LanguageModel) if settings.llm.url.is_none() => {
            SourceState::Off("set llm.url and llm.model (OCTOPROX_LLM_URL, OCTOPROX_LLM_MODEL)".to_owned())
        }
        _ => switch_state(toolbox.switch, settings.toolboxes.is_on(toolbox.switch)),
    }
}

fn switch_state(switch: &str, is_on: bool) -> SourceState {
    if is_on {
        SourceState::Ready
    } else {
        SourceState::Off(format!("set toolboxes.{switch} (OCTOPROX_ENABLE_{}=true)", switch.to_uppercase()))
    }
}

pub fn invalid_pattern(error: &impl std::fmt::Display) -> AppError {
    AppError::invalid(format!("Invalid pattern in the settings: {error}."))
}

/// Returns the settings of the call pipeline.
pub fn rule_settings(settings: &Settings) -> RuleSettings {
    RuleSettings {
        policy: settings.policy.clone(),
        limits: settings.limits.clone(),
        cache: settings.cache.clone(),
        timeout: Duration::from_secs(settings.calls.timeout_seconds),
    }
}

/// Returns the profiles of the settings and the built-in ones.
pub fn profiles(settings: &Settings) -> Result<Vec<Profile>, AppError> {
    let everything = Profile::everything_with(&settings.surface)
        .map_err(|error| AppError::invalid(format!("surface.listed: {error}.")))?;
    let made = with_dialects(&settings.profiles).into_iter().map(|(name, profile)| {
        let made = Profile::new(&name, &profile);
        made.and_then(|made| made.with_surface(&profile, &settings.surface))
            .map_err(|error| AppError::invalid(format!("profiles.{name}: {error}.")))
    });
    std::iter::once(Ok(everything)).chain(made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Server;

    #[test]
    fn a_call_starts_only_what_it_needs() {
        let mut settings = Settings::default();
        settings.servers.insert("notion".to_owned(), Server::default());
        for (tool, profile, reach) in [
            ("time_now", "", StartServers::NoServers),
            ("result_read", "", StartServers::NoServers),
            ("notion__search", "", StartServers::One("notion".to_owned())),
            ("notion:search", "", StartServers::One("notion".to_owned())),
            ("other__search", "", StartServers::All),
            ("workflow_run", "", StartServers::All),
            ("servers_list", "", StartServers::All),
            ("search", "", StartServers::All),
            ("time_now", "bare", StartServers::All),
        ] {
            assert_eq!(StartServers::for_tool(&settings, tool, profile), reach, "{tool}");
        }
    }
}
