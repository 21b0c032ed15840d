//! Sessions that another front began, and messages for calls of other fronts.

use crate::client_context::{ClientContext, next_client_key};
use crate::client_peer::Outbox;
use crate::http_transport::resume_parked_call;
use crate::incoming::{client_answer, handle_incoming};
use crate::legacy_session::Session;
use crate::legacy_session::session_registry::SessionLimit;
use crate::mcp::Mcp;
use crate::methods::{RoutedMethod, route_method};
use crate::request_state::{RequestState, binding_digest};
use crate::rpc_errors::rpc_error;
use crate::shared_fronts::{
    FrontMessage, FrontMessageBody, RelayedRequest, SessionToken, SharedFronts, SharedSession,
};
use crate::task_registry::is_task_method;
use octo_model::{Caller, Frontend, Json, JsonObject, Method, RpcError};
use octo_ports::StoreError;
use octo_ports::sessions::{SessionChange, SessionRecord};
use octo_toolkit::NoPeer;
use octo_wire::{Level, Message, Revision, Strictness, code};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an answer is kept for a call whose front may have died: longer than its lease.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const ANSWER_INTERVAL: Duration = Duration::from_secs(1);
/// How long a cancellation is tried.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request waits to see whether its session has ended elsewhere.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum bytes of a message for a call of another front, below the limit of the bus.
const MAX_FORWARDED_BYTES: usize = 768 << 10;

/// Why a message of a client was not accepted.
pub enum MessageRefusal {
    /// It is for a call of another front, and too large to be sent there.
    TooLarge,
    /// Too many messages of the session wait for calls.
    TooMany,
}

/// Why a session was not found.
pub enum SessionError {
    Unknown,
    Limit(SessionLimit),
    Store(StoreError),
}

impl Mcp {
    /// Registers a new session and returns its name for the client.
    pub(crate) fn begin_session(
        &self,
        client: ClientContext,
    ) -> Result<(Arc<Session>, String), SessionError> {
        let Some(fronts) = &self.fronts else {
            let id = uuid::Uuid::new_v4();
            let session =
                self.sessions.begin(id.as_u128(), Session::new(client)).map_err(SessionError::Limit)?;
            return Ok((session, id.as_simple().to_string()));
        };
        let token = SessionToken::new(&client);
        let name = token.seal(&self.state_sealer).ok_or(SessionError::Unknown)?;
        let session = Session::shared(client, shared_session(fronts, &token));
        let session = self.sessions.begin(token.id, session).map_err(SessionError::Limit)?;
        Ok((session, name))
    }

    /// The session with this name, which another front may have begun.
    pub(crate) async fn find_session(
        &self,
        name: &str,
        caller: &Caller,
        profile: &str,
    ) -> Result<Arc<Session>, SessionError> {
        let Some(fronts) = &self.fronts else {
            let found = self.sessions.find(local_id(name)?, caller);
            return found.filter(|session| session.client.profile == profile).ok_or(SessionError::Unknown);
        };
        let token = SessionToken::open(name, &self.state_sealer).ok_or(SessionError::Unknown)?;
        let client = token.client(caller, profile).ok_or(SessionError::Unknown)?;
        if let Some(session) = self.sessions.find(token.id, caller) {
            // Without the database the session stays usable; its calls are refused elsewhere.
            if session.is_check_due()
                && let Ok(Ok(Some(record))) =
                    tokio::time::timeout(CHECK_TIMEOUT, fronts.sessions.get(&token.key())).await
                && record.has_ended
            {
                self.apply_record(&session, record).await;
            }
            return if session.closed.is_cancelled() { Err(SessionError::Unknown) } else { Ok(session) };
        }
        let record =
            fronts.sessions.get(&token.key()).await.map_err(SessionError::Store)?.unwrap_or_default();
        if record.has_ended {
            return Err(SessionError::Unknown);
        }
        let session = Session::shared(client, shared_session(fronts, &token));
        set_stored_level(&session, &record);
        // The client has a name for it, so its handshake was answered.
        session.mark_initialized();
        self.sessions.begin(token.id, session).map_err(SessionError::Limit)
    }

    /// Ends a session, at all fronts. This one need not know it.
    pub(crate) async fn end_session(
        &self,
        name: &str,
        caller: &Caller,
        profile: &str,
    ) -> Result<(), SessionError> {
        let id = match &self.fronts {
            Some(fronts) => {
                let token = SessionToken::open(name, &self.state_sealer).ok_or(SessionError::Unknown)?;
                token.client(caller, profile).ok_or(SessionError::Unknown)?;
                let shared = shared_session(fronts, &token);
                let record = fronts.sessions.get(&shared.key).await.map_err(SessionError::Store)?;
                if record.is_some_and(|record| record.has_ended) {
                    return Err(SessionError::Unknown);
                }
                shared.change(SessionChange::End).await.map_err(SessionError::Store)?;
                token.id
            }
            None => {
                self.find_session(name, caller, profile).await?;
                local_id(name)?
            }
        };
        if let Some(session) = self.sessions.end(id) {
            self.close_session(&session).await;
        }
        Ok(())
    }

