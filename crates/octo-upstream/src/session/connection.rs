//! A server with which a revision has been agreed on.

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
use arc_swap::ArcSwap;
use octo_model::JsonObject;
use octo_toolkit::{NoPeer, Peer};
use octo_wire::Era;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the end of a session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
const EXIT_REASON_TIMEOUT: Duration = Duration::from_millis(500);

/// The mirrored arguments of each tool that has any.
pub(crate) type ToolHeaderParams = HashMap<String, Vec<HeaderParam>>;

pub(crate) struct Connection {
    pub(crate) server: NegotiatedServer,
    pub(crate) closed: CloseSignal,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) header_params: ArcSwap<ToolHeaderParams>,
    /// Among those that can list; later ones have larger numbers.
    pub(crate) listing_rank: u64,
    transport: Transport,
    log_level: RequestedLogLevel,
    process: Mutex<Option<ChildProcess>>,
}

/// A request as the rest of the crate writes it.
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: JsonObject,
    /// The client for whom it is asked; nobody for requests of our own.
    pub(crate) peer: Option<&'a Arc<dyn Peer>>,
    /// Told when a subscription has been acknowledged.
    pub(crate) acknowledged: Option<oneshot::Sender<()>>,
}

impl<'a> OutgoingRequest<'a> {
    pub(crate) fn internal(method: &'a str, params: JsonObject) -> Self {
        Self { method, params, peer: None, acknowledged: None }
    }
}

impl Connection {
    /// Agrees on a revision with a server that has been reached.
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
            listing_rank: 0,
            transport,
            log_level: RequestedLogLevel::default(),
            process: Mutex::new(process),
        })
    }

    pub(crate) fn era(&self) -> Era {
        self.server.era
    }

    pub(crate) fn http(&self) -> Option<&Arc<Endpoint>> {
        match &self.transport {
            Transport::Http(endpoint) => Some(endpoint),
            Transport::Stdio(_) => None,
        }
    }

    /// The program, while it has not been ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|process| process.pid)
    }

    /// Asks and waits. Who stops waiting cancels the request, and only that one.
    pub(crate) async fn request(&self, ask: OutgoingRequest<'_>) -> UpstreamResult {
        let id = self.dispatcher.pending.next_id();
        let capabilities = ask.peer.map_or_else(|| NoPeer.capabilities(), |peer| peer.capabilities());
        let mirrored = self.param_headers(&ask);
        let (params, token) = request_meta::with_request_meta(ask.params, id, self.server.era, capabilities);
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
        // Whoever gives up on an answer that may still come cancels as well.
        under_way.answered =
            !matches!(outcome, Err(UpstreamError::ConnectionLost(_) | UpstreamError::TooLarge(_)));
        outcome
    }

    /// A legacy server says as much as the client that wants to hear most; each face leaves out the rest.
    pub(crate) async fn raise_log_level(&self, params: &JsonObject) {
        if self.server.era == Era::Modern || self.server.capabilities.get("logging").is_none() {
            return;
        }
        if let Some(level) = self.log_level.raise_for(params) {
            let params = JsonObject::new().with("level", level.as_str());
            // In a box, because every call would carry its states otherwise.
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

    /// Asks for something of our own that does no harm twice, within a time.
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

    /// Ends a connection that still works: the session first, then the process.
    pub(crate) async fn close(&self) {
        if let Some(endpoint) = self.http() {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.close()).await;
        }
        self.closed.set(UpstreamError::ConnectionLost("the connection was closed".to_owned()));
        self.teardown().await;
    }

    /// Ends what is left of a connection that broke.
    pub(crate) async fn teardown(&self) {
        self.dispatcher.pending.close(self.closed.wait().await);
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.close().await;
        }
    }
}

/// Why a program ended that did not even read what it was sent.
async fn exit_reason(lost: &CloseSignal, otherwise: String) -> String {
    match tokio::time::timeout(EXIT_REASON_TIMEOUT, lost.wait()).await {
        Ok(UpstreamError::ConnectionLost(why)) => why,
        _ => otherwise,
    }
}

/// A request that waits for its answer; dropped before that, it is cancelled at the server.
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
