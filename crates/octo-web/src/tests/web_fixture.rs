//! A real hub with a native toolbox and a fake upstream, and helpers to call it.

use super::fake_upstream::FakeUpstream;
use super::test_stores::{NoJq, NullResultStore, RecordingAuditLog};
use crate::{EdgeSettings, RestConfig, TokenSettings, Tokens, edge, rest_router, token_fingerprint};
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use octo_hub::jq_eval::JqRunner;
use octo_hub::{Hub, HubConfig, PolicySettings, Profile, ProfileSettings, ResultLimits};
use octo_model::{Effect, ToolError};
use octo_ports::AuditLog;
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
pub struct EchoInput {
    /// What to say.
    text: String,
    /// How often.
    #[serde(default = "default_times")]
    times: usize,
}

fn default_times() -> usize {
    1
}

#[derive(Serialize, JsonSchema)]
pub struct EchoOutput {
    /// What was said.
    lines: Vec<String>,
}

struct Echo;

impl Tool for Echo {
    const NAME: &'static str = "echo";
    const TITLE: &'static str = "Echo";
    const EFFECT: Effect = Effect::reads();
    type Input = EchoInput;
    type Output = EchoOutput;
    type Grants = ();

    fn examples() -> Vec<Example> {
        Vec::new()
    }

    async fn run(&self, input: EchoInput, _: (), _: &CallContext) -> Result<EchoOutput, ToolError> {
        Ok(EchoOutput { lines: vec![input.text; input.times] })
    }
}

/// Everything that a test may inspect.
pub struct WebFixture {
    pub hub: Arc<Hub>,
    pub audit_log: Arc<RecordingAuditLog>,
    pub upstream: Arc<FakeUpstream>,
}

impl WebFixture {
    pub fn new() -> Self {
        Self::with(PolicySettings::default(), None)
    }

    pub fn with(policy: PolicySettings, other_log: Option<Arc<dyn AuditLog>>) -> Self {
        let (audit_log, upstream) = (Arc::new(RecordingAuditLog::default()), FakeUpstream::new());
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
            rate_buckets: None,
            cache: Vec::new(),
            result_limits: ResultLimits { max_bytes: 2_000, ..ResultLimits::default() },
            timeout: Duration::from_secs(20),
            audit_log: other_log.unwrap_or_else(|| Arc::clone(&audit_log) as Arc<dyn AuditLog>),
            result_store: Arc::new(NullResultStore),
            jq: JqRunner::new(Arc::new(NoJq)),
            code_child: None,
            tracer: None,
            remedy_text: |_| String::new(),
        };
        Self { hub: Hub::new(parts).unwrap(), audit_log, upstream }
    }

    /// The REST frontend without its edge.
    pub fn rest(&self, secured: bool) -> Router {
        rest_router(RestConfig {
            hub: Arc::clone(&self.hub),
            metrics: Arc::new(|| "octoprox_up 1\n".to_owned()),
            probe: Arc::new(crate::NoProbe),
            tokens: if secured { tokens() } else { Tokens::none() },
        })
    }

    /// The admin API behind its edge.
    pub fn admin(&self, secured: bool) -> Router {
        let tokens = if secured { tokens() } else { Tokens::none() };
        let parts = crate::AdminConfig {
            hub: Arc::clone(&self.hub),
            logins: Arc::new(FakeLogins),
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

    /// Requires [`TOKEN`].
    pub fn secured(&self) -> Router {
        edge(self.rest(true), EdgeSettings { tokens: tokens(), ..EdgeSettings::default() })
    }
}

pub fn tokens() -> Tokens {
    let ann = TokenSettings {
        name: "ann".to_owned(),
        sha256: token_fingerprint(TOKEN),
        tenant: "acme".to_owned(),
        scopes: vec!["reports".to_owned()],
        expires: None,
    };
    Tokens::new(&[ann]).unwrap()
}

/// A received response.
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// A request with a valid host.
pub fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header("host", "127.0.0.1:7000")
}

/// On a connection of the hub's own user, unless the request sets its owner.
pub async fn send(router: &Router, mut request: Request<Body>) -> TestResponse {
    request.extensions_mut().get_or_insert(crate::PeerOwner::OwnUser);
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    TestResponse { status: parts.status, headers: parts.headers, text }
}

pub async fn get(router: &Router, path: &str) -> TestResponse {
    send(router, request("GET", path).body(Body::empty()).unwrap()).await
}

pub async fn post(router: &Router, path: &str, body: impl Into<Body>) -> TestResponse {
    send(router, request("POST", path).header("content-type", "application/json").body(body.into()).unwrap())
        .await
}

/// A body of unknown length, in pieces; never finished if it is silent at the end.
pub struct ChunkedBody {
    pub remaining: Vec<u8>,
    pub stalls: bool,
}

impl http_body::Body for ChunkedBody {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        if self.remaining.is_empty() {
            return if self.stalls { std::task::Poll::Pending } else { std::task::Poll::Ready(None) };
        }
        let size = self.remaining.len().min(64);
        let piece: Vec<u8> = self.remaining.drain(..size).collect();
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(piece.into()))))
    }
}

/// One login at `notes`, at the page `page`; the cookie identifies the browser.
struct FakeLogins;

const COOKIE: &str = "login=proof";

impl crate::BrowserLogins for FakeLogins {
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

    fn begin_in_browser(&self, id: &str, _: &str) -> Result<crate::LoginRedirect, ToolError> {
        self.confirmation(id)?;
        let url = "https://login.example/authorize".to_owned();
        Ok(crate::LoginRedirect { url, set_cookie: COOKIE.to_owned() })
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