    /// Handles a message that needs no response, here or at the front that waits for it.
    pub(crate) async fn accept_message(
        self: &Arc<Self>,
        session: &Arc<Session>,
        message: Message,
    ) -> Result<(), MessageRefusal> {
        let Some(message) = handle_incoming(session, message) else { return Ok(()) };
        let Some(shared) = session.sharing() else { return Ok(()) };
        let size = message.to_bytes().len();
        if size > MAX_FORWARDED_BYTES {
            return Err(MessageRefusal::TooLarge);
        }
        let waiting = session.acquire_answer_slot().ok_or(MessageRefusal::TooMany)?;
        let is_answer = client_answer(&message).is_some();
        // While the database is down, the fronts can still be asked.
        let has_stream =
            !is_answer || shared.fronts.sessions.has_open_stream(&shared.key).await.unwrap_or(true);
        let (mcp, session, shared) = (Arc::clone(self), Arc::clone(session), shared.clone());
        if !has_stream {
            // Its stream may not be stored yet, so it is offered once, unless that would cost the others much.
            if let Some(offered) = session.acquire_offer_slot() {
                tokio::spawn(async move {
                    let _offered = offered;
                    mcp.deliver(&session, &shared, &message).await;
                });
            }
            return Ok(());
        }
        // It goes on when the client has disconnected.
        let first = tokio::spawn(async move {
            if mcp.deliver(&session, &shared, &message).await {
                return;
            }
            tokio::spawn(async move {
                let _waiting = waiting;
                mcp.deliver_repeatedly(&session, &shared, &message).await;
            });
        });
        let _ = first.await;
        Ok(())
    }

    /// Delivers a message to a call whose front may have died.
    async fn deliver_repeatedly(
        self: &Arc<Self>,
        session: &Arc<Session>,
        shared: &SharedSession,
        message: &Message,
    ) {
        let is_answer = client_answer(message).is_some();
        let deadline = Instant::now() + if is_answer { ANSWER_TIMEOUT } else { CANCEL_TIMEOUT };
        while Instant::now() < deadline {
            tokio::time::sleep(ANSWER_INTERVAL).await;
            if self.deliver(session, shared, message).await {
                return;
            }
        }
        tracing::debug!(target: "fleet", "a message that no call waits for was dropped");
    }

    /// Sends a client's message to the other fronts, or continues the call of one that died. Returns whether that is done.
    async fn deliver(
        self: &Arc<Self>,
        session: &Arc<Session>,
        shared: &SharedSession,
        message: &Message,
    ) -> bool {
        let Ok(body) = Json::parse(message.to_bytes()) else { return true };
        if shared.fronts.send(&shared.key, FrontMessageBody::Client(body)).await {
            return true;
        }
        let Some((question, answer)) = client_answer(message) else { return false };
        if !shared.fronts.may_adopt() {
            return false;
        }
        let owner = shared.fronts.owner().await;
        let taken = shared.fronts.sessions.take_question(&shared.key, question, owner).await;
        let Ok(Some(stream)) = taken else { return false };
        resume_parked_call(self, session, shared, stream, answer);
        true
    }

    /// Handles a message of another front. Returns whether it was for this one alone.
    pub async fn receive_front_message(self: &Arc<Self>, message: FrontMessage) -> bool {
        let Some(session) = self.sessions.get(message.session) else { return false };
        let Some(shared) = session.sharing().filter(|shared| shared.key.tenant == message.tenant) else {
            return false;
        };
        match message.body {
            FrontMessageBody::Changed => {
                // Subscriptions may take long, and answers must not wait for them.
                let (mcp, shared, session) = (Arc::clone(self), shared.clone(), Arc::clone(&session));
                if session.start_refresh() {
                    tokio::spawn(async move { mcp.refresh(&session, &shared).await });
                } else {
                    tokio::spawn(async move { mcp.close_if_ended(&session, &shared).await });
                }
                false
            }
            FrontMessageBody::Client(body) => {
                let message = Message::parse(body.bytes().clone(), Strictness::Upstream);
                message.is_ok_and(|message| handle_incoming(&session, message).is_none())
            }
        }
    }

    /// Reads what the client has set at other fronts, again if that has changed meanwhile.
    async fn refresh(&self, session: &Arc<Session>, shared: &SharedSession) {
        loop {
            if let Ok(Some(record)) = shared.fronts.sessions.get(&shared.key).await {
                self.apply_record(session, record).await;
            }
            if session.finish_refresh() {
                return;
            }
        }
    }

