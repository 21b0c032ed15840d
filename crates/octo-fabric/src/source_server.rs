//! Serves a source of this node to the others.

use crate::call_message::{
    CallRequest, LeavingNotice, ListingReply, ListingRequest, ListingVersion, MessageBody, WatchRequest,
    bare, kind, outcome_message,
};
use crate::call_stream::RECEIVE_BYTES;
use crate::call_stream::{CallMessage, CallStream, OutgoingMessage, StreamError};
use crate::fleet_metrics::{FRONT_KIND, count_served_as, service_kind};
use crate::node::Node;
use crate::source_watchers::{MAX_WATCHED, SourceWatchers, WatchChanges};
use crate::{BusError, LeaseCheck, Message, ServedFiles, SourceAddress, Subscription, served_call};
use futures_util::StreamExt;
use octo_admission::ReceiveBudget;
use octo_admission::{CallSlots, FairSlot, ShedReason, SourceSlot};
use octo_model::{DEFAULT_RETRY_AFTER, JsonObject, Principal, ToolError};
use octo_ports::random_id::new_id;
use octo_toolkit::{Event, Source};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// Requests of one source that are received, run or answered at the same time. Further ones are refused before they are
/// read.
const MAX_PENDING_REQUESTS: usize = 2560;
/// Of these, requests in parts that are being received. They wait for memory, and small ones must not wait for them.
const MAX_LARGE_REQUESTS: usize = 256;
/// How long a server that leaves still takes calls, so that the other nodes know before that it leaves.
const LAME_DUCK_DURATION: Duration = Duration::from_millis(200);
/// How long the first message of a call may take to arrive completely.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Ends the service when dropped; calls in progress are then cancelled.
pub struct SourceServer {
    service: Arc<Service>,
    draining: CancellationToken,
    /// Whether no more calls are taken.
    has_left: watch::Receiver<bool>,
    receiver: AbortOnDropHandle<()>,
    _notices: AbortOnDropHandle<()>,
}

struct Requests {
    listings: Subscription,
    calls: Subscription,
}

/// What a request may ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestScope {
    /// The server is leaving, which is the answer to everything.
    Leaving,
    ListingOnly,
    All,
}

struct Service {
    node: Arc<Node>,
    address: SourceAddress,
    source: Arc<dyn Source>,
    /// Distinguishes the listings of this process from those of its predecessor.
    id: String,
    slots: Arc<CallSlots>,
    budget: ReceiveBudget,
    large_requests: Semaphore,
    calls: TaskTracker,
    cancel: CancellationToken,
    lease: Option<LeaseCheck>,
    files: Option<ServedFiles>,
    watchers: Mutex<SourceWatchers>,
}

/// Serves `source` at an address until the server is dropped, or its lease is lost.
pub async fn serve_source(
    node: &Arc<Node>,
    address: SourceAddress,
    source: Arc<dyn Source>,
    lease: Option<LeaseCheck>,
) -> Result<SourceServer, BusError> {
    serve_files(node, address, source, lease, None).await
}

/// The same for a source of a workspace, whose files the other nodes are told.
pub async fn serve_files(
    node: &Arc<Node>,
    address: SourceAddress,
    source: Arc<dyn Source>,
    lease: Option<LeaseCheck>,
    files: Option<ServedFiles>,
) -> Result<SourceServer, BusError> {
    let id = new_id("").map_err(|error| BusError::Refused(error.to_string()))?;
    let requests = Requests {
        listings: node.bus().subscribe(&address.listing_requests(), None).await?,
        calls: node.bus().subscribe(&address.requests_to(&id), None).await?,
    };
    let slots = Arc::clone(node.slots(service_kind(address.instance())));
    let service = Arc::new(Service {
        node: Arc::clone(node),
        address,
        source,
        id,
        slots,
        budget: ReceiveBudget::new(RECEIVE_BYTES),
        large_requests: Semaphore::new(MAX_LARGE_REQUESTS),
        calls: TaskTracker::new(),
        cancel: CancellationToken::new(),
        lease,
        files,
        watchers: Mutex::default(),
    });
    let draining = CancellationToken::new();
    let (left, has_left) = watch::channel(false);
    let receiver = tokio::spawn(Arc::clone(&service).receive(requests, draining.clone(), left));
    let notices = tokio::spawn(Arc::clone(&service).send_notices());
    Ok(SourceServer {
        service,
        draining,
        has_left,
        receiver: AbortOnDropHandle::new(receiver),
        _notices: AbortOnDropHandle::new(notices),
    })
}

impl SourceServer {
    /// Becomes true when no more calls are taken.
    pub fn drained(&self) -> watch::Receiver<bool> {
        self.has_left.clone()
    }

