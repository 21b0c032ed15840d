//! The edge of every listener: checks host, origin, token and size of a request before any handler sees it.

mod allowed_hosts;
mod allowed_origins;
mod bearer_tokens;
mod edge_rejection;
mod limited_body;
mod revocation;

pub use bearer_tokens::{TokenConfigError, TokenSettings, Tokens, token_fingerprint};

use crate::error_response::error_response;
use crate::listener::{Connection, PeerOwner};
use crate::route_access::{Access, ROUTES, Route, access};
use allowed_hosts::AllowedHosts;
use allowed_origins::{AllowedOrigins, add_cors_headers, is_preflight, preflight};
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use bearer_tokens::{TokenError, TokenHolder};
use edge_rejection::EdgeRejection;
use http::{HeaderMap, HeaderValue, Method, header};
use limited_body::{BODY_IDLE_TIMEOUT, BodyOutcome, LimitedBody, drain_body};
use octo_model::{Caller, ToolError};
use revocation::Revocation;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

/// What a listener accepts.
#[derive(Clone)]
pub struct EdgeSettings {
    /// Host names of the hub, with a port or, for any port, without.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call the hub, besides its own.
    pub allowed_origins: Vec<String>,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    pub tokens: Tokens,
    /// Routes of the port; all others are refused.
    pub routes: &'static [Route],
}

impl Default for EdgeSettings {
    /// This machine only, without tokens.
    fn default() -> Self {
        Self {
            allowed_hosts: ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 << 20,
            tokens: Tokens::none(),
            routes: ROUTES,
        }
    }
}

/// Puts the edge around a router. Without tokens it admits only connections that [`crate::serve`] has attributed to the
/// hub's own user. Handlers find an `Extension<Arc<Caller>>` on every request, except on open routes without a token.
/// Routes that are not in the port's table are refused.
pub fn edge(router: Router, settings: EdgeSettings) -> Router {
    let rules = EdgeRules {
        hosts: AllowedHosts::new(&settings.allowed_hosts),
        origins: AllowedOrigins::new(&settings.allowed_origins),
        max_body_bytes: settings.max_body_bytes,
        tokens: settings.tokens,
        routes: settings.routes,
        local: Arc::new(Caller::local()),
    };
    router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(EdgeLayer(Arc::new(rules)))
}

async fn not_found() -> Response {
    EdgeRejection::NotFound.response()
}

async fn method_not_allowed(method: Method) -> Response {
    let error =
        ToolError::invalid(format!("This path does not support {method}.")).hint("See the header Allow.");
    let mut response = error_response(&error);
    *response.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
    response
}

struct EdgeRules {
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    max_body_bytes: usize,
    tokens: Tokens,
    routes: &'static [Route],
    /// The caller of all requests if there are no tokens.
    local: Arc<Caller>,
}

impl EdgeRules {
    /// Origin of the page that sent the request, if any.
    fn page_origin(&self, request: &Request) -> Result<Option<HeaderValue>, EdgeRejection> {
        // Without tokens all requests run as the local caller, so only the hub's own user is admitted.
        if !self.tokens.are_required() && request.extensions().get() != Some(&PeerOwner::OwnUser) {
            return Err(EdgeRejection::OtherUser);
        }
        let host = self.hosts.check_request(request).ok_or(EdgeRejection::Host)?;
        self.origins.check_request(request.headers(), host, &self.hosts).map_err(|_| EdgeRejection::Origin)
    }

    /// Adds the caller to the request and limits its body.
    fn admit(&self, request: &mut Request) -> Result<Admission, EdgeRejection> {
        let mut revoked = None;
        if let Some(TokenHolder { caller, revoked: ends }) = self.authenticate(request)? {
            let connection = request.extensions().get::<Arc<Connection>>();
            if connection.is_some_and(|connection| !connection.assign_owner(&caller)) {
                return Err(EdgeRejection::TooManyConnections);
            }
            request.extensions_mut().insert(caller);
            revoked = Some(ends);
        }
        Ok(Admission { body_outcome: self.limit_body(request)?, revoked })
    }

    fn authenticate(&self, request: &Request) -> Result<Option<TokenHolder>, EdgeRejection> {
        let matched = request.extensions().get::<MatchedPath>();
        let access = match matched {
            Some(path) => {
                access(self.routes, request.method(), path.as_str()).ok_or(EdgeRejection::NotFound)?
            }
            None => Access::Caller,
        };
        if let Some(accepted) = self.tokens.anonymous(&self.local) {
            return Ok(Some(accepted));
        }
        match (self.tokens.authenticate(request.headers()), access) {
            (Ok(accepted), Access::Admin) if !accepted.caller.is_admin() => Err(EdgeRejection::NotAdmin),
            (Ok(accepted), _) => Ok(Some(accepted)),
            (Err(_), Access::Open) => Ok(None),
            (Err(why), Access::Caller | Access::Admin) => Err(EdgeRejection::Unauthorized(why)),
        }
    }

