//! Streamable HTTP at `/mcp` and `/mcp/{profile}`: one endpoint, the era chosen by each request.

mod legacy;
mod modern;

use crate::mcp::Mcp;
use crate::reply::rpc;
use crate::stream;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Extension, Router};
use http::{HeaderMap, StatusCode, header};
use octo_model::Caller;
use octo_wire::{Incoming, Message, Revision, Strictness, code, header as names, meta};
use std::sync::Arc;

/// What every request brings along.
pub struct Arrived {
    pub caller: Arc<Caller>,
    pub profile: String,
    pub headers: HeaderMap,
}

impl Mcp {
    /// The routes of this face. Requests must carry the caller that the edge has proven.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/mcp", methods())
            .route("/mcp/", methods())
            .route("/mcp/{profile}", methods())
            .layer(DefaultBodyLimit::max(self.settings.max_body_bytes))
            .with_state(Arc::clone(self))
    }
}

fn methods() -> MethodRouter<Arc<Mcp>> {
    let routes = post(|State(mcp): State<Arc<Mcp>>, Extension(caller), profile, headers, body| async move {
        posted(mcp, arrived(caller, profile, headers), body).await
    });
    let routes =
        routes.merge(get(|State(mcp): State<Arc<Mcp>>, Extension(caller), profile, headers| async move {
            legacy::open_stream(&mcp, &arrived(caller, profile, headers)).await
        }));
    routes.merge(delete(|State(mcp): State<Arc<Mcp>>, Extension(caller), profile, headers| async move {
        legacy::end(&mcp, &arrived(caller, profile, headers)).await
    }))
}

fn arrived(caller: Arc<Caller>, profile: Option<Path<String>>, headers: HeaderMap) -> Arrived {
    Arrived { caller, profile: profile.map(|Path(name)| name).unwrap_or_default(), headers }
}

async fn posted(mcp: Arc<Mcp>, arrived: Arrived, body: Bytes) -> Response {
    if let Err(refusal) = acceptable(&mcp, &arrived) {
        return *refusal;
    }
    let incoming = match Incoming::parse(body, Strictness::Client) {
        Ok(incoming) => incoming,
        Err(fault) => return refused(StatusCode::BAD_REQUEST, code::PARSE, fault.0),
    };
    match incoming {
        Incoming::One(message) if is_modern(&arrived.headers, &message) => {
            modern::post(mcp, arrived, message).await
        }
        Incoming::One(message) => legacy::post(mcp, arrived, message).await,
        Incoming::Batch(messages) => legacy::batch(mcp, arrived, messages).await,
    }
}

/// Modern context anywhere means modern, whatever the method is called.
fn is_modern(headers: &HeaderMap, message: &Message) -> bool {
    if headers
        .get(names::REVISION)
        .is_some_and(|value| value.as_bytes() == Revision::MODERN.as_str().as_bytes())
    {
        return true;
    }
    let (Message::Request { params, .. } | Message::Notification { params, .. }) = message else {
        return false;
    };
    params.inner("_meta", meta::REVISION).is_some()
}

fn acceptable(mcp: &Mcp, arrived: &Arrived) -> Result<(), Box<Response>> {
    let kind =
        arrived.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Box::new(refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            code::INVALID_REQUEST,
            "Send the message as Content-Type: application/json.",
        )));
    }
    let accept = arrived.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    if !["application/json", "text/event-stream", "*/*", "application/*"]
        .iter()
        .any(|kind| accept.contains(kind))
    {
        return Err(Box::new(refused(
            StatusCode::NOT_ACCEPTABLE,
            code::INVALID_REQUEST,
            "Accept application/json and text/event-stream.",
        )));
    }
    if mcp.hub.view(&arrived.profile).is_err() {
        return Err(Box::new(refused(
            StatusCode::NOT_FOUND,
            code::INVALID_REQUEST,
            "There is no profile of this name.",
        )));
    }
    Ok(())
}

/// A refusal before anything is known of the request.
fn refused(status: StatusCode, code: i64, why: &str) -> Response {
    stream::json(status, &Message::Error { id: None, error: rpc(code, why) })
}
