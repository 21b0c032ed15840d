//! Legacy sessions over HTTP: handshake, requests, notification stream, resumption, end.

use super::{HttpContext, error_response};
use crate::client_context::{ClientContext, next_client_key};
use crate::client_peer::Outbox;
use crate::discover::negotiate_revision;
use crate::front_sessions::{MessageRefusal, SessionError};
use crate::header_checks;
use crate::incoming::{Answer, response_message};
use crate::legacy_session::event_log::{EventLog, parse_event_id};
use crate::legacy_session::{ActiveRequest, Session};
use crate::mcp::Mcp;
use crate::notifications::{NotificationFilter, change_notification, warning_notification};
use crate::rpc_errors::rpc_error;
use crate::shared_fronts::{ParkedCall, SharedSession, StreamFollower, finish_lost, store_events};
use crate::sse_response::{self, DetachOnDrop};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use octo_hub::{Change, ClientEpoch};
use octo_model::{Frontend, Json, JsonObject, RpcError};
use octo_ports::sessions::AdoptedStream;
use octo_wire::{Id, Message, Revision, code, header, sse};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio_util::task::AbortOnDropHandle;

/// How long a notification stream waits for the subscriptions that a client has made at another front.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of checks, 10 ms apart, whether the old stream has ended.
const MAX_STREAM_TAKEOVER_POLLS: usize = 50;

/// Bytes of replies to one batch after which its remaining requests are not run.
const MAX_BATCH_REPLY_BYTES: usize = 2 << 20;

pub async fn post(mcp: Arc<Mcp>, arrived: HttpContext, message: Message) -> Response {
    if let Message::Request { id, method, params } = &message
        && method == "initialize"
    {
        return initialize(&mcp, &arrived, id.clone(), params).await;
    }
    let session = match find_session(&mcp, &arrived).await {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    match message {
        Message::Request { id, method, params } => answer_request(mcp, session, id, method, params).await,
        other => match mcp.accept_message(&session, other).await {
            Ok(()) => sse_response::empty_response(StatusCode::ACCEPTED),
            Err(refusal) => message_refusal(&refusal),
        },
    }
}

async fn initialize(mcp: &Mcp, arrived: &HttpContext, id: Id, params: &JsonObject) -> Response {
    let revision = negotiate_revision(params.text("protocolVersion").as_deref());
    let client = client_context(arrived, revision, params.object("capabilities").detached());
    let result = mcp.initialize_result(&client).await;
    let name = match mcp.begin_session(client) {
        Ok((_, name)) => name,
        Err(error) => return *session_error(&error),
    };
    let mut response = sse_response::json_response(StatusCode::OK, &Message::Response { id, result });
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::SESSION, name);
    }
    response
}

fn client_context(arrived: &HttpContext, revision: Revision, capabilities: JsonObject) -> ClientContext {
    ClientContext {
        caller: Arc::clone(&arrived.caller),
        frontend: Frontend::Http,
        profile: arrived.profile.clone(),
        options: arrived.options,
        revision,
        capabilities: Arc::new(capabilities),
        level: None,
        key: next_client_key(),
        epoch: ClientEpoch::default(),
    }
}

