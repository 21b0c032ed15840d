//! The edge of every listener: host, origin, token and size of a request, before any handler sees it.

mod body;
mod host;
mod origin;
mod refusal;
mod revocation;
mod token;

pub use token::{TokenFault, TokenSettings, Tokens, fingerprint};

use crate::fault::failure;
use crate::routes::{Access, ROUTES, Route, access};
use crate::serve::{Connection, PeerOwner};
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use body::{Bounded, Fate, SILENCE, linger};
use host::Hosts;
use http::{HeaderMap, HeaderValue, Method, header};
use octo_model::{Caller, ToolError};
use origin::{Origins, is_preflight, permit, preflight};
use refusal::Refusal;
use revocation::Revocation;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use token::{NoEntry, TokenHolder};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

/// What a listener lets in.
#[derive(Clone)]
pub struct EdgeSettings {
    /// Names under which the hub is reached, with a port or, for any port, without.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may speak to the hub, besides its own.
    pub allowed_origins: Vec<String>,
    /// Bytes that the body of a request may have.
    pub max_body_bytes: usize,
    pub tokens: Tokens,
    /// The port's routes; all others are refused.
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

/// Puts the edge around a router. Without tokens it lets in only what [`crate::serve`] has found to come from the hub's own
/// user. Handlers find an `Extension<Arc<Caller>>` on every request, except on
/// open routes that were asked without a token. Routes that are not in the port's table are refused.
pub fn edge(router: Router, settings: EdgeSettings) -> Router {
    let rules = Rules {
        hosts: Hosts::new(&settings.allowed_hosts),
        origins: Origins::new(&settings.allowed_origins),
        limit: settings.max_body_bytes,
        tokens: settings.tokens,
        routes: settings.routes,
        local: Arc::new(Caller::local()),
    };
    router.fallback(nothing_here).method_not_allowed_fallback(wrong_method).layer(Edge(Arc::new(rules)))
}

async fn nothing_here() -> Response {
    Refusal::Unlisted.response()
}

async fn wrong_method(method: Method) -> Response {
    let error =
        ToolError::invalid(format!("This path has no {method}.")).hint("The header Allow names what it has.");
    let mut response = failure(&error);
    *response.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
    response
}

struct Rules {
    hosts: Hosts,
    origins: Origins,
    limit: usize,
    tokens: Tokens,
    routes: &'static [Route],
    /// Who everyone is when there are no tokens.
    local: Arc<Caller>,
}

impl Rules {
    /// The page that sent the request, if one did.
    fn page(&self, request: &Request) -> Result<Option<HeaderValue>, Refusal> {
        // Without tokens everyone is the local caller, so only the hub's own user may be there.
        if !self.tokens.are_required() && request.extensions().get() != Some(&PeerOwner::OwnUser) {
            return Err(Refusal::OtherUser);
        }
        let host = self.hosts.of(request).ok_or(Refusal::Host)?;
        self.origins.of(request.headers(), host, &self.hosts).map_err(|_| Refusal::Origin)
    }

    /// Marks the request with its caller and bounds its body.
    fn admit(&self, request: &mut Request) -> Result<Admission, Refusal> {
        let mut revoked = None;
        if let Some(TokenHolder { caller, revoked: ends }) = self.caller(request)? {
            let connection = request.extensions().get::<Arc<Connection>>();
            if connection.is_some_and(|connection| !connection.prove(&caller)) {
                return Err(Refusal::TooManyConnections);
            }
            request.extensions_mut().insert(caller);
            revoked = Some(ends);
        }
        Ok(Admission { fate: self.bound(request)?, revoked })
    }

    fn caller(&self, request: &Request) -> Result<Option<TokenHolder>, Refusal> {
        let matched = request.extensions().get::<MatchedPath>();
        let access = match matched {
            Some(path) => access(self.routes, request.method(), path.as_str()).ok_or(Refusal::Unlisted)?,
            None => Access::Caller,
        };
        if let Some(accepted) = self.tokens.open_to(&self.local) {
            return Ok(Some(accepted));
        }
        match (self.tokens.caller(request.headers()), access) {
            (Ok(accepted), Access::Admin) if !accepted.caller.is_admin() => Err(Refusal::NotAdmin),
            (Ok(accepted), _) => Ok(Some(accepted)),
            (Err(_), Access::Open) => Ok(None),
            (Err(why), Access::Caller | Access::Admin) => Err(Refusal::NoEntry(why)),
        }
    }

