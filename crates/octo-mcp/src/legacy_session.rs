//! State of a legacy client: one HTTP session, or one stdio connection.

pub(crate) mod event_log;
pub(crate) mod session_registry;

use crate::client_context::ClientContext;
use crate::client_peer::Outbox;
use crate::incoming::Answer;
use crate::methods::operation_metrics::record_session;
use crate::shared_fronts::{ParkedCall, SharedSession};
use event_log::EventLog;
use octo_hub::{MAX_SUBSCRIPTIONS, Subscription};
use octo_model::JsonObject;
use octo_toolkit::AskError;
use octo_wire::Level;
use octo_wire::{Id, Message};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Streams of a session that a client can resume; more while they are active.
const MAX_STREAMS: usize = 16;
/// Answers of a session that wait for a call of another front.
const MAX_WAITING_ANSWERS: u32 = 16;
/// Answers of a session that are offered to other fronts though no stored stream waits for them.
const MAX_OFFERED_ANSWERS: u32 = 4;
/// Streams of other fronts that a session resumes at once.
const MAX_FOLLOWED_STREAMS: u32 = 16;

/// Notices of other fronts may be lost, so the record that they share is read again.
const CHECK_INTERVAL_MS: u64 = 15_000;

pub struct Session {
    pub client: ClientContext,
    transient: bool,
    /// Set if other fronts can continue the session.
    sharing: Option<SharedSession>,
    pub closed: CancellationToken,
    /// Whether the notification stream is open; there is only one.
    pub listening: AtomicBool,
    inner: Mutex<SessionState>,
    next: AtomicU64,
    /// Active requests and streams.
    active_requests: AtomicU32,
    waiting_answers: AtomicU32,
    offered_answers: AtomicU32,
    followed_streams: AtomicU32,
    /// Refreshes that were requested, also while one runs.
    refreshes: AtomicU32,
    started: Instant,
    last_seen_ms: AtomicU64,
    /// When the record that fronts share was last read.
    checked_ms: AtomicU64,
}

#[derive(Default)]
struct SessionState {
    initialized: bool,
    level: Option<Level>,
    pending_questions: HashMap<u64, oneshot::Sender<Answer>>,
    /// Calls that another front could continue, by the question that they ask.
    parked_calls: HashMap<u64, String>,
    running: HashMap<Id, CancellationToken>,
    subscriptions: HashMap<String, Subscription>,
    streams: HashMap<u64, Arc<EventLog>>,
}

/// A random number that leaves room for more below the limit of JavaScript's integers.
fn random_number() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0 >> 16
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.transient {
            record_session(&self.client, self.started);
        }
    }
}

impl Session {
    pub fn new(client: ClientContext) -> Arc<Self> {
        Self::build(client, false, None)
    }

    /// A session that other fronts can continue.
    pub fn shared(client: ClientContext, sharing: SharedSession) -> Arc<Self> {
        Self::build(client, false, Some(sharing))
    }

    /// Session for one request of a client without a session id.
    pub fn transient(client: ClientContext) -> Arc<Self> {
        Self::build(client, true, None)
    }

