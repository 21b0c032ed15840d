//! What this node serves to others, as long as it has the lease.

use crate::fleet::service_registry::ServiceRegistry;
use octo_fabric::{LeaseCheck, Node, ServiceLease, SourceAddress, SourceServer, is_served, serve_source};
use octo_model::ToolError;
use octo_ports::Leases;
use octo_ports::leases::LEASE_CHECK_INTERVAL;
use octo_toolkit::Source;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a service waits after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long calls in progress may take when the node stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);

/// Starts the sources of a service.
pub type ServiceStart =
    Box<dyn Fn() -> Result<Vec<(SourceAddress, Arc<dyn Source>)>, ToolError> + Send + Sync + 'static>;

/// Ends when dropped.
pub struct NodeServices {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

struct Service {
    node: Arc<Node>,
    /// Without leases, a service is started if nobody else answers for it.
    leases: Option<Arc<dyn Leases>>,
    name: String,
    start: ServiceStart,
    registry: ServiceRegistry,
    stop: CancellationToken,
}

impl NodeServices {
    pub fn start(
        node: &Arc<Node>,
        leases: Option<Arc<dyn Leases>>,
        registry: ServiceRegistry,
        name: String,
        start: ServiceStart,
    ) -> Self {
        let stop = CancellationToken::new();
        let service = Service { node: Arc::clone(node), leases, name, start, registry, stop: stop.clone() };
        Self { stop, task: Some(tokio::spawn(service.run())) }
    }

    /// Completes the calls in progress and hands the service over.
    pub async fn drain(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for NodeServices {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Service {
    async fn run(self) {
        self.serve_repeatedly().await;
        self.registry.remove(&self.name);
    }

    async fn serve_repeatedly(&self) {
        loop {
            self.registry.set_standby(&self.name);
            let ended = tokio::select! {
                () = self.stop.cancelled() => return,
                lease = self.acquire() => self.serve(lease).await,
            };
            match ended {
                Ok(ServiceEnd::Stopped) => return,
                Ok(ServiceEnd::LeaseLost) => {}
                Err(error) => {
                    tracing::error!(target: "fleet", service = self.name, %error, "cannot serve");
                    tokio::select! {
                        () = self.stop.cancelled() => return,
                        () = tokio::time::sleep(RETRY_INTERVAL) => {}
                    }
                }
            }
        }
    }

    /// Waits until this node may serve.
    async fn acquire(&self) -> Option<ServiceLease> {
        let leases = self.leases.as_ref()?;
        loop {
            let mut changes = leases.changes();
            match ServiceLease::acquire(leases, &self.name).await {
                Ok(Some(lease)) => return Some(lease),
                Ok(None) => {
                    let _ = tokio::time::timeout(LEASE_CHECK_INTERVAL, changes.changed()).await;
                }
                Err(error) => {
                    tracing::warn!(target: "fleet", service = self.name, %error, "cannot acquire the lease");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    async fn serve(&self, lease: Option<ServiceLease>) -> Result<ServiceEnd, ToolError> {
        let check = lease.as_ref().map(ServiceLease::check);
        let servers = self.start_servers(check.as_ref()).await?;
        let token = check.as_ref().map(LeaseCheck::token);
        tracing::info!(target: "fleet", service = self.name, token, "serving");
        self.registry.set_serving(&self.name, token);
        let lost = async {
            match &check {
                Some(check) => check.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = lost => {
                tracing::warn!(target: "fleet", service = self.name, "another node takes over");
                return Ok(ServiceEnd::LeaseLost);
            }
            () = self.stop.cancelled() => {}
        }
        futures_util::future::join_all(servers.into_iter().map(|server| server.drain(DRAIN_TIMEOUT))).await;
        if let Some(lease) = lease {
            let _ = lease.release().await;
        }
        Ok(ServiceEnd::Stopped)
    }

    async fn start_servers(&self, lease: Option<&LeaseCheck>) -> Result<Vec<SourceServer>, ToolError> {
        let mut servers = Vec::new();
        for (address, source) in (self.start)()? {
            if lease.is_none() && is_served(&self.node, &address).await? {
                return Err(ToolError::unavailable(format!("Another worker serves `{address}`."))
                    .hint("Use another name for this one."));
            }
            let server = serve_source(&self.node, address, source, lease.cloned()).await;
            servers.push(server.map_err(ToolError::internal)?);
        }
        Ok(servers)
    }
}

enum ServiceEnd {
    Stopped,
    LeaseLost,
}