    /// Closes a session that has ended at another front, while what was set before may still be read.
    async fn close_if_ended(&self, session: &Arc<Session>, shared: &SharedSession) {
        if let Ok(Some(record)) = shared.fronts.sessions.get(&shared.key).await
            && record.has_ended
        {
            self.apply_record(session, record).await;
        }
    }

    /// Takes over what the client has set at another front.
    async fn apply_record(&self, session: &Arc<Session>, record: SessionRecord) {
        if record.has_ended {
            if let Some(shared) = session.sharing() {
                self.sessions.end(shared.key.id);
            }
            return self.close_session(session).await;
        }
        set_stored_level(session, &record);
        if session.listening.load(Ordering::Acquire) {
            self.apply_subscriptions(session, &record).await;
        }
    }

    /// Subscribes to what the client has subscribed to at other fronts, for its notification stream.
    pub(crate) async fn restore_subscriptions(&self, session: &Session) {
        let Some(shared) = session.sharing() else { return };
        if let Ok(Some(record)) = shared.fronts.sessions.get(&shared.key).await {
            self.apply_subscriptions(session, &record).await;
        }
    }

    async fn apply_subscriptions(&self, session: &Session, record: &SessionRecord) {
        for uri in session.subscribed_uris() {
            if !record.subscriptions.contains(&uri)
                && let Some(subscription) = session.unsubscribe(&uri)
            {
                let _ = subscription.end().await;
            }
        }
        for uri in record.subscriptions.iter().filter(|uri| !session.is_subscribed(uri)) {
            let params = JsonObject::new().with("uri", uri.as_str());
            let request = self.hub_request(
                &session.client,
                Method::Subscribe,
                params,
                Arc::new(NoPeer),
                CancellationToken::new(),
            );
            let Ok(request) = request else { continue };
            tokio::select! {
                () = session.closed.cancelled() => return,
                restored = self.hub.restore_subscription(&request) => {
                    if let Ok(subscription) = restored {
                        session.subscribe(uri.clone(), subscription);
                    }
                }
            }
        }
    }

    /// Has a request answered by the front that has the call it belongs to.
    pub(crate) async fn relay(
        &self,
        node: &str,
        client: &ClientContext,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let link = self.fronts.as_ref().and_then(|fronts| fronts.link.as_ref());
        let link =
            link.ok_or_else(|| rpc_error(code::INTERNAL, "This hub is not connected to the others."))?;
        let request = RelayedRequest {
            caller: (*client.caller).clone(),
            profile: client.profile.clone(),
            options: client.options,
            capabilities: (*client.capabilities).clone(),
            log_level: client.level.map(|level| level.as_str().to_owned()),
            method: method.to_owned(),
            params,
        };
        link.relay(node, request, out, cancel).await
    }

    /// Answers a request that another front relays, if it belongs to a call or a task of this one.
    pub async fn answer_relayed(
        self: &Arc<Self>,
        request: RelayedRequest,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        if !self.has_call_of(&request) {
            return Err(rpc_error(code::INVALID_PARAMS, "This request belongs to no call of this hub."));
        }
        let caller = Arc::new(request.caller);
        let client = ClientContext {
            epoch: self.stateless_epochs.of(&caller, &request.profile),
            caller,
            frontend: Frontend::Http,
            profile: request.profile,
            options: request.options,
            revision: Revision::MODERN,
            capabilities: Arc::new(request.capabilities),
            level: request.log_level.as_deref().and_then(Level::parse),
            key: next_client_key(),
        };
        self.handle_modern(&client, &request.method, request.params, out, cancel).await
    }
}

impl Mcp {
    /// Whether a relayed request continues a suspended call of its caller, or is about a task. The tasks of others are not
    /// found.
    fn has_call_of(&self, request: &RelayedRequest) -> bool {
        let RelayedRequest { caller, profile, method, params, .. } = request;
        match route_method(method) {
            Some(RoutedMethod::Operation(method)) => {
                let seal = binding_digest(caller, profile, method.as_str(), params);
                let state = self.open_request_state(params, &seal);
                matches!(state, Ok(Some(RequestState::Suspended { node, .. })) if node == self.node())
            }
            Some(RoutedMethod::List(_)) => false,
            None => {
                is_task_method(method)
                    && params.text("taskId").is_some_and(|id| self.other_front_of_task(&id).is_none())
            }
        }
    }
}

/// Id of a session that only this front has.
fn local_id(name: &str) -> Result<u128, SessionError> {
    uuid::Uuid::try_parse(name).map(|id| id.as_u128()).map_err(|_| SessionError::Unknown)
}

fn shared_session(fronts: &Arc<SharedFronts>, token: &SessionToken) -> SharedSession {
    SharedSession { key: token.key(), fronts: Arc::clone(fronts) }
}

fn set_stored_level(session: &Session, record: &SessionRecord) {
    if let Some(level) = record.log_level.as_deref().and_then(Level::parse) {
        session.set_level(level);
    }
}
