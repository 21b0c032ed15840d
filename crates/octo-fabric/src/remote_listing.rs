//! Who serves a source on another node, and what it lists: kept up to date.

use crate::call_message::{
    LeavingNotice, ListingReply, ListingRequest, ListingVersion, MessageBody, WatchRequest, kind,
};
use crate::call_stream::{CallMessage, StreamError};
use crate::frame::Frame;
use crate::remote_call::{CallTarget, nobody_serves, receive, request_stream, stream_error};
use crate::{Message, SourceAddress};
use futures_util::StreamExt;
use octo_model::ToolError;
use octo_toolkit::{Event, Listing, ListingState, SourceState};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::task::AbortOnDropHandle;

/// How often the listing is compared. Changes are announced, but a notice can be lost.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often a source that nobody serves is looked for. A worker that starts announces itself.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The same while another worker is about to follow.
const MOVE_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long a server may take to answer. It answers at once, unless its process is suspended.
const LISTING_TIMEOUT: Duration = Duration::from_secs(3);
/// How long another worker may take to follow one that left.
pub(crate) const MOVE_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) struct RemoteListing {
    pub(crate) target: CallTarget,
    pub(crate) state: watch::Sender<ListingState>,
    pub(crate) events: broadcast::Sender<Event>,
    /// Resources that this node watches.
    watched: Mutex<BTreeSet<String>>,
    /// Definitions that replace those of the server, which can only leave some out.
    own_listing: Option<Listing>,
    /// Process that serves the source.
    pub(crate) server: watch::Sender<ServerState>,
    known: tokio::sync::Mutex<KnownListing>,
    /// When the last request of the listing ended.
    refreshed: watch::Sender<Option<tokio::time::Instant>>,
    /// Whether the bus was connected for it.
    connected_at_refresh: AtomicBool,
}

/// Which process serves a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerState {
    Unknown,
    Serving(String),
    /// The last one has left, and another one follows.
    Moving(tokio::time::Instant),
    Absent(ToolError),
}

#[derive(Default)]
struct KnownListing {
    version: Option<ListingVersion>,
    /// Highest fencing token of a server so far.
    token: u64,
    /// Id of the files of the workspace.
    files: Option<String>,
}

impl RemoteListing {
    pub(crate) fn new(target: CallTarget, own_listing: Option<Listing>, event_capacity: usize) -> Self {
        // What this node defines is listed before a server has answered: a call then says that nobody serves it.
        let listing = Arc::new(own_listing.clone().unwrap_or_default());
        let state = ListingState { state: SourceState::Starting, listing, version: 0 };
        Self {
            target,
            own_listing,
            state: watch::Sender::new(state),
            events: broadcast::Sender::new(event_capacity),
            watched: Mutex::default(),
            server: watch::Sender::new(ServerState::Unknown),
            known: tokio::sync::Mutex::default(),
            refreshed: watch::Sender::new(None),
            connected_at_refresh: AtomicBool::new(false),
        }
    }

