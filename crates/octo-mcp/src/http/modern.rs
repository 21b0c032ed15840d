//! Modern requests over HTTP. The end of the connection is the end of the call.

use super::Arrived;
use crate::client::{Client, fresh_key};
use crate::headers;
use crate::listen::Listening;
use crate::mcp::Mcp;
use crate::reply::{rpc, status};
use crate::stream;
use crate::turn::response;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use octo_hub::ListKind;
use octo_model::{Frontend, JsonObject, RpcError};
use octo_toolkit::BoxFuture;
use octo_wire::Level;
use octo_wire::{Id, Message, Revision, code, meta, sse};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub async fn post(mcp: Arc<Mcp>, arrived: Arrived, message: Message) -> Response {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { .. } => return stream::empty(StatusCode::ACCEPTED),
        Message::Response { .. } | Message::Error { .. } => {
            let error = rpc(code::INVALID_REQUEST, "Answers travel in inputResponses of the next request.");
            return stream::json(StatusCode::BAD_REQUEST, &Message::Error { id: None, error });
        }
    };
    let about = params.object("_meta");
    if let Err(error) = agreed(&mcp, &arrived, &method, &params, &about) {
        let status =
            if error.code == code::INVALID_PARAMS { StatusCode::BAD_REQUEST } else { status(&error) };
        return stream::json(status, &Message::Error { id: Some(id), error });
    }
    let client = client(&arrived, &about);
    if method == "subscriptions/listen" {
        return listen(mcp, client, id, &params).await;
    }
    answer(mcp, client, id, method, params).await
}

/// Everything that header and body must agree on.
fn agreed(
    mcp: &Mcp,
    arrived: &Arrived,
    method: &str,
    params: &JsonObject,
    about: &JsonObject,
) -> Result<(), RpcError> {
    headers::context(&arrived.headers, about)?;
    headers::names(&arrived.headers, method, params)?;
    if method != "tools/call" {
        return Ok(());
    }
    let Ok(view) = mcp.hub.view(&arrived.profile) else {
        return Ok(());
    };
    let name = params.text("name").unwrap_or_default();
    match view.by_name(ListKind::Tools, &name) {
        Some(entry) => headers::parameters(&arrived.headers, entry.header_params(), params),
        None => Ok(()),
    }
}

fn client(arrived: &Arrived, about: &JsonObject) -> Client {
    Client {
        caller: Arc::clone(&arrived.caller),
        face: Frontend::Http,
        profile: arrived.profile.clone(),
        revision: Revision::MODERN,
        capabilities: Arc::new(about.object(meta::CAPABILITIES)),
        level: about.text(meta::LOG_LEVEL).and_then(|text| Level::parse(&text)),
        // Nothing ties two modern requests together, so each is a client of its own.
        key: fresh_key(),
    }
}

/// Plain JSON when the answer comes first; a stream as soon as anything comes before it.
async fn answer(mcp: Arc<Mcp>, client: Client, id: Id, method: String, params: JsonObject) -> Response {
    let (out, mut inbox) = mpsc::channel(64);
    let pause = mcp.settings.keep_alive;
    let mut call: BoxFuture<'static, Result<JsonObject, RpcError>> =
        Box::pin(async move { mcp.modern(&client, &method, params, out, CancellationToken::new()).await });
    let first = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => return whole(id, done),
        () = tokio::time::sleep(pause) => None,
    };
    let first = first
        .map_or_else(|| Bytes::from_static(sse::KEEP_ALIVE), |message| sse::event(None, &message.to_bytes()));
    let rest = stream::kept_alive(Some((call, inbox, id)), pause, next_event);
    stream::events(futures_util::stream::once(async { first }).chain(rest))
}

type Open = (BoxFuture<'static, Result<JsonObject, RpcError>>, mpsc::Receiver<Message>, Id);

/// The next message before the answer, then the answer, then the end.
async fn next_event(open: Option<Open>) -> Option<(Bytes, Option<Open>)> {
    let (mut call, mut inbox, id) = open?;
    let message = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => {
            let mut text = Vec::new();
            while let Ok(message) = inbox.try_recv() {
                text.extend_from_slice(&sse::event(None, &message.to_bytes()));
            }
            text.extend_from_slice(&sse::event(None, &response(id, done).to_bytes()));
            return Some((text.into(), None));
        }
    };
    let text = sse::event(None, &message?.to_bytes());
    Some((text, Some((call, inbox, id))))
}

fn whole(id: Id, done: Result<JsonObject, RpcError>) -> Response {
    let status = done.as_ref().err().map_or(StatusCode::OK, status);
    stream::json(status, &response(id, done))
}

async fn listen(mcp: Arc<Mcp>, client: Client, id: Id, params: &JsonObject) -> Response {
    let pause = mcp.settings.keep_alive;
    let listening = match mcp.listen(&client, id.clone(), params).await {
        Ok(listening) => listening,
        Err(error) => return stream::json(status(&error), &Message::Error { id: Some(id), error }),
    };
    let first = sse::event(None, &listening.acknowledgement().to_bytes());
    let rest = stream::kept_alive(Some(listening), pause, next_notice);
    stream::events(futures_util::stream::once(async { first }).chain(rest))
}

async fn next_notice(listening: Option<Listening>) -> Option<(Bytes, Option<Listening>)> {
    let mut listening = listening?;
    match listening.next().await {
        Some(message) => Some((sse::event(None, &message.to_bytes()), Some(listening))),
        None => Some((sse::event(None, &listening.ended().to_bytes()), None)),
    }
}
