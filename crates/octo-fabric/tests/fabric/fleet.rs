//! Two nodes: one serves a source, the other calls it.

use crate::nats_server::NatsServer;
use crate::test_source::TestSource;
use octo_fabric::{
    Bus, FleetKeys, InProcessBus, Node, RemoteSource, SealedBus, SourceAddress, SourceServer, serve_source,
};
use octo_model::{Caller, Json, JsonObject, Operation, Secret, ToolError};
use octo_ports::{ResultStore, ResultWriter, Stores};
use octo_toolkit::{CallContext, CallHeader, Peer, Source, SourceState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub const DEADLINE: Duration = Duration::from_secs(20);

pub struct Fleet {
    pub front: Arc<Node>,
    pub worker: Arc<Node>,
    pub source: Arc<TestSource>,
    pub remote: Arc<RemoteSource>,
    /// Results that were stored at the front.
    pub results: Arc<dyn ResultStore>,
    pub server: Option<SourceServer>,
    pub nats: Option<NatsServer>,
}

#[derive(Debug, Clone, Copy)]
pub enum BusKind {
    InProcess,
    Nats,
}

/// One test per rule and bus. A rule gets what `$fleet` starts.
macro_rules! bus_rules {
    ($fleet:ident; $($rule:ident),* $(,)?) => {
        mod in_process {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() { super::$rule(super::$fleet::start(super::BusKind::InProcess).await).await })*
        }
        mod nats {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() { super::$rule(super::$fleet::start(super::BusKind::Nats).await).await })*
        }
    };
}
pub(crate) use bus_rules;

/// The secret of every fleet of these tests.
pub fn secret() -> Secret {
    Secret::new("the secret of a fleet that only tests use")
}

pub fn worker_keys(services: &[&str]) -> Secret {
    let services: Vec<_> = services.iter().map(|&service| service.to_owned()).collect();
    FleetKeys::parse(&secret()).unwrap().for_worker(&services).unwrap()
}

pub fn sealed(bus: Arc<dyn Bus>, secret: &Secret) -> Arc<dyn Bus> {
    Arc::new(SealedBus::new(bus, FleetKeys::parse(secret).unwrap()))
}

pub fn address() -> SourceAddress {
    SourceAddress::new("workspace/one", "test").unwrap()
}

impl Fleet {
    pub async fn start(kind: BusKind) -> Self {
        match kind {
            BusKind::InProcess => {
                let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
                Self::on(Arc::clone(&bus), bus, None).await
            }
            BusKind::Nats => {
                let nats = NatsServer::start();
                let (front, worker) = (nats.bus("front").await, nats.bus("worker").await);
                let keys = worker_keys(&["workspace/one", "workspace/two"]);
                Self::on(sealed(front, &secret()), sealed(worker, &keys), Some(nats)).await
            }
        }
    }

    pub async fn on(front: Arc<dyn Bus>, worker: Arc<dyn Bus>, nats: Option<NatsServer>) -> Self {
        let front = Node::open("front", front).await.unwrap();
        let worker = Node::open("worker", worker).await.unwrap();
        let source =
            Arc::new(TestSource::with_results(ResultWriter::new(Arc::new(worker.caller_results().clone()))));
        let server =
            serve_source(&worker, address(), Arc::clone(&source) as Arc<dyn Source>, None).await.unwrap();
        let results = results();
        let remote = RemoteSource::new(&front, address(), "test", Arc::clone(&results));
        let remote = Arc::new(remote);
        let fleet = Self { front, worker, source, remote, results, server: Some(server), nats };
        fleet.wait_until_ready().await;
        fleet
    }

    pub async fn wait_until_ready(&self) {
        wait_until_ready(&self.remote).await;
    }

    /// The same source at a second address of the worker.
    pub async fn second_source(&self) -> (SourceServer, Arc<RemoteSource>) {
        let address = SourceAddress::new("workspace/two", "test").unwrap();
        let source = Arc::clone(&self.source) as Arc<dyn Source>;
        let server = serve_source(&self.worker, address.clone(), source, None).await.unwrap();
        let remote = RemoteSource::new(&self.front, address, "test", results());
        wait_until_ready(&remote).await;
        (server, Arc::new(remote))
    }

    pub async fn call(&self, name: &str, params: &str) -> Result<JsonObject, ToolError> {
        self.call_with(name, params, &context()).await
    }

    /// Calls until a new server is found: the bus knows it a moment after it was started.
    pub async fn call_when_served(&self, name: &str) {
        let deadline = Instant::now() + DEADLINE;
        while let Err(error) = self.call(name, "{}").await {
            assert!(Instant::now() < deadline, "{error}");
        }
    }

    pub async fn call_with(
        &self,
        name: &str,
        params: &str,
        cx: &CallContext,
    ) -> Result<JsonObject, ToolError> {
        let operation = operation(name, params);
        tokio::time::timeout(DEADLINE, self.remote.run(operation, cx)).await.expect("the call does not end")
    }
}

async fn wait_until_ready(remote: &RemoteSource) {
    let mut listing = remote.listing();
    let ready = listing.wait_for(|state| state.state == SourceState::Ready);
    tokio::time::timeout(DEADLINE, ready).await.expect("the source is not ready").unwrap();
}

pub fn results() -> Arc<dyn ResultStore> {
    Stores::in_memory().results
}

pub fn operation(name: &str, params: &str) -> Operation {
    let mut operation = Operation::tool(name, Json::null());
    operation.params = JsonObject::parse(params.to_owned()).unwrap();
    operation
}

pub fn header() -> CallHeader {
    CallHeader::new(Arc::new(Caller::local()), Instant::now() + DEADLINE)
}

pub fn context() -> CallContext {
    CallContext::new(Arc::new(Caller::local()), Instant::now() + DEADLINE, CancellationToken::new())
}

pub fn context_with(peer: Arc<dyn Peer>, header: CallHeader) -> CallContext {
    CallContext::from_header(header, CancellationToken::new(), peer)
}

/// Waits for a condition.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
