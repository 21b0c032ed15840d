//! Modern requests over HTTP. Closing the connection cancels the call.

use super::HttpContext;
use crate::client_context::{ClientContext, next_client_key};
use crate::header_checks;
use crate::incoming::response_message;
use crate::listen::ListenStream;
use crate::mcp::Mcp;
use crate::rpc_errors::{http_status, rpc_error};
use crate::sse_response;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use octo_model::{Frontend, ItemKind, JsonObject, RpcError};
use octo_toolkit::BoxFuture;
use octo_wire::Level;
use octo_wire::{Id, Message, Revision, code, meta, sse};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub async fn post(mcp: Arc<Mcp>, arrived: HttpContext, message: Message) -> Response {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { .. } => return sse_response::empty_response(StatusCode::ACCEPTED),
        Message::Response { .. } | Message::Error { .. } => {
            let error =
                rpc_error(code::INVALID_REQUEST, "Send answers in inputResponses of the next request.");
            return sse_response::json_response(StatusCode::BAD_REQUEST, &Message::Error { id: None, error });
        }
    };
    let about = params.object("_meta");
    if let Err(error) = check_headers(&mcp, &arrived, &method, &params, &about) {
        let status =
            if error.code == code::INVALID_PARAMS { StatusCode::BAD_REQUEST } else { http_status(&error) };
        return sse_response::json_response(status, &Message::Error { id: Some(id), error });
    }
    let client = client_context(&mcp, &arrived, &about);
    if method == "subscriptions/listen" {
        return open_listen(mcp, client, id, &params).await;
    }
    answer_request(mcp, client, id, method, params).await
}

/// Everything that header and body must agree on.
fn check_headers(
    mcp: &Mcp,
    arrived: &HttpContext,
    method: &str,
    params: &JsonObject,
    about: &JsonObject,
) -> Result<(), RpcError> {
    header_checks::check_context(&arrived.headers, about)?;
    header_checks::check_names(&arrived.headers, method, params)?;
    if method != "tools/call" {
        return Ok(());
    }
    let Ok(view) = mcp.hub.view(&arrived.profile) else {
        return Ok(());
    };
    let name = params.text("name").unwrap_or_default();
    match view.by_name(ItemKind::Tool, &name) {
        Some(entry) => header_checks::check_params(&arrived.headers, entry.header_params(), params),
        None => Ok(()),
    }
}

fn client_context(mcp: &Mcp, arrived: &HttpContext, about: &JsonObject) -> ClientContext {
    ClientContext {
        caller: Arc::clone(&arrived.caller),
        frontend: Frontend::Http,
        profile: arrived.profile.clone(),
        options: arrived.options,
        revision: Revision::MODERN,
        capabilities: Arc::new(about.object(meta::CAPABILITIES)),
        level: about.text(meta::LOG_LEVEL).and_then(|text| Level::parse(&text)),
        // Modern requests are unrelated, so each counts as its own client.
        key: next_client_key(),
        epoch: mcp.stateless_epochs.of(&arrived.caller, &arrived.profile),
    }
}

/// Plain JSON if the response comes first; a stream as soon as another message comes before it.
async fn answer_request(
    mcp: Arc<Mcp>,
    client: ClientContext,
    id: Id,
    method: String,
    params: JsonObject,
) -> Response {
    let (out, mut inbox) = mpsc::channel(64);
    let pause = mcp.settings.keep_alive;
    let mut call: BoxFuture<'static, Result<JsonObject, RpcError>> =
        Box::pin(
            async move { mcp.handle_modern(&client, &method, params, out, CancellationToken::new()).await },
        );
    let first = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => return single_response(id, done),
        () = tokio::time::sleep(pause) => None,
    };
    let first = first.map_or_else(
        || Bytes::from_static(sse::KEEP_ALIVE),
        |message| sse::encode_event(None, &message.to_bytes()),
    );
    let rest = sse_response::with_keep_alive(Some((call, inbox, id)), pause, next_event);
    sse_response::sse_response(futures_util::stream::once(async { first }).chain(rest))
}

type OpenCall = (BoxFuture<'static, Result<JsonObject, RpcError>>, mpsc::Receiver<Message>, Id);

/// The next message before the response, then the response, then the end.
async fn next_event(open: Option<OpenCall>) -> Option<(Bytes, Option<OpenCall>)> {
    let (mut call, mut inbox, id) = open?;
    let message = tokio::select! {
        biased;
        Some(message) = inbox.recv() => Some(message),
        done = &mut call => {
            let mut text = Vec::new();
            while let Ok(message) = inbox.try_recv() {
                text.extend_from_slice(&sse::encode_event(None, &message.to_bytes()));
            }
            text.extend_from_slice(&sse::encode_event(None, &response_message(id, done).to_bytes()));
            return Some((text.into(), None));
        }
    };
    let text = sse::encode_event(None, &message?.to_bytes());
    Some((text, Some((call, inbox, id))))
}

fn single_response(id: Id, done: Result<JsonObject, RpcError>) -> Response {
    let status = done.as_ref().err().map_or(StatusCode::OK, http_status);
    sse_response::json_response(status, &response_message(id, done))
}

async fn open_listen(mcp: Arc<Mcp>, client: ClientContext, id: Id, params: &JsonObject) -> Response {
    let pause = mcp.settings.keep_alive;
    let listening = match mcp.listen(&client, id.clone(), params).await {
        Ok(listening) => listening,
        Err(error) => {
            return sse_response::json_response(http_status(&error), &Message::Error { id: Some(id), error });
        }
    };
    let first = sse::encode_event(None, &listening.acknowledgement().to_bytes());
    let rest = sse_response::with_keep_alive(Some(listening), pause, next_notification);
    sse_response::sse_response(futures_util::stream::once(async { first }).chain(rest))
}

async fn next_notification(listening: Option<ListenStream>) -> Option<(Bytes, Option<ListenStream>)> {
    let mut listening = listening?;
    match listening.next().await {
        Some(message) => Some((sse::encode_event(None, &message.to_bytes()), Some(listening))),
        None => Some((sse::encode_event(None, &listening.end_response().to_bytes()), None)),
    }
}
