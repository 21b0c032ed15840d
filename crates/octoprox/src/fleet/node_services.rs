//! What this node serves to others, as long as it has the lease.

use crate::fleet::service_registry::ServiceRegistry;
use crate::fleet::workspace_files::WorkspaceFiles;
use octo_fabric::{
    BusState, ClaimOutcome, LeaseCheck, Node, ServedFiles, ServiceClaim, ServiceLease, SourceAddress,
    SourceServer, serve_files,
};
use octo_model::ToolError;
use octo_ports::Leases;
use octo_ports::leases::LEASE_CHECK_INTERVAL;
use octo_toolkit::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a service waits after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const LEASE_PREFIX: &str = "fleet/";
/// How long calls in progress may take when the node stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);

/// How long a node without the bus keeps its lease. Calls in progress do not survive longer.
const OFFLINE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long calls may take to end after they were cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// Without leases, nodes claim their services among each other.
    leases: Option<Arc<dyn Leases>>,
    name: String,
    start: ServiceStart,
    registry: ServiceRegistry,
    stop: CancellationToken,
    /// Of a workspace.
    files: Option<Arc<WorkspaceFiles>>,
    /// Another node, without a database, serves other files.
    has_other_files: AtomicBool,
}

impl NodeServices {
    pub fn start(
        node: &Arc<Node>,
        leases: Option<Arc<dyn Leases>>,
        registry: ServiceRegistry,
        name: String,
        start: ServiceStart,
        files: Option<Arc<WorkspaceFiles>>,
    ) -> Self {
        let stop = CancellationToken::new();
        let service = Service {
            node: Arc::clone(node),
            leases,
            name,
            start,
            registry,
            stop: stop.clone(),
            files,
            has_other_files: AtomicBool::new(false),
        };
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
                right = self.acquire() => self.serve(right).await,
            };
            match ended {
                Ok(ServiceEnd::Stopped) => return,
                Ok(ServiceEnd::Lost) => {}
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
    async fn acquire(&self) -> ServiceRight {
        loop {
            let mut connection = self.node.bus().state();
            let connected = connection.wait_for(|state| matches!(state, BusState::Connected(_)));
            let _ = connected.await;
            let acquired = match &self.leases {
                Some(leases) => self.acquire_lease(leases).await,
                None => self.claim().await,
            };
            match acquired {
                Ok(Some(right)) => return right,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(target: "fleet", service = self.name, %error, "cannot acquire the service");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    fn served_files(&self) -> Option<&ServedFiles> {
        self.files.as_ref().map(|files| &files.served)
    }

    /// This node does not stand by, since its files are not those of the workspace. They may be on record later.
    async fn refuse(&self) {
        if self.registry.set_other_files(&self.name) {
            tracing::error!(
                target: "fleet",
                service = self.name,
                "the workspace of this worker has other files than the one that was served under this name before, so it \
                 does not serve and does not stand by. Give it a name of its own (fleet.workspace); if the files are \
                 shared, set fleet.workspace_files to the same text at all workers that share them; to serve these files \
                 from now on, start it with `octoprox worker --take-over`"
            );
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }

    async fn acquire_lease(&self, leases: &Arc<dyn Leases>) -> Result<Option<ServiceRight>, ToolError> {
        let mut changes = leases.changes();
        if let Some(files) = &self.files
            && !files.are_on_record().await?
        {
            self.refuse().await;
            return Ok(None);
        }
        let lease = ServiceLease::acquire(leases, &format!("{LEASE_PREFIX}{}", self.name)).await?;
        let Some(lease) = lease else {
            let _ = tokio::time::timeout(LEASE_CHECK_INTERVAL, changes.changed()).await;
            return Ok(None);
        };
        if let Some(files) = &self.files
            && !files.put_on_record().await?
        {
            lease.release().await?;
            return Ok(None);
        }
        let claim = ServiceClaim::of_lease(&self.node, &self.name, lease.check(), self.served_files()).await;
        Ok(Some(ServiceRight::Lease(lease, claim.map_err(ToolError::internal)?)))
    }

    async fn claim(&self) -> Result<Option<ServiceRight>, ToolError> {
        // Nobody else would remember it when the other node has ended.
        if self.has_other_files.load(Ordering::Relaxed) {
            self.refuse().await;
            return Ok(None);
        }
        let claimed = ServiceClaim::acquire_for(&self.node, &self.name, self.served_files()).await;
        match claimed.map_err(ToolError::internal)? {
            ClaimOutcome::Held(claim) => Ok(Some(ServiceRight::Claim(claim))),
            ClaimOutcome::Objected { files } => {
                let has_others = files.zip(self.served_files()).is_some_and(|(id, own)| !own.may_follow(&id));
                self.has_other_files.store(has_others, Ordering::Relaxed);
                tokio::time::sleep(RETRY_INTERVAL).await;
                Ok(None)
            }
        }
    }

    async fn serve(&self, right: ServiceRight) -> Result<ServiceEnd, ToolError> {
        let check = right.check();
        let servers = self.start_servers(&check).await?;
        let token = matches!(right, ServiceRight::Lease(..)).then(|| check.token());
        // A field called `token` would be redacted.
        tracing::info!(target: "fleet", service = self.name, lease = token, "serving");
        self.registry.set_serving(&self.name, token);
        tokio::select! {
            () = check.lost() => {
                tracing::warn!(target: "fleet", service = self.name, "another node takes over");
                return Ok(ServiceEnd::Lost);
            }
            () = self.is_offline(), if matches!(right, ServiceRight::Lease(..)) => {
                tracing::warn!(target: "fleet", service = self.name, "not connected: another node may take over");
                drop(servers);
                tokio::time::sleep(CANCEL_TIMEOUT).await;
                right.release().await;
                return Ok(ServiceEnd::Lost);
            }
            () = self.stop.cancelled() => {}
        }
        futures_util::future::join_all(servers.into_iter().map(|server| server.drain(DRAIN_TIMEOUT))).await;
        right.release().await;
        Ok(ServiceEnd::Stopped)
    }

    /// Waits until the bus has been away for long. A node that reaches the database but not the bus could renew its lease
    /// forever, and nobody would serve.
    async fn is_offline(&self) {
        let mut connection = self.node.bus().state();
        loop {
            let _ = connection.wait_for(|state| !matches!(state, BusState::Connected(_))).await;
            let connected = connection.wait_for(|state| matches!(state, BusState::Connected(_)));
            if tokio::time::timeout(OFFLINE_TIMEOUT, connected).await.is_err() {
                return;
            }
        }
    }

    async fn start_servers(&self, check: &LeaseCheck) -> Result<Vec<SourceServer>, ToolError> {
        let mut servers = Vec::new();
        for (address, source) in (self.start)()? {
            let files = self.served_files().cloned();
            let server = serve_files(&self.node, address, source, Some(check.clone()), files).await;
            servers.push(server.map_err(ToolError::internal)?);
        }
        Ok(servers)
    }
}

/// Why this node may serve.
enum ServiceRight {
    /// Others without this database hear of it by a claim.
    Lease(ServiceLease, ServiceClaim),
    Claim(ServiceClaim),
}

impl ServiceRight {
    fn check(&self) -> LeaseCheck {
        match self {
            Self::Lease(lease, _) => lease.check(),
            Self::Claim(claim) => claim.check(),
        }
    }

    /// Gives a lease back, so that another node need not wait for its end.
    async fn release(self) {
        if let Self::Lease(lease, _claim) = self {
            // Otherwise it ends by itself.
            let _ = lease.release().await;
        }
    }
}

enum ServiceEnd {
    Stopped,
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_fabric::{Bus, BusError, InProcessBus, Message, SERVICE_LEASE_DURATION, Subject, Subscription};
    use octo_model::BoxFuture;
    use octo_ports::Stores;
    use tokio::sync::watch;

    /// A bus whose connection can be lost.
    struct SwitchableBus {
        bus: InProcessBus,
        state: watch::Sender<BusState>,
    }

    impl Bus for SwitchableBus {
        fn publish<'a>(&'a self, message: Message) -> BoxFuture<'a, Result<(), BusError>> {
            self.bus.publish(message)
        }

        fn subscribe<'a>(
            &'a self,
            subject: &'a Subject,
            group: Option<&'a str>,
        ) -> BoxFuture<'a, Result<Subscription, BusError>> {
            self.bus.subscribe(subject, group)
        }

        fn state(&self) -> watch::Receiver<BusState> {
            self.state.subscribe()
        }

        fn max_payload(&self) -> usize {
            self.bus.max_payload()
        }
    }

    #[tokio::test]
    async fn a_node_without_the_bus_gives_its_lease_back() {
        let leases = Stores::in_memory().leases;
        let state = watch::Sender::new(BusState::Connected(1));
        let bus = Arc::new(SwitchableBus { bus: InProcessBus::default(), state });
        let node = Node::open("one", Arc::clone(&bus) as Arc<dyn Bus>).await.unwrap();
        let (registry, start) = (ServiceRegistry::default(), Box::new(|| Ok(Vec::new())) as ServiceStart);
        let shared = Some(Arc::clone(&leases));
        let _services = NodeServices::start(&node, shared, registry.clone(), "a".to_owned(), start, None);
        while !registry.all().iter().any(|service| service.is_serving) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let acquire = || leases.acquire("fleet/a", SERVICE_LEASE_DURATION);
        assert!(acquire().await.unwrap().is_none());
        bus.state.send_replace(BusState::Disconnected);
        let taken_over = async {
            while acquire().await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(OFFLINE_TIMEOUT + CANCEL_TIMEOUT * 2, taken_over).await.unwrap();
    }
}
