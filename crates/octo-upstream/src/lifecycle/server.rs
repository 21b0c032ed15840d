//! State of one upstream server that all its links share.

use crate::admission::fair_queue::FairQueue;
use crate::lifecycle::negotiation::KnownEra;
use crate::listing::list_changes::ListChanges;
use crate::listing::listing_election::ListingElection;
use crate::listing::listing_publisher::ListingPublisher;
use crate::listing::resource_subscriptions::ResourceSubscriptions;
use crate::session::dispatcher::Dispatcher;
use crate::session::server_info::ServerInfo;
use crate::transport::message_memory::ReceiveLimit;
use crate::transport::stdio::stderr_log::StderrLog;
use crate::upstream_spec::UpstreamSpec;
use octo_oauth::Accounts;
use octo_toolkit::Event;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Events buffered for a slow receiver.
const EVENT_CAPACITY: usize = 256;

pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    pub(crate) spec: Arc<UpstreamSpec>,
    pub(crate) listing: ListingPublisher,
    /// Election among the links that can list.
    pub(crate) election: Arc<ListingElection>,
    pub(crate) list_changes: Arc<ListChanges>,
    pub(crate) subscriptions: Arc<ResourceSubscriptions>,
    pub(crate) receive_limit: ReceiveLimit,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) queue: Arc<FairQueue>,
    pub(crate) stderr: Arc<StderrLog>,
    pub(crate) era: Arc<KnownEra>,
    /// Whether it uses HTTP+SSE, as configured or detected.
    pub(crate) uses_sse: AtomicBool,
    pub(crate) stop: CancellationToken,
    info: Mutex<Option<ServerInfo>>,
}

impl Server {
    pub(crate) fn new(spec: UpstreamSpec) -> Self {
        let (spec, stop) = (Arc::new(spec), CancellationToken::new());
        Self {
            name: spec.name.as_str().into(),
            listing: ListingPublisher::new(spec.clone(), stop.clone()),
            election: Arc::default(),
            list_changes: Arc::default(),
            subscriptions: Arc::default(),
            receive_limit: ReceiveLimit::new(spec.max_message_bytes, spec.message_memory.clone()),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            queue: Arc::new(FairQueue::new(spec.limits)),
            stderr: Arc::default(),
            era: Arc::new(KnownEra::new(spec.era)),
            uses_sse: AtomicBool::new(spec.sse),
            stop,
            info: Mutex::default(),
            spec,
        }
    }

    /// Whether each caller has its own login.
    pub(crate) fn has_personal_logins(&self) -> bool {
        self.spec.accounts.as_ref().is_some_and(Accounts::is_per_person)
    }

    pub(crate) fn new_dispatcher(&self) -> Dispatcher {
        let (events, subscriptions) = (self.events.clone(), Arc::clone(&self.subscriptions));
        Dispatcher::new(self.name.clone(), events, self.list_changes.clone(), subscriptions)
    }

    /// Name and version from the last connection.
    pub(crate) fn info(&self) -> Option<ServerInfo> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_info(&self, info: Option<ServerInfo>) {
        *self.info.lock().unwrap_or_else(PoisonError::into_inner) = info;
    }
}
