//! Connection to a server with a negotiated revision.

use crate::error::{UpstreamError, UpstreamResult};
use crate::session::dispatcher::Dispatcher;
use crate::session::handshake::{self, NegotiatedServer, NegotiationPlan};
use crate::session::log_level::RequestedLogLevel;
use crate::session::pending_requests::{PendingRequest, RequestClient};
use crate::session::request_meta;
use crate::transport::close_signal::CloseSignal;
use crate::transport::header_params::{self, HeaderParam};
use crate::transport::http::endpoint::Endpoint;
use crate::transport::stdio::child_process::ChildProcess;
use crate::transport::{Transport, TransportRequest};
use arc_swap::{ArcSwap, ArcSwapOption};
use octo_model::JsonObject;
use octo_toolkit::Peer;
use octo_wire::Era;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Maximum time to end a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
const EXIT_REASON_TIMEOUT: Duration = Duration::from_millis(500);

/// Header parameters per tool.
pub(crate) type ToolHeaderParams = HashMap<String, Vec<HeaderParam>>;

pub(crate) struct Connection {
    pub(crate) server: NegotiatedServer,
    pub(crate) closed: CloseSignal,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) header_params: ArcSwap<ToolHeaderParams>,
    /// Tools of a legacy server that can only be called as tasks; `None` before they are listed.
    pub(crate) task_tools: ArcSwapOption<HashSet<String>>,
    /// Rank in the listing election; later connections have larger numbers.
    pub(crate) listing_rank: u64,
    transport: Transport,
    log_level: RequestedLogLevel,
    process: Mutex<Option<ChildProcess>>,
    opened: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let transport = if matches!(self.transport, Transport::Stdio(_)) { "pipe" } else { "tcp" };
        let labels =
            [("server", self.dispatcher.name.to_string()), ("network_transport", transport.to_owned())];
        metrics::histogram!("mcp_client_session_duration_seconds", &labels)
            .record(self.opened.elapsed().as_secs_f64());
    }
}

/// A request, before it is encoded.
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: JsonObject,
    /// The client that requested it; `None` for requests of the hub itself.
    pub(crate) peer: Option<&'a Arc<dyn Peer>>,
    /// Notified when a subscription is acknowledged.
    pub(crate) acknowledged: Option<oneshot::Sender<()>>,
}

impl<'a> OutgoingRequest<'a> {
    pub(crate) fn internal(method: &'a str, params: JsonObject) -> Self {
        Self { method, params, peer: None, acknowledged: None }
    }
}

impl Connection {
    /// Negotiates a revision with a server that has been reached.
    pub(crate) async fn open(
        transport: Transport,
        process: Option<ChildProcess>,
        dispatcher: Arc<Dispatcher>,
        closed: CloseSignal,
        plan: NegotiationPlan,
    ) -> UpstreamResult<Self> {
        let server = match handshake::negotiate(&transport, &dispatcher, plan).await {
            Ok(server) => server,
            Err(UpstreamError::NotSent(why)) if process.is_some() => {
                return Err(UpstreamError::NotSent(exit_reason(&closed, why).await));
            }
            Err(why) => return Err(why),
        };
        Ok(Self {
            server,
            closed,
            dispatcher,
            header_params: ArcSwap::default(),
            task_tools: ArcSwapOption::default(),
            listing_rank: 0,
            transport,
            log_level: RequestedLogLevel::default(),
            process: Mutex::new(process),
            opened: Instant::now(),
        })
    }

    pub(crate) fn era(&self) -> Era {
        self.server.era
    }

    pub(crate) fn http(&self) -> Option<&Arc<Endpoint>> {
        match &self.transport {
            Transport::Http(endpoint) => Some(endpoint),
            Transport::Stdio(_) | Transport::Sse(_) => None,
        }
    }

