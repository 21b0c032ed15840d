//! Streamable HTTP at `/mcp` and `/mcp/{profile}`: one endpoint; each request selects the era.

mod legacy_http;
mod modern_http;

pub(crate) use legacy_http::resume_parked_call;

use crate::mcp::Mcp;
use crate::rpc_errors::rpc_error;
use crate::sse_response;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Extension, Router};
use http::{HeaderMap, StatusCode, header};
use octo_hub::{ListOptions, Structure, Surface};
use octo_model::{Caller, DEFAULT_RETRY_AFTER};
use octo_wire::{Incoming, Message, Revision, Strictness, code, header as names, meta};
use std::sync::Arc;

/// Context of every request.
pub struct HttpContext {
    pub caller: Arc<Caller>,
    pub profile: String,
    pub options: ListOptions,
    pub headers: HeaderMap,
}

impl Mcp {
    /// Routes of this frontend. Requests must carry the caller that the edge has authenticated.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/mcp", method_router())
            .route("/mcp/", method_router())
            .route("/mcp/{profile}", method_router())
            .layer(DefaultBodyLimit::max(self.settings.max_body_bytes))
            .with_state(Arc::clone(self))
    }
}

fn method_router() -> MethodRouter<Arc<Mcp>> {
    let routes =
        post(|State(mcp): State<Arc<Mcp>>, Extension(caller), profile, query, headers, body| async move {
            match http_context(caller, profile, query, headers) {
                Ok(arrived) => handle_post(mcp, arrived, body).await,
                Err(refusal) => *refusal,
            }
        });
    let routes = routes.merge(get(
        |State(mcp): State<Arc<Mcp>>, Extension(caller), profile, query, headers| async move {
            match http_context(caller, profile, query, headers) {
                Ok(arrived) => legacy_http::open_stream(&mcp, &arrived).await,
                Err(refusal) => *refusal,
            }
        },
    ));
    routes.merge(delete(
        |State(mcp): State<Arc<Mcp>>, Extension(caller), profile, query, headers| async move {
            match http_context(caller, profile, query, headers) {
                Ok(arrived) => legacy_http::delete_session(&mcp, &arrived).await,
                Err(refusal) => *refusal,
            }
        },
    ))
}

fn http_context(
    caller: Arc<Caller>,
    profile: Option<Path<String>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<HttpContext, Box<Response>> {
    let options = list_options(query.as_deref().unwrap_or_default())
        .map_err(|why| Box::new(error_response(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, &why)))?;
    Ok(HttpContext { caller, profile: profile.map(|Path(name)| name).unwrap_or_default(), options, headers })
}

/// The options in a query such as `surface=find&structure=off`. Other parameters have no meaning.
fn list_options(query: &str) -> Result<ListOptions, String> {
    let mut options = ListOptions::default();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "surface" => {
                options.surface = Some(Surface::parse(value).ok_or_else(|| {
                    let known = Surface::ALL.map(Surface::as_str).join(", ");
                    format!("Unknown surface. Use one of {known}.")
                })?);
            }
            "structure" => {
                let structure = Structure::parse(value);
                options.structure = Some(structure.ok_or("Unknown structure. Use on or off.")?);
            }
            _ => {}
        }
    }
    Ok(options)
}

async fn handle_post(mcp: Arc<Mcp>, arrived: HttpContext, body: Bytes) -> Response {
    if let Err(refusal) = check_request(&mcp, &arrived) {
        return *refusal;
    }
    let incoming = match Incoming::parse(body, Strictness::Client) {
        Ok(incoming) => incoming,
        Err(fault) => return error_response(StatusCode::BAD_REQUEST, code::PARSE, fault.0),
    };
    match incoming {
        Incoming::One(message) if is_modern(&arrived.headers, &message) => {
            modern_http::post(mcp, arrived, message).await
        }
        Incoming::One(message) => legacy_http::post(mcp, arrived, message).await,
        Incoming::Batch(messages) => legacy_http::batch(mcp, arrived, messages).await,
    }
}

/// A modern revision in header or body means modern, whatever the method.
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

fn check_request(mcp: &Mcp, arrived: &HttpContext) -> Result<(), Box<Response>> {
    let kind =
        arrived.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Box::new(error_response(
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
        return Err(Box::new(error_response(
            StatusCode::NOT_ACCEPTABLE,
            code::INVALID_REQUEST,
            "Accept application/json and text/event-stream.",
        )));
    }
    if mcp.hub.view(&arrived.profile).is_err() {
        return Err(Box::new(error_response(
            StatusCode::NOT_FOUND,
            code::INVALID_REQUEST,
            "Profile not found.",
        )));
    }
    Ok(())
}

/// Error before the request was parsed.
fn error_response(status: StatusCode, code: i64, why: &str) -> Response {
    let error = Message::Error { id: None, error: rpc_error(code, why) };
    let mut response = sse_response::json_response(status, &error);
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.headers_mut().insert(header::RETRY_AFTER, DEFAULT_RETRY_AFTER.as_secs().into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_the_query() {
        let options = |surface, structure| Ok(ListOptions { surface, structure });
        for (query, expected) in [
            ("", options(None, None)),
            ("surface=find", options(Some(Surface::Find), None)),
            ("x=1&structure=off&surface=auto", options(Some(Surface::Auto), Some(Structure::Off))),
            ("surface", options(None, None)),
            (
                "surface=everything",
                Err("Unknown surface. Use one of auto, full, servers, profile, find, code.".to_owned()),
            ),
            ("structure=", Err("Unknown structure. Use on or off.".to_owned())),
        ] {
            assert_eq!(list_options(query), expected, "{query}");
        }
    }
}