/// Session of a request. A request without a session id gets a transient session.
async fn find_session(mcp: &Mcp, arrived: &HttpContext) -> Result<Arc<Session>, Box<Response>> {
    let wrong = |why| Box::new(error_response(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
    let asked = match header_checks::header_text(&arrived.headers, header::REVISION) {
        None => None,
        Some(text) => {
            Some(Revision::parse(text).ok_or_else(|| wrong("This MCP-Protocol-Version is unsupported."))?)
        }
    };
    if arrived.headers.get(header::SESSION).is_none() {
        let epoch = mcp.stateless_epochs.of(&arrived.caller, &arrived.profile);
        let client = client_context(arrived, asked.unwrap_or(Revision::R20250326), JsonObject::new());
        return Ok(Session::transient(ClientContext { epoch, ..client }));
    }
    let name = header_checks::header_text(&arrived.headers, header::SESSION)
        .ok_or_else(|| wrong("Send exactly one Mcp-Session-Id."))?;
    let found = mcp.find_session(name, &arrived.caller, &arrived.profile).await;
    found.map_err(|error| session_error(&error))
}

fn message_refusal(refusal: &MessageRefusal) -> Response {
    match refusal {
        MessageRefusal::TooLarge => error_response(
            StatusCode::PAYLOAD_TOO_LARGE,
            code::INVALID_REQUEST,
            "The message is too large for the hub whose call waits for it. Send a smaller one.",
        ),
        MessageRefusal::TooMany => error_response(
            StatusCode::TOO_MANY_REQUESTS,
            code::INVALID_REQUEST,
            "Too many messages of this session wait for calls. Try again in a moment.",
        ),
    }
}

fn session_error(error: &SessionError) -> Box<Response> {
    Box::new(match error {
        SessionError::Unknown => error_response(
            StatusCode::NOT_FOUND,
            code::INVALID_REQUEST,
            "Session not found. Send initialize to start a new one.",
        ),
        SessionError::Limit(limit) => error_response(limit.status(), code::INTERNAL, limit.message()),
        SessionError::Store(error) => {
            error_response(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL, &error.to_string())
        }
    })
}

/// Batches exist in 2025-03-26 only. They are handled sequentially until the size of the replies exceeds the limit.
pub async fn batch(mcp: Arc<Mcp>, arrived: HttpContext, messages: Vec<Message>) -> Response {
    let session = match find_session(&mcp, &arrived).await {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    if session.client.revision != Revision::R20250326 {
        return error_response(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "Send one message at a time.");
    }
    if session.is_transient() {
        let why = "A batch needs a session. Send initialize, and then Mcp-Session-Id with each request.";
        return error_response(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why);
    }
    let mut answers = Vec::new();
    let mut size = 0;
    for message in messages {
        match message {
            Message::Request { id, .. } if size > MAX_BATCH_REPLY_BYTES => {
                let why =
                    "The replies to this batch are too large, so this request was not run. Send it again.";
                answers.push(response_message(id, Err(rpc_error(code::INVALID_REQUEST, why))).to_bytes());
            }
            Message::Request { id, method, params } => {
                let (out, _) = mpsc::channel(1);
                let done = run_request(
                    Arc::clone(&mcp),
                    Arc::clone(&session),
                    session.start_request(&id),
                    method,
                    params,
                    out,
                )
                .await;
                let answer = response_message(id, done).to_bytes();
                size += answer.len();
                answers.push(answer);
            }
            // The others of the batch are still answered.
            other => drop(mcp.accept_message(&session, other).await),
        }
    }
    if answers.is_empty() {
        return sse_response::empty_response(StatusCode::ACCEPTED);
    }
    let mut text = vec![b'['];
    text.extend_from_slice(&answers.join(&b","[..]));
    text.push(b']');
    let mut response = Response::new(text.into());
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn run_request(
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    under: ActiveRequest,
    method: String,
    params: JsonObject,
    out: Outbox,
) -> Result<JsonObject, RpcError> {
    mcp.handle_legacy(session, &method, params, out, under.cancel.clone()).await
}

/// Plain JSON if the response comes first; otherwise a stream that outlives its connection.
async fn answer_request(
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    id: Id,
    method: String,
    params: JsonObject,
) -> Response {
    let (out, mut inbox) = mpsc::channel(64);
    let (pause, events) = (mcp.settings.keep_alive, Arc::clone(&mcp.event_budget));
    let under = session.start_request(&id);
    let mut call = DetachOnDrop::new(run_request(mcp, Arc::clone(&session), under, method, params, out));
    let first = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => return sse_response::json_response(StatusCode::OK, &response_message(id, done)),
        () = tokio::time::sleep(pause) => None,
    };
    let number = session.next_number();
    let primed = session.client.revision >= Revision::R20251125;
    let log = Arc::new(EventLog::new(number, primed, &events));
    session.keep_stream(number, &log);
    if let Some(sharing) = session.sharing() {
        log.store_first();
        tokio::spawn(store_events(Arc::clone(&session), sharing.clone(), Arc::clone(&log), id.clone()));
    }
    if let Some(message) = first {
        log.push(&message);
    }
    tokio::spawn(record_call(Arc::clone(&log), call, inbox, id));
    replay(log, 0, pause)
}

/// Continues a call that another front has left, with the answer that it waited for, on its stream.
pub fn resume_parked_call(
    mcp: &Arc<Mcp>,
    session: &Arc<Session>,
    sharing: &SharedSession,
    stream: AdoptedStream,
    answer: Answer,
) {
    let unreadable = stream.clone();
    let parked = stream.call.as_deref().and_then(ParkedCall::parse);
    let id = Json::parse(stream.request).ok().and_then(Id::from_json);
    let (Some(parked), Some(id)) = (parked, id) else {
        tracing::error!(target: "fleet", "a call of another front cannot be read");
        return finish_lost(sharing, unreadable);
    };
    let (out, inbox) = mpsc::channel(64);
    let under = session.start_request(&id);
    let log = Arc::new(EventLog::resumed(stream.number, stream.next, &mcp.event_budget));
    session.keep_stream(stream.number, &log);
    tokio::spawn(store_events(Arc::clone(session), sharing.clone(), Arc::clone(&log), id.clone()));
    let (mcp, session) = (Arc::clone(mcp), Arc::clone(session));
    let call = DetachOnDrop::new(async move {
        mcp.continue_parked(session, parked, answer, out, under.cancel.clone()).await
    });
    tokio::spawn(record_call(log, call, inbox, id));
}

/// Writes the messages of a call, and its response, to the stream's log.
async fn record_call<F>(
    log: Arc<EventLog>,
    mut call: DetachOnDrop<F>,
    mut inbox: mpsc::Receiver<Message>,
    id: Id,
) where
    F: Future<Output = Result<JsonObject, RpcError>> + Send + 'static,
{
    let done = loop {
        tokio::select! {
            biased;
            Some(message) = inbox.recv() => log.push(&message),
            done = &mut call => break done,
        }
    };
    while let Ok(message) = inbox.try_recv() {
        log.push(&message);
    }
    log.push(&response_message(id, done));
    log.finish();
}

fn replay(log: Arc<EventLog>, from: u64, pause: Duration) -> Response {
    sse_response::sse_response(sse_response::with_keep_alive((log, from), pause, |(log, place)| async move {
        let (event, next) = log.next(place).await?;
        Some((event, (log, next)))
    }))
}

/// Opens the notification stream, or resumes a stream.
pub async fn open_stream(mcp: &Arc<Mcp>, arrived: &HttpContext) -> Response {
    if arrived.headers.get(header::SESSION).is_none() {
        return sse_response::empty_response(StatusCode::METHOD_NOT_ALLOWED);
    }
    let session = match find_session(mcp, arrived).await {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let last = header_checks::header_text(&arrived.headers, header::LAST_EVENT).and_then(parse_event_id);
    match last {
        Some((0, version)) => open_notifications(mcp, session, Some(version)).await,
        Some((number, place)) => {
            let from = place.saturating_add(1);
            match session.stream(number).filter(|log| log.is_complete()) {
                Some(log) => replay(log, from, mcp.settings.keep_alive),
                None => follow(mcp, &session, number, from).await,
            }
        }
        None => open_notifications(mcp, session, None).await,
    }
}

/// Resumes a stream that another front began.
async fn follow(mcp: &Mcp, session: &Arc<Session>, number: u64, from: u64) -> Response {
    let (pause, closing) = (mcp.settings.keep_alive, mcp.closing.clone());
    let Some(following) = session.acquire_stream_slot() else {
        return error_response(
            StatusCode::TOO_MANY_REQUESTS,
            code::INVALID_REQUEST,
            "This session resumes too many streams at once.",
        );
    };
    let follower = match session.sharing() {
        Some(sharing) => StreamFollower::open(sharing.clone(), number, from).await,
        None => Ok(None),
    };
    match follower {
        Ok(Some(follower)) => sse_response::sse_response(sse_response::with_keep_alive(
            (follower, following, closing),
            pause,
            |(mut follower, following, closing)| async move {
                let event = tokio::select! {
                    event = follower.next() => event?,
                    () = following.session().closed.cancelled() => return None,
                    () = closing.cancelled() => return None,
                };
                Some((event, (follower, following, closing)))
            },
        )),
        // Not 404, which says that the session has ended.
        Ok(None) => {
            error_response(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "These events have been dropped.")
        }
        Err(error) => *session_error(&SessionError::Store(error)),
    }
}

/// The notification stream of a session; a second one is refused while the first is open.
struct NotificationStream {
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    changes: broadcast::Receiver<Change>,
    _active: ActiveRequest,
    /// Lists changed while the client was disconnected.
    missed: bool,
    /// Ends with the stream.
    restore: Option<AbortOnDropHandle<()>>,
}

impl Drop for NotificationStream {
    fn drop(&mut self) {
        self.session.listening.store(false, Ordering::Release);
    }
}

/// Acquires the notification stream. A client may reconnect before its disconnect is noticed.
async fn acquire_stream(session: &Session) -> bool {
    for _ in 0..MAX_STREAM_TAKEOVER_POLLS {
        if !session.listening.swap(true, Ordering::AcqRel) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

async fn open_notifications(mcp: &Arc<Mcp>, session: Arc<Session>, last: Option<u64>) -> Response {
    if !acquire_stream(&session).await {
        return error_response(
            StatusCode::CONFLICT,
            code::INVALID_REQUEST,
            "The stream of this session is already open.",
        );
    }
    let version = mcp.hub.announcements();
    let mut state = NotificationStream {
        mcp: Arc::clone(mcp),
        changes: mcp.hub.changes(),
        _active: session.hold_open(),
        // Another front has other versions.
        missed: last.is_some_and(|last| last < version || session.sharing().is_some()),
        session: Arc::clone(&session),
        restore: None,
    };
    let known = Arc::clone(mcp);
    let restore = tokio::spawn(async move { known.restore_subscriptions(&session).await });
    let restore = state.restore.insert(AbortOnDropHandle::new(restore));
    // From the reply on, the client hears of every change. A server that does not answer does not hold it up for long.
    let _ = tokio::time::timeout(SUBSCRIBE_TIMEOUT, restore).await;
    sse_response::sse_response(sse_response::with_keep_alive(
        state,
        mcp.settings.keep_alive,
        next_notification,
    ))
}

async fn next_notification(mut state: NotificationStream) -> Option<(Bytes, NotificationStream)> {
    let change = if std::mem::take(&mut state.missed) {
        Change::List(octo_model::ItemKind::Tool)
    } else {
        next_change(&mut state).await?
    };
    let session = Arc::clone(&state.session);
    let message = change_notification(
        &change,
        &NotificationFilter::all_lists(),
        |uri| session.is_subscribed(uri),
        None,
    )
    .or_else(|| warning_notification(&change, &session));
    let version = state.mcp.hub.announcements();
    let chunk = message
        .map(|message| sse::encode_event(Some(&format!("0-{version}")), &message.to_bytes()))
        .unwrap_or_default();
    Some((chunk, state))
}

async fn next_change(state: &mut NotificationStream) -> Option<Change> {
    loop {
        let change = tokio::select! {
            () = state.session.closed.cancelled() => return None,
            () = state.mcp.closing.cancelled() => return None,
            change = state.changes.recv() => change,
        };
        match change {
            Ok(Change::Resource { uri }) if !state.session.is_subscribed(&uri) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Ok(change) => return Some(change),
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}

pub async fn delete_session(mcp: &Mcp, arrived: &HttpContext) -> Response {
    if arrived.headers.get(header::SESSION).is_none() {
        return sse_response::empty_response(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Some(name) = header_checks::header_text(&arrived.headers, header::SESSION) else {
        return error_response(
            StatusCode::BAD_REQUEST,
            code::INVALID_REQUEST,
            "Send exactly one Mcp-Session-Id.",
        );
    };
    match mcp.end_session(name, &arrived.caller, &arrived.profile).await {
        Ok(()) => sse_response::empty_response(StatusCode::NO_CONTENT),
        Err(error) => *session_error(&error),
    }
}