    /// Takes no more calls and waits for those in progress; what has not ended by then is cancelled.
    pub async fn drain(mut self, at_most: Duration) {
        self.draining.cancel();
        let ended = async {
            // The receiver ends after the requests that were already delivered.
            let _ = (&mut self.receiver).await;
            self.service.calls.close();
            self.service.calls.wait().await;
        };
        let _ = tokio::time::timeout(at_most, ended).await;
    }
}

impl Drop for SourceServer {
    fn drop(&mut self) {
        self.service.cancel.cancel();
    }
}

impl Service {
    async fn receive(
        self: Arc<Self>,
        mut requests: Requests,
        draining: CancellationToken,
        left: watch::Sender<bool>,
    ) {
        let mut is_draining = false;
        let lease = self.lease.clone();
        let mut lost = std::pin::pin!(async move {
            match lease {
                Some(lease) => lease.lost().await,
                None => std::future::pending().await,
            }
        });
        let mut lame_duck = std::pin::pin!(tokio::time::sleep(LAME_DUCK_DURATION));
        loop {
            tokio::select! {
                biased;
                () = &mut lost => {
                    self.cancel.cancel();
                    return;
                }
                () = draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    self.publish(&self.leaving_message()).await;
                    lame_duck.as_mut().reset(tokio::time::Instant::now() + LAME_DUCK_DURATION);
                }
                () = &mut lame_duck, if is_draining && !*left.borrow() => {
                    // The streams end after the requests that were already delivered.
                    requests.listings.drain().await;
                    requests.calls.drain().await;
                    left.send_replace(true);
                }
                Some(message) = requests.listings.next() => {
                    let scope = if is_draining { RequestScope::Leaving } else { RequestScope::ListingOnly };
                    if self.holds_lease() {
                        self.take(message, scope);
                    }
                }
                message = requests.calls.next() => match message {
                    Some(message) => self.take(message, RequestScope::All),
                    None => return,
                },
            }
        }
    }

    fn leaving_message(&self) -> OutgoingMessage {
        let notice = LeavingNotice { server: self.id.clone() };
        notice.to_message().unwrap_or_else(|error| error_message(&error))
    }

    fn kind(&self) -> &'static str {
        service_kind(self.address.instance())
    }

    fn holds_lease(&self) -> bool {
        self.lease.as_ref().is_none_or(LeaseCheck::holds)
    }

    /// Handles a request in a task of its own.
    fn take(self: &Arc<Self>, message: Message, scope: RequestScope) {
        let service = Arc::clone(self);
        self.calls.spawn(async move {
            if let Err(error) = service.answer(message, scope).await {
                tracing::debug!(source = %service.address, %error, "a call of another node ended early");
            }
        });
    }

    async fn answer(&self, message: Message, scope: RequestScope) -> Result<(), StreamError> {
        if message.reply.is_none() {
            return Err(StreamError::Malformed("a request without an address for the reply"));
        }
        let mut stream = CallStream::new(&self.node, &self.budget, message.reply.clone());
        let accepted = stream.accept(message);
        if let Err(StreamError::Version(_)) = accepted {
            stream.refuse_version();
        }
        accepted?;
        // Requests of the listing are never refused: without it, the source would be down for everybody.
        let is_call = scope == RequestScope::All;
        let is_full = is_call && self.calls.len() > MAX_PENDING_REQUESTS;
        let receiving = (is_call && stream.is_receiving()).then(|| self.large_requests.try_acquire());
        if is_full || receiving.as_ref().is_some_and(Result::is_err) {
            let reason = self.slots.shed(ShedReason::QueueFull);
            return self.shed(&reason.error(self.node_noun()), stream).await;
        }
        let request = tokio::time::timeout(REQUEST_TIMEOUT, stream.receive()).await;
        let request = request.map_err(|_| StreamError::Lost)??;
        drop(receiving);
        if !self.holds_lease() {
            let lost = ToolError::unavailable(format!("Another worker takes over `{}`.", self.address))
                .hint("Try again in a moment.")
                .retry_after(DEFAULT_RETRY_AFTER);
            return stream.send_last(error_message(&lost)).await;
        }
        match request.kind {
            _ if scope == RequestScope::Leaving => stream.send_last(self.leaving_message()).await,
            kind::CALL if scope == RequestScope::All => self.call(&request, stream).await,
            kind::LISTING_REQUEST => stream.send_last(self.listing(&request).await).await,
            kind::WATCH if scope == RequestScope::All => stream.send_last(self.watch(&request).await).await,
            _ => stream.send_last(error_message(&ToolError::invalid("An unknown request."))).await,
        }
    }

    async fn call(&self, request: &CallMessage, mut stream: CallStream) -> Result<(), StreamError> {
        let call = match CallRequest::from_message(request) {
            Ok(call) => call,
            Err(error) => return stream.send_last(error_message(&error)).await,
        };
        let _slots = match self.admit(&call.header.caller.principal) {
            Ok(slots) => slots,
            Err(error) => return self.shed(&error, stream).await,
        };
        let (results, cancel) = (self.node.caller_results(), self.cancel.child_token());
        served_call::run(&self.source, call, stream, results, self.kind(), cancel).await
    }

    fn admit(&self, who: &Principal) -> Result<(FairSlot, Option<SourceSlot>), ToolError> {
        let slot = self.slots.admit(who).map_err(|reason| reason.error(self.node_noun()))?;
        // A front is a single source.
        let at_source = (self.kind() != FRONT_KIND)
            .then(|| self.slots.admit_to_source(&self.address.to_string(), who))
            .transpose()?;
        Ok((slot, at_source))
    }

    fn node_noun(&self) -> &'static str {
        if self.kind() == FRONT_KIND { "The front" } else { "The worker" }
    }

    async fn shed(&self, error: &ToolError, mut stream: CallStream) -> Result<(), StreamError> {
        count_served_as(self.kind(), "rate_limited");
        stream.send_last(error_message(error)).await
    }

    async fn listing(&self, request: &CallMessage) -> OutgoingMessage {
        let request = match ListingRequest::from_message(request) {
            Ok(request) => request,
            Err(error) => return error_message(&error),
        };
        let watched = request.watched.into_iter().take(MAX_WATCHED).collect();
        let changes = self.lock_watchers().renew(&request.node, watched, Instant::now());
        let _ = self.apply(changes).await;
        let state = self.source.listing().borrow().clone();
        let version = ListingVersion { server: self.id.clone(), version: state.version };
        if request.known.as_ref() == Some(&version) {
            return bare(kind::UNCHANGED);
        }
        let token = self.lease.as_ref().map_or(0, LeaseCheck::token);
        let (listing, files) = ((*state.listing).clone(), self.files.clone());
        let reply = ListingReply { version, token, state: state.state, listing, files };
        reply.to_message().unwrap_or_else(|error| error_message(&error))
    }

    async fn watch(&self, request: &CallMessage) -> OutgoingMessage {
        let outcome = async {
            let WatchRequest { node, uri, on } = WatchRequest::from_message(request)?;
            let changes = self.lock_watchers().set(&node, &uri, on, Instant::now());
            let outcome = self.apply(changes).await;
            if outcome.is_err() && on {
                self.lock_watchers().set(&node, &uri, false, Instant::now());
            }
            outcome.map(|()| JsonObject::new())
        };
        outcome_message(outcome.await).unwrap_or_else(|error| error_message(&error))
    }

    /// Returns the last failure to start watching.
    async fn apply(&self, changes: WatchChanges) -> Result<(), ToolError> {
        for uri in changes.stopped {
            let _ = self.source.watch(&uri, false).await;
        }
        let mut outcome = Ok(());
        for uri in changes.started {
            outcome = self.source.watch(&uri, true).await;
        }
        outcome
    }

    fn lock_watchers(&self) -> std::sync::MutexGuard<'_, SourceWatchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the service, changes of the listing, and events.
    async fn send_notices(self: Arc<Self>) {
        let mut listing = self.source.listing();
        let mut events = self.source.events();
        let mut bus_state = self.node.bus().state();
        self.publish(&bare(kind::LISTING_CHANGED)).await;
        loop {
            tokio::select! {
                changed = listing.changed() => match changed {
                    Ok(()) => self.publish(&bare(kind::LISTING_CHANGED)).await,
                    Err(_) => return,
                },
                Ok(()) = bus_state.changed() => self.publish(&bare(kind::LISTING_CHANGED)).await,
                event = next_event(&mut events) => match event.to_message() {
                    Ok(message) => self.publish(&message).await,
                    Err(error) => tracing::warn!(%error, "an event was not sent to the other nodes"),
                },
            }
        }
    }

    /// A notice that is lost is made up for by the next request of the listing.
    async fn publish(&self, notice: &OutgoingMessage) {
        let message = Message::new(self.address.notices(), None, notice.to_frame(0));
        if let Err(error) = self.node.bus().publish(message).await {
            tracing::debug!(source = %self.address, %error, "a notice was not sent to the other nodes");
        }
    }
}

async fn next_event(events: &mut Option<broadcast::Receiver<Event>>) -> Event {
    while let Some(receiver) = events {
        match receiver.recv().await {
            Ok(event) => return event,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => *events = None,
        }
    }
    std::future::pending().await
}

fn error_message(error: &ToolError) -> OutgoingMessage {
    error.to_message().unwrap_or_else(|_| bare(kind::ERROR))
}