    fn build(client: ClientContext, transient: bool, sharing: Option<SharedSession>) -> Arc<Self> {
        Arc::new(Self {
            client,
            transient,
            sharing,
            closed: CancellationToken::new(),
            listening: AtomicBool::new(false),
            inner: Mutex::default(),
            next: AtomicU64::new(random_number()),
            active_requests: AtomicU32::new(0),
            waiting_answers: AtomicU32::new(0),
            offered_answers: AtomicU32::new(0),
            followed_streams: AtomicU32::new(0),
            refreshes: AtomicU32::new(0),
            started: Instant::now(),
            last_seen_ms: AtomicU64::new(0),
            checked_ms: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn level(&self) -> Option<Level> {
        self.lock().level
    }

    pub fn set_level(&self, level: Level) {
        self.lock().level = Some(level);
    }

    /// A number that is unique within this session and, most likely, among the sessions that one client has one after
    /// another: the answer to a question of an earlier session must not count for this one.
    pub fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the shared record was last read a while ago. Of several callers, one has to read it.
    pub fn is_check_due(&self) -> bool {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.checked_ms.load(Ordering::Relaxed);
        now.saturating_sub(last) >= CHECK_INTERVAL_MS
            && self.checked_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub fn sharing(&self) -> Option<&SharedSession> {
        self.sharing.as_ref()
    }

    /// A slot for an answer that waits for a call of another front; `None` if too many do.
    pub fn acquire_answer_slot(self: &Arc<Self>) -> Option<SessionSlot> {
        SessionSlot::acquire(self, |session| &session.waiting_answers, MAX_WAITING_ANSWERS)
    }

    /// A slot for an answer that no stored stream waits for; `None` if too many are offered.
    pub fn acquire_offer_slot(self: &Arc<Self>) -> Option<SessionSlot> {
        SessionSlot::acquire(self, |session| &session.offered_answers, MAX_OFFERED_ANSWERS)
    }

    /// A slot for a stream of another front; `None` if too many are followed.
    pub fn acquire_stream_slot(self: &Arc<Self>) -> Option<SessionSlot> {
        SessionSlot::acquire(self, |session| &session.followed_streams, MAX_FOLLOWED_STREAMS)
    }

    /// Whether the caller has to read what the client has set elsewhere; otherwise somebody does.
    pub fn start_refresh(&self) -> bool {
        self.refreshes.fetch_add(1, Ordering::AcqRel) == 0
    }

    /// Whether no refresh was requested since the last one began.
    pub fn finish_refresh(&self) -> bool {
        let begun = self.refreshes.swap(1, Ordering::AcqRel);
        begun <= 1 && self.refreshes.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The call that asks this question, if another front could continue it.
    pub fn parked_call(&self, question: u64) -> Option<String> {
        self.lock().parked_calls.get(&question).cloned()
    }

    /// Asks the client on the stream of a call; drops the question if the caller gives up.
    pub async fn ask(
        &self,
        out: &Outbox,
        method: &str,
        params: JsonObject,
        parked: Option<&ParkedCall>,
    ) -> Result<JsonObject, AskError> {
        let number = self.next_number();
        let parked = parked.and_then(|call| Some((self.sharing()?, call)));
        let (answer, answered) = oneshot::channel();
        {
            let mut inner = self.lock();
            inner.pending_questions.insert(number, answer);
            inner.parked_calls.extend(parked.map(|(_, call)| (number, call.to_text())));
        }
        let _forget = ForgetOnDrop { session: self, number };
        let request = Message::Request { id: Id::number(number), method: method.to_owned(), params };
        out.send(request).await.map_err(|_| AskError::Gone)?;
        let answer = tokio::select! {
            answer = answered => answer.map_err(|_| AskError::Gone)?,
            () = self.closed.cancelled() => return Err(AskError::Gone),
            () = taken_elsewhere(parked.map(|(sharing, _)| sharing), number) => return Err(AskError::Gone),
        };
        if let Some((sharing, _)) = parked {
            // Another front may have continued the call while this process was suspended.
            sharing.take_own_question(number).await.ok_or(AskError::Gone)?;
        }
        answer.map_err(AskError::Refused)
    }

    /// Delivers the client's answer to a question. Returns whether it was asked here.
    pub fn resolve_question(&self, number: u64, answer: Answer) -> bool {
        let waiting = self.lock().pending_questions.remove(&number);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// Registers a request so that it can be cancelled by its id.
    pub fn start_request(self: &Arc<Self>, id: &Id) -> ActiveRequest {
        let cancel = CancellationToken::new();
        self.lock().running.insert(id.clone(), cancel.clone());
        self.active_requests.fetch_add(1, Ordering::AcqRel);
        ActiveRequest { session: Arc::clone(self), id: Some(id.clone()), cancel }
    }

    /// Keeps the session alive while a stream is open.
    pub fn hold_open(self: &Arc<Self>) -> ActiveRequest {
        self.active_requests.fetch_add(1, Ordering::AcqRel);
        ActiveRequest { session: Arc::clone(self), id: None, cancel: CancellationToken::new() }
    }

    /// Returns whether the request runs here.
    pub fn cancel(&self, id: &Id) -> bool {
        let inner = self.lock();
        let running = inner.running.get(id);
        running.into_iter().for_each(CancellationToken::cancel);
        running.is_some()
    }

    /// Whether the session ends with its request, because no client can name it again.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    pub fn may_subscribe(&self) -> bool {
        !self.transient && self.lock().subscriptions.len() < MAX_SUBSCRIPTIONS
    }

    /// Stores a subscription until it ends or the session closes. One beyond the limit, made concurrently, ends
    /// immediately.
    pub fn subscribe(&self, uri: String, subscription: Subscription) {
        let mut inner = self.lock();
        if inner.subscriptions.len() < MAX_SUBSCRIPTIONS && !self.closed.is_cancelled() {
            inner.subscriptions.insert(uri, subscription);
        }
    }

    pub fn unsubscribe(&self, uri: &str) -> Option<Subscription> {
        self.lock().subscriptions.remove(uri)
    }

    pub fn subscribed_uris(&self) -> Vec<String> {
        self.lock().subscriptions.keys().cloned().collect()
    }

    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.lock().subscriptions.contains_key(uri)
    }

    pub fn keep_stream(&self, number: u64, log: &Arc<EventLog>) {
        let mut inner = self.lock();
        inner.streams.retain(|_, log| !log.is_stale());
        while inner.streams.len() >= MAX_STREAMS {
            // The oldest has the smallest number.
            let oldest = inner.streams.iter().filter(|(_, log)| log.is_finished()).map(|(number, _)| *number);
            match oldest.min() {
                Some(oldest) => drop(inner.streams.remove(&oldest)),
                None => break,
            }
        }
        inner.streams.insert(number, Arc::clone(log));
    }

    /// Drops streams that can no longer be resumed.
    pub fn sweep_streams(&self) {
        self.lock().streams.retain(|_, log| !log.is_stale());
    }

    pub fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        self.lock().streams.get(&number).cloned()
    }

    pub fn touch(&self) {
        let since = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_seen_ms.store(since, Ordering::Relaxed);
    }

    pub fn is_idle(&self, limit: Duration) -> bool {
        let seen = Duration::from_millis(self.last_seen_ms.load(Ordering::Relaxed));
        self.active_requests.load(Ordering::Acquire) == 0
            && self.started.elapsed().saturating_sub(seen) > limit
    }

    /// Whether the handshake is complete.
    pub fn is_initialized(&self) -> bool {
        self.lock().initialized
    }

    pub fn mark_initialized(&self) {
        self.lock().initialized = true;
    }

    /// Ends everything that runs for this client.
    pub fn close(&self) {
        self.closed.cancel();
        let running: Vec<CancellationToken> = self.lock().running.drain().map(|(_, cancel)| cancel).collect();
        running.iter().for_each(CancellationToken::cancel);
    }

    /// Removes and returns all subscriptions.
    pub fn take_subscriptions(&self) -> Vec<Subscription> {
        self.lock().subscriptions.drain().map(|(_, subscription)| subscription).collect()
    }
}

/// Waits until another front has taken a question while this process was suspended or cut off.
async fn taken_elsewhere(sharing: Option<&SharedSession>, question: u64) {
    let Some(sharing) = sharing else { return std::future::pending().await };
    loop {
        sharing.fronts.lease_gap().await;
        let owner = sharing.fronts.owner().await;
        if let Ok(false) = sharing.fronts.sessions.is_asked(&sharing.key, question, owner).await {
            return;
        }
    }
}

struct ForgetOnDrop<'a> {
    session: &'a Session,
    number: u64,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        let mut inner = self.session.lock();
        inner.pending_questions.remove(&self.number);
        inner.parked_calls.remove(&self.number);
    }
}

/// One of a limited number of places, free again when dropped.
pub struct SessionSlot {
    session: Arc<Session>,
    count: fn(&Session) -> &AtomicU32,
}

impl SessionSlot {
    fn acquire(session: &Arc<Session>, count: fn(&Session) -> &AtomicU32, limit: u32) -> Option<Self> {
        let slot = Self { session: Arc::clone(session), count };
        (count(session).fetch_add(1, Ordering::AcqRel) < limit).then_some(slot)
    }

    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        (self.count)(&self.session).fetch_sub(1, Ordering::AcqRel);
    }
}

/// An active request or stream.
pub struct ActiveRequest {
    session: Arc<Session>,
    id: Option<Id>,
    pub cancel: CancellationToken,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.lock().running.remove(id);
        }
        self.session.touch();
        self.session.active_requests.fetch_sub(1, Ordering::AcqRel);
    }
}
