//! This process as a node of a fleet.

mod front_link;
mod front_server;
mod node_reporter;
mod node_services;
mod remote_states;
mod roles;
mod service_registry;
mod status_survey;
mod workspace_files;

pub use front_server::FrontServer;
pub use node_services::{NodeServices, ServiceStart};
pub use roles::{Role, Roles};
pub use status_survey::{collect_all, duplicate_names, metrics_of};

use crate::app::fleet_leases;
use crate::app_error::AppError;
use crate::settings::Settings;
use crate::stores::node_name;
use front_link::FleetFrontLink;
use node_reporter::NodeReporter;
use octo_fabric::{
    Bus, BusError, BusState, CallerResults, FleetKeys, FrontMessages, NatsBus, NatsCredentials, NatsOptions,
    NatsProblem, Node, RemoteSource, SealedBus, SourceAddress, StatusServer, check_nats, serve_status,
};
use octo_mcp::{FrontLink, Mcp};
use octo_model::ToolError;
use octo_ports::{AuditLog, Leases, ResultStore, Stores};
use octo_toolkit::{Source, Toolbox};
use octo_web::{Check, RenderMetrics};
use remote_states::{RemoteKind, RemoteStates};
use service_registry::ServiceRegistry;
use std::sync::Arc;
use std::time::Duration;
use workspace_files::WorkspaceFiles;

/// How long a NATS server may take to say at the start whether it accepts anybody.
const OPEN_BUS_TIMEOUT: Duration = Duration::from_secs(2);
/// First line of a `.creds` file.
const JWT_MARK: &str = "-----BEGIN NATS USER JWT-----";

/// What workers serve besides workspaces has an instance of its own.
const SERVER_INSTANCE_PREFIX: &str = "server/";
const WORKSPACE_INSTANCE_PREFIX: &str = "workspace/";
const FRONT_INSTANCE_PREFIX: &str = "front/";
const FRONT_SOURCE: &str = "mcp";

/// The error of what requires a fleet.
pub fn no_fleet(what: &str) -> AppError {
    AppError::invalid(format!(
        "{what} requires a fleet. Set fleet.nats (OCTOPROX_FLEET_NATS) to the address of a NATS server."
    ))
}

#[derive(Clone)]
pub struct Fleet {
    node: Arc<Node>,
    workspace: String,
    roles: Roles,
    services: ServiceRegistry,
    remote: RemoteStates,
    report: Arc<NodeReporter>,
    front_messages: Arc<FrontMessages>,
    /// Serves its workspace instead of other files.
    takes_over: bool,
    _status: Arc<StatusServer>,
}

impl Fleet {
    /// Joins the fleet of the settings, if any. Connects in the background. Needs a runtime.
    pub async fn join(settings: &Settings, roles: Roles) -> Result<Option<Self>, AppError> {
        let fleet = &settings.fleet;
        if fleet.nats.is_empty() {
            return Ok(None);
        }
        if roles.front && fleet_keys(settings)?.is_some_and(|keys| !keys.are_of_front()) {
            return Err(AppError::invalid(
                "fleet.secret is the key of a worker. Set it to the secret of the fleet at a front, or run `octoprox worker`.",
            ));
        }
        let node = connect(settings).await?;
        let services = ServiceRegistry::default();
        let report = Arc::new(NodeReporter::new(node.name(), roles, services.clone()));
        let status = serve_status(&node, Arc::clone(&report) as _);
        let _status = Arc::new(status.await.map_err(|error| refused(&error))?);
        let front_messages = Arc::new(FrontMessages::new(&node).map_err(|error| refused(&error))?);
        let (workspace, remote) = (fleet.workspace.clone(), RemoteStates::default());
        let takes_over = false;
        Ok(Some(Self {
            node,
            workspace,
            roles,
            services,
            remote,
            report,
            front_messages,
            takes_over,
            _status,
        }))
    }

    /// The same node, which serves its workspace also instead of other files.
    pub fn taking_over(self, takes_over: bool) -> Self {
        Self { takes_over, ..self }
    }

    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// The way to the other fronts.
    pub fn front_link(&self, results: &Arc<dyn ResultStore>) -> Arc<dyn FrontLink> {
        Arc::new(FleetFrontLink::new(&self.node, &self.front_messages, results))
    }

    /// Answers the other fronts.
    pub async fn serve_front(&self, mcp: &Arc<Mcp>) -> Result<FrontServer, AppError> {
        let server = FrontServer::start(&self.node, &self.front_messages, mcp).await;
        server.map_err(|error| refused(&error))
    }

    /// Where tools that run for other nodes store results.
    pub fn caller_results(&self) -> CallerResults {
        self.node.caller_results().clone()
    }

    /// A toolbox of the workspace, wherever it is served.
    pub fn workspace_source(
        &self,
        toolbox: &Toolbox,
        results: &Arc<dyn ResultStore>,
    ) -> Result<Arc<dyn Source>, ToolError> {
        let (address, results) = (self.workspace_address(toolbox.name)?, Arc::clone(results));
        let listing = toolbox.listing();
        let source = RemoteSource::native(&self.node, address, toolbox.name, results, listing);
        self.remote.put(RemoteKind::Workspace, &source);
        Ok(Arc::new(source))
    }

    /// A server that a worker runs.
    pub fn server_source(
        &self,
        server: &str,
        results: &Arc<dyn ResultStore>,
    ) -> Result<Arc<dyn Source>, ToolError> {
        let address = server_address(server)?;
        let source = RemoteSource::new(&self.node, address, server, Arc::clone(results));
        self.remote.put(RemoteKind::Server, &source);
        Ok(Arc::new(source))
    }

