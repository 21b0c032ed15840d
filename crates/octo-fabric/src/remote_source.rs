//! A source that another node serves.

use crate::SourceAddress;
use crate::call_stream::RECEIVE_BYTES;
use crate::fleet_metrics::{RemoteCallMetrics, service_kind};
use crate::node::Node;
use crate::remote_call::{self, CallError, CallTarget, nobody_serves};
use crate::remote_listing::{MOVE_TIMEOUT, RemoteListing, ServerState};
use octo_admission::ReceiveBudget;
use octo_model::{BoxFuture, JsonObject, Operation, ToolError};
use octo_ports::ResultStore;
use octo_toolkit::{CallContext, Event, Listing, ListingState, Source};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{broadcast, watch};
use tokio_util::task::AbortOnDropHandle;

const EVENT_CAPACITY: usize = 256;

pub struct RemoteSource {
    name: String,
    is_native: bool,
    listing: Arc<RemoteListing>,
    metrics: RemoteCallMetrics,
    _follower: AbortOnDropHandle<()>,
}

impl RemoteSource {
    /// The source at an address, listed under `name`, which may be served now or later. `results` stores what its tools
    /// store while they run.
    pub fn new(
        node: &Arc<Node>,
        address: SourceAddress,
        name: impl Into<String>,
        results: Arc<dyn ResultStore>,
    ) -> Self {
        Self::with_listing(node, address, name.into(), results, None)
    }

    /// A native source, whose tools this node defines. The server decides only which of them it has.
    pub fn native(
        node: &Arc<Node>,
        address: SourceAddress,
        name: impl Into<String>,
        results: Arc<dyn ResultStore>,
        listing: Listing,
    ) -> Self {
        Self::with_listing(node, address, name.into(), results, Some(listing))
    }

    fn with_listing(
        node: &Arc<Node>,
        address: SourceAddress,
        name: String,
        results: Arc<dyn ResultStore>,
        own: Option<Listing>,
    ) -> Self {
        let is_native = own.is_some();
        let target = CallTarget {
            node: Arc::clone(node),
            address,
            budget: ReceiveBudget::new(RECEIVE_BYTES),
            results,
        };
        let metrics = RemoteCallMetrics::new(service_kind(target.address.instance()));
        let listing = Arc::new(RemoteListing::new(target, own, EVENT_CAPACITY));
        let follower = tokio::spawn(Arc::clone(&listing).follow());
        Self { name, is_native, listing, metrics, _follower: AbortOnDropHandle::new(follower) }
    }

    /// The process that serves the source, once it is known.
    async fn server(&self, deadline: Instant) -> Result<String, ToolError> {
        let mut servers = self.listing.server.subscribe();
        loop {
            let state = servers.borrow_and_update().clone();
            let until = match state {
                ServerState::Serving(server) => return Ok(server),
                ServerState::Absent(error) => return Err(error),
                ServerState::Unknown => tokio::time::Instant::now() + MOVE_TIMEOUT,
                ServerState::Moving(until) => until,
            };
            let until = until.min(tokio::time::Instant::from_std(deadline));
            if tokio::time::timeout_at(until, servers.changed()).await.is_err() {
                return Err(nobody_serves(&self.listing.target.address));
            }
        }
    }

    /// Runs a call where the source is served. A call that nobody received is sent to the next server, if there is one.
    async fn call(&self, op: Operation, cx: &CallContext) -> Result<JsonObject, ToolError> {
        let target = &self.listing.target;
        if matches!(*self.listing.server.borrow(), ServerState::Absent(_)) {
            self.listing.refresh_if_due().await;
        }
        let mut server = cx.run(self.server(cx.deadline)).await??;
        loop {
            match remote_call::run(target, &server, op.clone(), cx).await {
                Ok(result) => return Ok(result),
                Err(CallError::Failed(error)) => return Err(error),
                Err(CallError::NoServer) => {}
            }
            self.listing.refresh().await;
            let next = cx.run(self.server(cx.deadline)).await??;
            if next == server {
                return Err(nobody_serves(&target.address));
            }
            server = next;
        }
    }
}

impl Source for RemoteSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_native(&self) -> bool {
        self.is_native
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.state.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let started = Instant::now();
            let outcome = self.call(op, cx).await;
            self.metrics.record(&outcome, started.elapsed());
            outcome
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.listing.events.subscribe())
    }

    fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let server = self.server(Instant::now() + MOVE_TIMEOUT).await?;
            self.listing.watch(&server, uri, on).await
        })
    }
}