    /// Process id, while the process runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|process| process.pid)
    }

    /// Sends a request and waits. Dropping the future cancels this request only.
    pub(crate) async fn request(&self, ask: OutgoingRequest<'_>) -> UpstreamResult {
        let id = self.dispatcher.pending.next_id();
        let (capabilities, extensions) = match ask.peer {
            Some(peer) => (peer.capabilities(), self.server.capabilities.object("extensions")),
            None => request_meta::own_capabilities(),
        };
        let mirrored = self.param_headers(&ask);
        let (params, token) =
            request_meta::with_request_meta(ask.params, id, self.server.era, capabilities, &extensions);
        let behalf = ask.peer.map(|peer| RequestClient { peer: peer.clone(), progress_token: token });
        self.dispatcher.pending.insert(id, PendingRequest::new(behalf, ask.acknowledged));
        let mut under_way = CancelOnDrop { connection: self, id, answered: false };
        let request = TransportRequest {
            id,
            method: ask.method.to_owned(),
            params,
            era: self.server.era,
            param_headers: mirrored,
        };
        let outcome = self.transport.exchange(&self.dispatcher, request).await;
        // A response may still arrive, so these are cancelled as well.
        under_way.answered =
            !matches!(outcome, Err(UpstreamError::ConnectionLost(_) | UpstreamError::TooLarge(_)));
        outcome
    }

    /// Whether a legacy server offers tasks for calls of tools. Modern servers decide themselves which calls become tasks.
    pub(crate) fn offers_legacy_tasks(&self) -> bool {
        let requests = self.server.capabilities.object("tasks").object("requests");
        self.server.era == Era::Legacy && requests.object("tools").get("call").is_some()
    }

    /// Raises a legacy server's log level to the most verbose one requested; each frontend filters for its clients.
    pub(crate) async fn raise_log_level(&self, params: &JsonObject) {
        if self.server.era == Era::Modern || self.server.capabilities.get("logging").is_none() {
            return;
        }
        if let Some(level) = self.log_level.raise_for(params) {
            let params = JsonObject::new().with("level", level.as_str());
            // Boxed, because every call would carry its state otherwise.
            let _ = Box::pin(self.request_within(CLOSE_TIMEOUT, "logging/setLevel", params)).await;
        }
    }

    fn param_headers(&self, ask: &OutgoingRequest<'_>) -> Vec<(http::HeaderName, http::HeaderValue)> {
        let mirrors = self.header_params.load();
        if mirrors.is_empty() || ask.method != "tools/call" {
            return Vec::new();
        }
        let tool = ask.params.text("name").and_then(|name| mirrors.get(&name));
        tool.map(|tool| header_params::param_headers(tool, ask.params.get("arguments"))).unwrap_or_default()
    }

    /// Sends an idempotent request of the hub itself, with a timeout.
    pub(crate) async fn request_within(
        &self,
        limit: Duration,
        method: &str,
        params: JsonObject,
    ) -> UpstreamResult {
        let asked = async {
            match self.request(OutgoingRequest::internal(method, params.clone())).await {
                Err(UpstreamError::ConnectionReset(_)) => {
                    self.request(OutgoingRequest::internal(method, params)).await
                }
                outcome => outcome,
            }
        };
        tokio::time::timeout(limit, asked).await.unwrap_or(Err(UpstreamError::Timeout(limit)))
    }

    /// Closes a working connection: the session first, then the process.
    pub(crate) async fn close(&self) {
        if let Some(endpoint) = self.http() {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.close()).await;
        }
        self.closed.set(UpstreamError::ConnectionLost("the connection was closed".to_owned()));
        self.teardown().await;
    }

    /// Cleans up after a broken connection.
    pub(crate) async fn teardown(&self) {
        self.dispatcher.pending.close(self.closed.wait().await);
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.close().await;
        }
    }
}

/// Why a program exited without reading its input.
async fn exit_reason(lost: &CloseSignal, otherwise: String) -> String {
    match tokio::time::timeout(EXIT_REASON_TIMEOUT, lost.wait()).await {
        Ok(UpstreamError::ConnectionLost(why)) => why,
        _ => otherwise,
    }
}

/// An active request; dropping it before the response cancels it at the server.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: u64,
    answered: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.connection.dispatcher.pending.remove(self.id);
        if !self.answered && !self.connection.closed.is_set() {
            self.connection.transport.cancel(self.id, self.connection.server.era);
        }
    }
}