    /// A server that no worker is to run any more.
    pub fn forget_server(&self, server: &str) {
        self.remote.remove(server);
    }

    /// What other nodes are told about the hub of this one.
    pub fn set_report(&self, audit: Arc<dyn AuditLog>, metrics: RenderMetrics) {
        self.report.set_hub(audit, metrics);
    }

    /// Readiness of what this node uses in the fleet.
    pub fn checks(&self) -> Vec<Check> {
        self.remote.checks(matches!(*self.node.bus().state().borrow(), BusState::Connected(_)))
    }

    fn workspace_address(&self, toolbox: &str) -> Result<SourceAddress, ToolError> {
        address(&workspace_service(&self.workspace), toolbox)
    }

    /// Serves the toolboxes of the workspace of this machine.
    pub fn serve_workspace(
        &self,
        settings: &Settings,
        stores: &Stores,
        sources: Vec<Arc<dyn Source>>,
    ) -> Result<NodeServices, ToolError> {
        let leases = fleet_leases(settings, stores);
        let files = WorkspaceFiles::new(settings, self.takes_over, stores.fleet_records.clone());
        let addressed =
            sources.into_iter().map(|source| Ok((self.workspace_address(source.name())?, source)));
        let addressed: Vec<_> = addressed.collect::<Result<_, ToolError>>()?;
        let name = workspace_service(&self.workspace);
        let start: ServiceStart = Box::new(move || Ok(addressed.clone()));
        Ok(NodeServices::start(&self.node, leases, self.services.clone(), name, start, files))
    }

    /// Runs a server whenever no other worker does.
    pub fn serve_server(
        &self,
        leases: Option<Arc<dyn Leases>>,
        server: &str,
        start: impl Fn() -> Result<Arc<dyn Source>, ToolError> + Send + Sync + 'static,
    ) -> Result<NodeServices, ToolError> {
        let address = server_address(server)?;
        let start: ServiceStart = Box::new(move || Ok(vec![(address.clone(), start()?)]));
        let name = server_service(server);
        Ok(NodeServices::start(&self.node, leases, self.services.clone(), name, start, None))
    }
}

/// How this node connects to NATS.
pub fn nats_options(settings: &Settings) -> Result<NatsOptions, AppError> {
    let fleet = &settings.fleet;
    let credentials = match &fleet.credentials {
        None => NatsCredentials::None,
        Some(secret) if secret.expose().contains(JWT_MARK) => NatsCredentials::Jwt(secret.clone()),
        Some(secret) => NatsCredentials::NKey(secret.clone()),
    };
    let (servers, ca_file, node) = (fleet.nats.clone(), fleet.ca_file.clone(), node_name(settings)?);
    Ok(NatsOptions { servers, credentials, ca_file, node, allow_open: fleet.allow_open_bus })
}

/// The keys with which this node proves who it is.
pub fn fleet_keys(settings: &Settings) -> Result<Option<FleetKeys>, AppError> {
    let keys = settings.fleet.secret.as_ref().map(FleetKeys::parse).transpose();
    keys.map_err(|error| AppError::invalid(format!("fleet.secret {error}.")))
}

/// What to do about a NATS server that accepts anybody.
pub const OPEN_BUS_REMEDY: &str = "Give each node a user there (docs/guide/fleet.md), or set fleet.allow_open_bus: true if nobody else can reach it.";

/// Connects to NATS in the background. A server that is there and accepts anybody is refused at once; one that comes
/// later is not used.
pub async fn connect(settings: &Settings) -> Result<Arc<Node>, AppError> {
    let options = nats_options(settings)?;
    if !options.allow_open
        && let Ok(Err(problem @ NatsProblem::Open)) =
            tokio::time::timeout(OPEN_BUS_TIMEOUT, check_nats(&options)).await
    {
        return Err(AppError::invalid(format!("fleet.nats: {problem}. {OPEN_BUS_REMEDY}")));
    }
    let bus = NatsBus::connect(&options).await.map_err(|error| refused(&error))?;
    let bus: Arc<dyn Bus> = match fleet_keys(settings)? {
        Some(keys) => Arc::new(SealedBus::new(Arc::new(bus), keys)),
        None => Arc::new(bus),
    };
    Node::open(options.node, bus).await.map_err(|error| refused(&error))
}

fn refused(error: &BusError) -> AppError {
    AppError::invalid(format!("fleet: {error}. Check fleet.nats and fleet.credentials."))
}

/// Name of the service of a workspace.
pub fn workspace_service(workspace: &str) -> String {
    format!("{WORKSPACE_INSTANCE_PREFIX}{workspace}")
}

/// Name of the service of a server that workers run.
pub fn server_service(server: &str) -> String {
    format!("{SERVER_INSTANCE_PREFIX}{server}")
}

fn front_address(node: &str) -> Result<SourceAddress, ToolError> {
    address(&format!("{FRONT_INSTANCE_PREFIX}{node}"), FRONT_SOURCE)
}

fn server_address(server: &str) -> Result<SourceAddress, ToolError> {
    address(&server_service(server), "server")
}

fn address(instance: &str, source: &str) -> Result<SourceAddress, ToolError> {
    SourceAddress::new(instance, source)
        .map_err(|error| ToolError::invalid(format!("`{instance}`: {error}.")).hint("Use a shorter name."))
}
