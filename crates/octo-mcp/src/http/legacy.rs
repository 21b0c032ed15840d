//! Legacy sessions over HTTP: handshake, requests, the stream for notices, resumption, the end.

use super::{Arrived, refused};
use crate::client::{Client, fresh_key};
use crate::discover::negotiated;
use crate::eventlog::{EventLog, parse_id};
use crate::headers;
use crate::mcp::Mcp;
use crate::notice::{Filter, notice, warning};
use crate::peer::Outbox;
use crate::reply::rpc;
use crate::session::{Session, Under};
use crate::stream::{self, GoesOn};
use crate::turn::{received, response};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use octo_hub::Change;
use octo_model::{Frontend, JsonObject, RpcError};
use octo_wire::{Id, Message, Revision, code, header, sse};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};

/// How often, every ten milliseconds, it is looked whether the old stream has ended.
const COMES_BACK: usize = 50;

/// Bytes of replies to one batch after which its other requests are not run.
const MAX_BATCH_REPLY_BYTES: usize = 2 << 20;

pub async fn post(mcp: Arc<Mcp>, arrived: Arrived, message: Message) -> Response {
    if let Message::Request { id, method, params } = &message
        && method == "initialize"
    {
        return initialize(&mcp, &arrived, id.clone(), params).await;
    }
    let session = match session(&mcp, &arrived) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    match message {
        Message::Request { id, method, params } => answer(mcp, session, id, method, params).await,
        other => {
            received(&session, other);
            stream::empty(StatusCode::ACCEPTED)
        }
    }
}

async fn initialize(mcp: &Mcp, arrived: &Arrived, id: Id, params: &JsonObject) -> Response {
    let revision = negotiated(params.text("protocolVersion").as_deref());
    let session = Session::new(client(arrived, revision, params.object("capabilities").detached()));
    let result = mcp.initialized(&session.client).await;
    let name = match mcp.sessions.begin(session) {
        Ok(name) => name,
        Err(full) => return refused(full.status(), code::INTERNAL, full.message()),
    };
    let mut response = stream::json(StatusCode::OK, &Message::Response { id, result });
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::SESSION, name);
    }
    response
}

fn client(arrived: &Arrived, revision: Revision, capabilities: JsonObject) -> Client {
    Client {
        caller: Arc::clone(&arrived.caller),
        face: Frontend::Http,
        profile: arrived.profile.clone(),
        revision,
        capabilities: Arc::new(capabilities),
        level: None,
        key: fresh_key(),
    }
}

/// The session that a request names. One that names none is served without, and joined to nobody.
fn session(mcp: &Mcp, arrived: &Arrived) -> Result<Arc<Session>, Box<Response>> {
    let wrong = |why| Box::new(refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
    let asked = match headers::text(&arrived.headers, header::REVISION) {
        None => None,
        Some(text) => {
            Some(Revision::parse(text).ok_or_else(|| wrong("This MCP-Protocol-Version is not known."))?)
        }
    };
    if arrived.headers.get(header::SESSION).is_none() {
        return Ok(Session::transient(client(
            arrived,
            asked.unwrap_or(Revision::R20250326),
            JsonObject::new(),
        )));
    }
    let name =
        headers::text(&arrived.headers, header::SESSION).ok_or_else(|| wrong("Give one Mcp-Session-Id."))?;
    let found =
        mcp.sessions.find(name, &arrived.caller).filter(|session| session.client.profile == arrived.profile);
    found.ok_or_else(|| {
        let why = "There is no such session any more. Send initialize to begin a new one.";
        Box::new(refused(StatusCode::NOT_FOUND, code::INVALID_REQUEST, why))
    })
}

/// Batches exist in 2025-03-26 only, and are answered one by one, until the replies are as large as a client may make the hub keep.
pub async fn batch(mcp: Arc<Mcp>, arrived: Arrived, messages: Vec<Message>) -> Response {
    let session = match session(&mcp, &arrived) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    if session.client.revision != Revision::R20250326 {
        return refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "Send one message at a time.");
    }
    if session.is_transient() {
        let why = "A batch needs a session. Send initialize, and then Mcp-Session-Id with each request.";
        return refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why);
    }
    let mut answers = Vec::new();
    let mut size = 0;
    for message in messages {
        match message {
            Message::Request { id, .. } if size > MAX_BATCH_REPLY_BYTES => {
                let why = "The replies to this batch are too large already, so this request was not run. Send it again.";
                answers.push(response(id, Err(rpc(code::INVALID_REQUEST, why))).to_bytes());
            }
            Message::Request { id, method, params } => {
                let (out, _) = mpsc::channel(1);
                let done =
                    run(Arc::clone(&mcp), Arc::clone(&session), session.began(&id), method, params, out)
                        .await;
                let answer = response(id, done).to_bytes();
                size += answer.len();
                answers.push(answer);
            }
            other => received(&session, other),
        }
    }
    if answers.is_empty() {
        return stream::empty(StatusCode::ACCEPTED);
    }
    let mut text = vec![b'['];
    text.extend_from_slice(&answers.join(&b","[..]));
    text.push(b']');
    let mut response = Response::new(text.into());
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn run(
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    under: Under,
    method: String,
    params: JsonObject,
    out: Outbox,
) -> Result<JsonObject, RpcError> {
    mcp.legacy(session, &method, params, out, under.cancel.clone()).await
}