    fn bound(&self, request: &mut Request) -> Result<Option<Fate>, Refusal> {
        let hint = http_body::Body::size_hint(request.body());
        if has_two_lengths(request.headers()) {
            return Err(Refusal::TwoLengths);
        }
        if hint.lower() > self.limit as u64 {
            return Err(Refusal::TooLarge { limit: self.limit });
        }
        if http_body::Body::is_end_stream(request.body()) {
            return Ok(None);
        }
        let (body, fate) = Bounded::new(std::mem::take(request.body_mut()), self.limit, SILENCE);
        *request.body_mut() = Body::new(body);
        axum::extract::DefaultBodyLimit::disable().apply(request);
        Ok(Some(fate))
    }
}

/// A request that was let in.
struct Admission {
    fate: Option<Fate>,
    /// Ends it when its token is taken away.
    revoked: Option<CancellationToken>,
}

/// Proxies disagree about which of the two counts.
fn has_two_lengths(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH)
}

#[derive(Clone)]
struct Edge(Arc<Rules>);

impl<S> Layer<S> for Edge {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, rules: Arc::clone(&self.0) }
    }
}

#[derive(Clone)]
struct Guarded<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Unpin,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Passage<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let page = match self.rules.page(&request) {
            Ok(page) => page,
            Err(refusal) => return refuse(refusal, None, request),
        };
        if let Some(origin) = page.as_ref().filter(|_| is_preflight(&request)) {
            return Passage::answered(preflight(origin, request.headers()));
        }
        match self.rules.admit(&mut request) {
            Ok(Admission { fate, revoked }) => {
                let watch = fate.map(|fate| (fate, self.rules.limit));
                let revoked = revoked.map(Revocation::new);
                Passage { step: Step::Inside(self.inner.call(request)), page, watch, revoked }
            }
            Err(refusal) => refuse(refusal, page, request),
        }
    }
}

fn refuse<F>(refusal: Refusal, page: Option<HeaderValue>, request: Request) -> Passage<F> {
    let mut response = refusal.response();
    if let Some(origin) = &page {
        permit(&mut response, origin);
    }
    if !request.headers().contains_key(header::EXPECT) {
        linger(request.into_body());
    }
    Passage::answered(response)
}

/// A request on its way through the edge and back.
struct Passage<F> {
    step: Step<F>,
    page: Option<HeaderValue>,
    watch: Option<(Fate, usize)>,
    revoked: Option<Revocation>,
}

enum Step<F> {
    Answered(Option<Box<Response>>),
    Inside(F),
}

impl<F> Passage<F> {
    fn answered(response: Response) -> Self {
        Self { step: Step::Answered(Some(Box::new(response))), page: None, watch: None, revoked: None }
    }
}

impl<F, E> Future for Passage<F>
where
    F: Future<Output = Result<Response, E>> + Unpin,
{
    type Output = Result<Response, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut response = match &mut this.step {
            Step::Inside(inside) => match Pin::new(inside).poll(cx)? {
                Poll::Ready(response) => response,
                Poll::Pending => {
                    let Some(revoked) = &mut this.revoked else { return Poll::Pending };
                    ready!(revoked.poll(cx));
                    // Dropping the request cancels its call.
                    this.step = Step::Answered(None);
                    Refusal::NoEntry(NoEntry::Unknown).response()
                }
            },
            Step::Answered(response) => return Poll::Ready(Ok(*response.take().unwrap_or_default())),
        };
        if let Some(revoked) = this.revoked.take() {
            response = revoked.bound(response);
        }
        if let Some(refusal) = self.watch.as_ref().and_then(|(fate, limit)| fate.refusal(*limit)) {
            response = refusal.response();
        }
        if let Some(origin) = &self.page {
            permit(&mut response, origin);
        }
        Poll::Ready(Ok(response))
    }
}
