//! A real hub with a native toolbox and a made-up upstream, and ways to ask it.

use super::ports::{Book, NoJq, Shelf};
use super::upstream::Upstream;
use crate::{EdgeSettings, RestParts, TokenSettings, Tokens, edge, fingerprint, router};
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use octo_hub::jq_eval::JqRunner;
use octo_hub::{AuditLog, Hub, HubConfig, PolicySettings, Profile, ProfileSettings, ResultLimits};
use octo_model::{Effect, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Capabilities, Example, Source, Tool, Toolbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

pub const TOKEN: &str = "correct-horse";

/// Says the text again, so often.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// What to say.
    text: String,
    /// How often.
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

#[derive(Serialize, JsonSchema)]
pub struct Echoed {
    /// What was said.
    lines: Vec<String>,
}

struct Echo;

impl Tool for Echo {
    const NAME: &'static str = "echo";
    const TITLE: &'static str = "Echo";
    const EFFECT: Effect = Effect::reads();
    type Input = Said;
    type Output = Echoed;
    type Grants = ();

    fn examples() -> Vec<Example> {
        Vec::new()
    }

    async fn run(&self, input: Said, _: (), _: &CallContext) -> Result<Echoed, ToolError> {
        Ok(Echoed { lines: vec![input.text; input.times] })
    }
}

/// Everything that a test may want to look at.
pub struct Bed {
    pub hub: Arc<Hub>,
    pub book: Arc<Book>,
    pub upstream: Arc<Upstream>,
}

impl Bed {
    pub fn new() -> Self {
        Self::with(PolicySettings::default(), None)
    }

    pub fn with(policy: PolicySettings, ledger: Option<Arc<dyn AuditLog>>) -> Self {
        let (book, upstream) = (Arc::new(Book::default()), Upstream::new());
        let toolbox = Toolbox::new("demo", "For tests.")
            .with(Echo)
            .into_source(Capabilities::default(), octo_toolkit::SourceState::Ready);
        let small = ProfileSettings { tools: vec!["echo".to_owned()], ..ProfileSettings::default() };
        let bare = ProfileSettings {
            servers: vec!["up".to_owned()],
            without_prefix: true,
            ..ProfileSettings::default()
        };
        let parts = HubConfig {
            sources: vec![toolbox, Arc::clone(&upstream) as Arc<dyn Source>],
            profiles: vec![Profile::new("small", &small).unwrap(), Profile::new("bare", &bare).unwrap()],
            policy,
            limits: Vec::new(),
            cache: Vec::new(),
            shape: ResultLimits { max_bytes: 2_000, ..ResultLimits::default() },
            timeout: Duration::from_secs(20),
            ledger: ledger.unwrap_or_else(|| Arc::clone(&book) as Arc<dyn AuditLog>),
            spills: Arc::new(Shelf),
            jq: JqRunner::new(Arc::new(NoJq)),
            tracer: None,
        };
        Self { hub: Hub::new(parts).unwrap(), book, upstream }
    }

    /// The REST face without its edge.
    pub fn rest(&self, secured: bool) -> Router {
        router(RestParts {
            hub: Arc::clone(&self.hub),
            metrics: Arc::new(|| "octoprox_up 1\n".to_owned()),
            probe: Arc::new(crate::NoProbe),
            tokens: if secured { tokens() } else { Tokens::none() },
        })
    }

    /// The admin API behind its edge.
    pub fn admin(&self, secured: bool) -> Router {
        let tokens = if secured { tokens() } else { Tokens::none() };
        let parts = crate::AdminParts {
            hub: Arc::clone(&self.hub),
            logins: Arc::new(NotesLogin),
            tokens: tokens.clone(),
        };
        edge(
            crate::admin(parts),
            EdgeSettings { tokens, routes: crate::ADMIN_ROUTES, ..EdgeSettings::default() },
        )
    }

    /// Open to this machine, as after a fresh install on loopback.
    pub fn local(&self) -> Router {
        edge(self.rest(false), EdgeSettings { max_body_bytes: 1_000_000, ..EdgeSettings::default() })
    }

    /// Wants [`TOKEN`].
    pub fn secured(&self) -> Router {
        edge(self.rest(true), EdgeSettings { tokens: tokens(), ..EdgeSettings::default() })
    }
}

pub fn tokens() -> Tokens {
    let ann = TokenSettings {
        name: "ann".to_owned(),
        sha256: fingerprint(TOKEN),
        tenant: "acme".to_owned(),
        scopes: vec!["reports".to_owned()],
        expires: None,
    };
    Tokens::new(&[ann]).unwrap()
}

/// What came back.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// A request with a good host.
pub fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header("host", "127.0.0.1:7000")
}

/// On a connection of the hub's own user, unless the request says whose it is.
pub async fn send(router: &Router, mut request: Request<Body>) -> Answer {
    request.extensions_mut().get_or_insert(crate::PeerOwner::OwnUser);
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Answer { status: parts.status, headers: parts.headers, text }
}

pub async fn get(router: &Router, path: &str) -> Answer {
    send(router, request("GET", path).body(Body::empty()).unwrap()).await
}

pub async fn post(router: &Router, path: &str, body: impl Into<Body>) -> Answer {
    send(router, request("POST", path).header("content-type", "application/json").body(body.into()).unwrap())
        .await
}

/// A body of unknown length, in pieces; one that is never finished when it is silent at the end.
pub struct Pieces {
    pub left: Vec<u8>,
    pub silent: bool,
}

impl http_body::Body for Pieces {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        if self.left.is_empty() {
            return if self.silent { std::task::Poll::Pending } else { std::task::Poll::Ready(None) };
        }
        let size = self.left.len().min(64);
        let piece: Vec<u8> = self.left.drain(..size).collect();
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(piece.into()))))
    }
}

/// One login at `notes`, at the page `page`; the cookie is the proof of the browser.
struct NotesLogin;

const COOKIE: &str = "login=proof";

impl crate::BrowserLogins for NotesLogin {
    fn confirmation(&self, id: &str) -> Result<crate::LoginConfirmation, ToolError> {
        if id != "page" {
            return Err(ToolError::not_found("No login waits at this address."));
        }
        Ok(crate::LoginConfirmation {
            server: "notes".to_owned(),
            caller: "<b>ann</b>".to_owned(),
            is_shared: false,
            code_host: "login.example".to_owned(),
        })
    }

    fn depart(&self, id: &str, _: &str) -> Result<crate::LoginDeparture, ToolError> {
        self.confirmation(id)?;
        let url = "https://login.example/authorize".to_owned();
        Ok(crate::LoginDeparture { url, set_cookie: COOKIE.to_owned() })
    }

    fn finish(&self, _: String) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async { Ok("notes".to_owned()) })
    }

    fn finish_in_browser(
        &self,
        _: String,
        cookies: String,
    ) -> BoxFuture<'_, Result<Option<String>, ToolError>> {
        Box::pin(async move { Ok((cookies == COOKIE).then(|| "notes".to_owned())) })
    }
}