    /// Follows the listing until the task is dropped.
    pub(crate) async fn follow(self: Arc<Self>) {
        let is_changed = Arc::new(Notify::new());
        let notices = tokio::spawn(Arc::clone(&self).follow_notices(Arc::clone(&is_changed)));
        let _notices = AbortOnDropHandle::new(notices);
        let mut bus_state = self.target.node.bus().state();
        loop {
            self.refresh().await;
            let interval = match *self.server.borrow() {
                ServerState::Serving(_) => POLL_INTERVAL,
                ServerState::Moving(_) => MOVE_RETRY_INTERVAL,
                ServerState::Unknown | ServerState::Absent(_) => RETRY_INTERVAL,
            };
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = is_changed.notified() => {}
                Ok(()) = bus_state.changed() => {}
            }
        }
    }

    /// Handles notices as they arrive, also while a listing is requested.
    async fn follow_notices(self: Arc<Self>, is_changed: Arc<Notify>) {
        let subject = self.target.address.notices();
        loop {
            if let Ok(mut notices) = self.target.node.bus().subscribe(&subject, None).await {
                while let Some(notice) = notices.next().await {
                    if self.handle(notice) {
                        is_changed.notify_one();
                    }
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Looks for the server, unless that was done a moment ago: calls do not wait for each other.
    pub(crate) async fn refresh_if_due(&self) {
        // A failure for want of a connection says nothing once there is one.
        let was_connected = self.connected_at_refresh.load(Ordering::Relaxed);
        let is_due = |last: tokio::time::Instant| last.elapsed() >= RETRY_INTERVAL || !was_connected;
        if self.refreshed.borrow().is_none_or(is_due) {
            self.refresh().await;
        }
    }

    /// Looks for the server. Whoever waits for another request of this node takes its answer.
    pub(crate) async fn refresh(&self) {
        let requested = tokio::time::Instant::now();
        let mut known = self.known.lock().await;
        if self.refreshed.borrow().is_some_and(|last| last > requested) {
            return;
        }
        let is_connected = self.target.node.is_connected();
        match self.request_listing(&mut known).await {
            Ok(()) => {}
            Err(error) => {
                known.version = None;
                let is_moving = match *self.server.borrow() {
                    ServerState::Moving(until) => tokio::time::Instant::now() < until,
                    _ => false,
                };
                if !is_moving {
                    self.set_down(&error);
                    self.set_server(ServerState::Absent(error));
                }
            }
        }
        self.connected_at_refresh.store(is_connected, Ordering::Relaxed);
        self.refreshed.send_replace(Some(tokio::time::Instant::now()));
    }

    /// Starts or stops watching a resource, while no listing is requested: that request names all watched resources.
    pub(crate) async fn watch(&self, server: &str, uri: &str, on: bool) -> Result<(), ToolError> {
        let _known = self.known.lock().await;
        let CallTarget { node, address, .. } = &self.target;
        let request = WatchRequest { node: node.name().to_owned(), uri: uri.to_owned(), on };
        let subject = address.requests_to(server);
        let mut stream = request_stream(&self.target, &subject, request.to_message()?).await?;
        let reply = receive(&mut stream).await.map_err(|error| stream_error(address, &error))?;
        stream.complete();
        if reply.kind != kind::RESULT {
            return Err(ToolError::from_message(&reply)?);
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match on {
            true => watched.insert(uri.to_owned()),
            false => watched.remove(uri),
        };
        Ok(())
    }

    fn set_server(&self, server: ServerState) {
        self.server.send_if_modified(|current| {
            let is_new = *current != server;
            *current = server;
            is_new
        });
    }

    async fn request_listing(&self, known: &mut KnownListing) -> Result<(), ToolError> {
        let CallTarget { node, address, .. } = &self.target;
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let request = ListingRequest { node: node.name().to_owned(), known: known.version.clone(), watched };
        let subject = address.listing_requests();
        let mut stream = request_stream(&self.target, &subject, request.to_message()?).await?;
        let reply = tokio::time::timeout(LISTING_TIMEOUT, receive(&mut stream)).await;
        let reply = reply.unwrap_or(Err(StreamError::NoResponders));
        let reply = reply.map_err(|error| stream_error(address, &error))?;
        stream.complete();
        match (reply.kind, &known.version) {
            (kind::UNCHANGED, Some(version)) => {
                self.set_server(ServerState::Serving(version.server.clone()));
                Ok(())
            }
            (kind::LISTING, _) => self.accept_listing(known, &reply),
            (kind::LEAVING, _) => {
                self.set_server(ServerState::Moving(tokio::time::Instant::now() + MOVE_TIMEOUT));
                Err(nobody_serves(address))
            }
            (kind::ERROR, _) => Err(ToolError::from_message(&reply)?),
            _ => Err(ToolError::internal("an unknown reply to a request of the listing")),
        }
    }

    fn accept_listing(&self, known: &mut KnownListing, reply: &CallMessage) -> Result<(), ToolError> {
        let ListingReply { version, token, state, listing, files } = ListingReply::from_message(reply)?;
        if token < known.token {
            return Err(ToolError::unavailable("A worker answered that has lost its lease."));
        }
        if let Some(files) = files {
            if known.files.as_ref().is_some_and(|id| !files.may_follow(id)) {
                return Err(other_files(&self.target.address));
            }
            known.files = Some(files.id);
        }
        known.token = token;
        // First, because whoever sees the listing calls.
        self.set_server(ServerState::Serving(version.server.clone()));
        known.version = Some(version);
        let listing = Arc::new(match &self.own_listing {
            Some(own) => own.only_tools_of(&listing),
            None => listing,
        });
        self.state.send_modify(|current| {
            let version = current.version + 1;
            *current = ListingState { state, listing, version };
        });
        Ok(())
    }

    fn set_down(&self, error: &ToolError) {
        let down = SourceState::Down(error.text());
        self.state.send_if_modified(|current| {
            let is_new = current.state != down;
            if is_new {
                current.state = down;
                current.version += 1;
            }
            is_new
        });
    }

    /// Returns whether the listing is to be requested.
    fn handle(&self, notice: Message) -> bool {
        match Frame::decode(notice.payload) {
            Ok(Frame::Whole { kind: kind::LISTING_CHANGED, .. }) => true,
            Ok(Frame::Whole { kind: kind::LEAVING, body, .. }) => {
                let left = serde_json::from_slice::<LeavingNotice>(&body).map(|notice| notice.server);
                let until = tokio::time::Instant::now() + MOVE_TIMEOUT;
                self.server.send_if_modified(|current| {
                    let has_left =
                        matches!((&*current, &left), (ServerState::Serving(id), Ok(left)) if id == left);
                    if has_left {
                        *current = ServerState::Moving(until);
                    }
                    has_left
                })
            }
            Ok(Frame::Whole { kind: kind::EVENT, body, .. }) => {
                if let Ok(event) = serde_json::from_slice(&body) {
                    let _ = self.events.send(event);
                }
                false
            }
            _ => false,
        }
    }
}

fn other_files(address: &SourceAddress) -> ToolError {
    ToolError::unavailable(format!(
        "The worker that serves `{address}` now has other files than the one before it."
    ))
    .hint("Start the worker before it again, or start this one so that it takes over on purpose.")
}