/// Plain JSON when the answer comes first; else a stream that outlives its connection.
async fn answer(
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    id: Id,
    method: String,
    params: JsonObject,
) -> Response {
    let (out, mut inbox) = mpsc::channel(64);
    let (pause, events) = (mcp.settings.keep_alive, Arc::clone(&mcp.events));
    let under = session.began(&id);
    let mut call = GoesOn::new(run(mcp, Arc::clone(&session), under, method, params, out));
    let first = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => return stream::json(StatusCode::OK, &response(id, done)),
        () = tokio::time::sleep(pause) => None,
    };
    let number = session.fresh();
    let primed = session.client.revision >= Revision::R20251125;
    let log = Arc::new(EventLog::new(number, primed, &events));
    session.keep_stream(number, &log);
    if let Some(message) = first {
        log.push(&message);
    }
    tokio::spawn(record(Arc::clone(&log), call, inbox, id));
    replay(log, 0, pause)
}

/// Writes what a call says, and its answer, to the stream's log.
async fn record<F>(log: Arc<EventLog>, mut call: GoesOn<F>, mut inbox: mpsc::Receiver<Message>, id: Id)
where
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
    log.push(&response(id, done));
    log.finish();
}

fn replay(log: Arc<EventLog>, from: u64, pause: Duration) -> Response {
    stream::events(stream::kept_alive((log, from), pause, |(log, place)| async move {
        let (event, next) = log.next(place).await?;
        Some((event, (log, next)))
    }))
}

/// The stream for notices, or the rest of one that broke.
pub async fn open_stream(mcp: &Arc<Mcp>, arrived: &Arrived) -> Response {
    if arrived.headers.get(header::SESSION).is_none() {
        return stream::empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let session = match session(mcp, arrived) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let last = headers::text(&arrived.headers, header::LAST_EVENT).and_then(parse_id);
    match last {
        Some((0, version)) => notices(mcp, session, Some(version)).await,
        Some((number, place)) => match session.stream(number) {
            Some(log) => replay(log, place.saturating_add(1), mcp.settings.keep_alive),
            None => {
                refused(StatusCode::NOT_FOUND, code::INVALID_REQUEST, "These events are not kept any more.")
            }
        },
        None => notices(mcp, session, None).await,
    }
}

/// The one open stream of a session; a second one is refused, and the first goes on.
struct Notices {
    mcp: Arc<Mcp>,
    session: Arc<Session>,
    changes: broadcast::Receiver<Change>,
    _under: Under,
    /// Lists changed while the client was away.
    missed: bool,
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.session.listening.store(false, Ordering::Release);
    }
}

/// Takes the session's one stream. A client that comes back may be quicker than the news that it was gone.
async fn took_stream(session: &Session) -> bool {
    for _ in 0..COMES_BACK {
        if !session.listening.swap(true, Ordering::AcqRel) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

async fn notices(mcp: &Arc<Mcp>, session: Arc<Session>, last: Option<u64>) -> Response {
    if !took_stream(&session).await {
        return refused(
            StatusCode::CONFLICT,
            code::INVALID_REQUEST,
            "This session has its stream open already.",
        );
    }
    let version = mcp.hub.view(&session.client.profile).map_or(0, |view| view.version);
    let state = Notices {
        mcp: Arc::clone(mcp),
        changes: mcp.hub.changes(),
        _under: session.occupied(),
        missed: last.is_some_and(|last| last < version),
        session,
    };
    stream::events(stream::kept_alive(state, mcp.settings.keep_alive, next_notice))
}

async fn next_notice(mut state: Notices) -> Option<(Bytes, Notices)> {
    let change = if std::mem::take(&mut state.missed) {
        Change::List(octo_hub::ListKind::Tools)
    } else {
        next_change(&mut state).await?
    };
    let session = Arc::clone(&state.session);
    let message = notice(&change, &Filter::lists(), |uri| session.subscribes(uri), None)
        .or_else(|| warning(&change, &session));
    let version = state.mcp.hub.view(&session.client.profile).map_or(0, |view| view.version);
    let chunk = message
        .map(|message| sse::event(Some(&format!("0-{version}")), &message.to_bytes()))
        .unwrap_or_default();
    Some((chunk, state))
}

async fn next_change(state: &mut Notices) -> Option<Change> {
    loop {
        let change = tokio::select! {
            () = state.session.closed.cancelled() => return None,
            () = state.mcp.closing.cancelled() => return None,
            change = state.changes.recv() => change,
        };
        match change {
            Ok(Change::Resource { uri }) if !state.session.subscribes(&uri) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Ok(change) => return Some(change),
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}

pub async fn end(mcp: &Mcp, arrived: &Arrived) -> Response {
    if arrived.headers.get(header::SESSION).is_none() {
        return stream::empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    match session(mcp, arrived) {
        Ok(_) => {
            let name = headers::text(&arrived.headers, header::SESSION).unwrap_or_default();
            if let Some(session) = mcp.sessions.end(name) {
                mcp.farewell(&session).await;
            }
            stream::empty(StatusCode::NO_CONTENT)
        }
        Err(refusal) => *refusal,
    }
}