    fn limit_body(&self, request: &mut Request) -> Result<Option<BodyOutcome>, EdgeRejection> {
        let hint = http_body::Body::size_hint(request.body());
        if has_ambiguous_length(request.headers()) {
            return Err(EdgeRejection::AmbiguousLength);
        }
        if hint.lower() > self.max_body_bytes as u64 {
            return Err(EdgeRejection::TooLarge { limit: self.max_body_bytes });
        }
        if http_body::Body::is_end_stream(request.body()) {
            return Ok(None);
        }
        let (body, fate) =
            LimitedBody::new(std::mem::take(request.body_mut()), self.max_body_bytes, BODY_IDLE_TIMEOUT);
        *request.body_mut() = Body::new(body);
        axum::extract::DefaultBodyLimit::disable().apply(request);
        Ok(Some(fate))
    }
}

/// An admitted request.
struct Admission {
    body_outcome: Option<BodyOutcome>,
    /// Ends it when its token is revoked.
    revoked: Option<CancellationToken>,
}

/// Proxies disagree about which of the two counts.
fn has_ambiguous_length(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH)
}

#[derive(Clone)]
struct EdgeLayer(Arc<EdgeRules>);

impl<S> Layer<S> for EdgeLayer {
    type Service = EdgeService<S>;

    fn layer(&self, inner: S) -> EdgeService<S> {
        EdgeService { inner, rules: Arc::clone(&self.0) }
    }
}

#[derive(Clone)]
struct EdgeService<S> {
    inner: S,
    rules: Arc<EdgeRules>,
}

impl<S> Service<Request> for EdgeService<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Unpin,
{
    type Response = Response;
    type Error = S::Error;
    type Future = EdgeFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let page_origin = match self.rules.page_origin(&request) {
            Ok(page_origin) => page_origin,
            Err(refusal) => return refuse(refusal, None, request),
        };
        if let Some(origin) = page_origin.as_ref().filter(|_| is_preflight(&request)) {
            return EdgeFuture::answered(preflight(origin, request.headers()));
        }
        match self.rules.admit(&mut request) {
            Ok(Admission { body_outcome, revoked }) => {
                let body_watch = body_outcome.map(|body_outcome| (body_outcome, self.rules.max_body_bytes));
                let revoked = revoked.map(Revocation::new);
                EdgeFuture {
                    step: EdgeStep::Forwarded(self.inner.call(request)),
                    page_origin,
                    body_watch,
                    revoked,
                }
            }
            Err(refusal) => refuse(refusal, page_origin, request),
        }
    }
}

fn refuse<F>(refusal: EdgeRejection, page: Option<HeaderValue>, request: Request) -> EdgeFuture<F> {
    let mut response = refusal.response();
    if let Some(origin) = &page {
        add_cors_headers(&mut response, origin);
    }
    if !request.headers().contains_key(header::EXPECT) {
        drain_body(request.into_body());
    }
    EdgeFuture::answered(response)
}

/// A request on its way through the edge and back.
struct EdgeFuture<F> {
    step: EdgeStep<F>,
    page_origin: Option<HeaderValue>,
    body_watch: Option<(BodyOutcome, usize)>,
    revoked: Option<Revocation>,
}

enum EdgeStep<F> {
    Answered(Option<Box<Response>>),
    Forwarded(F),
}

impl<F> EdgeFuture<F> {
    fn answered(response: Response) -> Self {
        Self {
            step: EdgeStep::Answered(Some(Box::new(response))),
            page_origin: None,
            body_watch: None,
            revoked: None,
        }
    }
}

impl<F, E> Future for EdgeFuture<F>
where
    F: Future<Output = Result<Response, E>> + Unpin,
{
    type Output = Result<Response, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut response = match &mut this.step {
            EdgeStep::Forwarded(inside) => match Pin::new(inside).poll(cx)? {
                Poll::Ready(response) => response,
                Poll::Pending => {
                    let Some(revoked) = &mut this.revoked else { return Poll::Pending };
                    ready!(revoked.poll(cx));
                    // Dropping the request cancels its call.
                    this.step = EdgeStep::Answered(None);
                    EdgeRejection::Unauthorized(TokenError::Unknown).response()
                }
            },
            EdgeStep::Answered(response) => return Poll::Ready(Ok(*response.take().unwrap_or_default())),
        };
        if let Some(revoked) = this.revoked.take() {
            response = revoked.wrap_response(response);
        }
        if let Some(refusal) = self.body_watch.as_ref().and_then(|(fate, limit)| fate.refusal(*limit)) {
            response = refusal.response();
        }
        if let Some(origin) = &self.page_origin {
            add_cors_headers(&mut response, origin);
        }
        Poll::Ready(Ok(response))
    }
}
