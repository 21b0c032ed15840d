//! Admin API: upstream servers and their logins. Each request is a call of one of the hub's own tools, so policy,
//! limits and audit apply as usual.

mod admin_openapi;
mod html_page;
mod login_callback;
mod login_page;

use crate::edge::Tokens;
use crate::error_response::{error_response, json_response};
use crate::rest::{CallRequest, CallTarget, CallerView, call_reply};
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, header};
use octo_hub::{CallOutcome, Hub, Request};
use octo_model::{Caller, Frontend, Json, JsonObject, Kind, Operation, ToolError};
use octo_toolkit::BoxFuture;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const LIST: &str = "servers_list";
const CONNECT: &str = "server_connect";
const DISCONNECT: &str = "server_disconnect";
const LOGIN: &str = "server_login";
const STATUS: &str = "server_login_status";
const LOGOUT: &str = "server_logout";

/// Browser logins that start here and return here.
pub trait BrowserLogins: Send + Sync {
    /// Content of the start page with this id.
    fn confirmation(&self, id: &str) -> Result<LoginConfirmation, ToolError>;

    /// Binds the login of that page to the browser that sends these cookies.
    fn begin_in_browser(&self, id: &str, cookies: &str) -> Result<LoginRedirect, ToolError>;

    /// Completes a login of the local person with the query of the callback; returns the name of the server.
    fn finish(&self, query: String) -> BoxFuture<'_, Result<String, ToolError>>;

    /// Completes the login that the browser with these cookies started; `None` if it started none.
    fn finish_in_browser(
        &self,
        query: String,
        cookies: String,
    ) -> BoxFuture<'_, Result<Option<String>, ToolError>>;
}

/// A requested login.
pub struct LoginConfirmation {
    pub server: String,
    pub caller: String,
    pub is_shared: bool,
    pub code_host: String,
}

/// Redirect of a browser to log in, with its cookie.
pub struct LoginRedirect {
    pub url: String,
    pub set_cookie: String,
}

/// All cookies of a request.
fn cookies(headers: &HeaderMap) -> String {
    let sent: Vec<&str> =
        headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    sent.join("; ")
}

/// Configuration of the admin API.
pub struct AdminConfig {
    pub hub: Arc<Hub>,
    pub logins: Arc<dyn BrowserLogins>,
    /// Tokens of the edge. A browser has none, so if they are required it must be the one that started the login.
    pub tokens: Tokens,
}

struct AdminState {
    hub: Arc<Hub>,
    logins: Arc<dyn BrowserLogins>,
    tokens: Tokens,
}

/// Routes, to be placed behind [`crate::edge`] with [`crate::ADMIN_ROUTES`].
pub fn admin(parts: AdminConfig) -> Router {
    let AdminConfig { hub, logins, tokens } = parts;
    Router::new()
        .route("/servers", get(list_servers))
        .route("/servers/{id}", get(|state, ask| run_tool(state, ask, LIST)))
        .route("/servers/{id}/connect", post(|state, ask| run_tool(state, ask, CONNECT)))
        .route("/servers/{id}/disconnect", post(|state, ask| run_tool(state, ask, DISCONNECT)))
        .route("/servers/{id}/auth/start", post(|state, ask| run_tool(state, ask, LOGIN)))
        .route("/servers/{id}/auth/status", get(|state, ask| run_tool(state, ask, STATUS)))
        .route("/servers/{id}/auth/complete", post(complete_login))
        .route("/servers/{id}/auth/logout", post(|state, ask| run_tool(state, ask, LOGOUT)))
        .route("/auth/start/{id}", get(login_page::confirm_login).post(login_page::begin_login))
        .route("/auth/callback", get(login_callback::callback_page))
        .route("/openapi.json", get(openapi_document))
        .route("/health", get(crate::rest::health))
        .with_state(Arc::new(AdminState { hub, logins, tokens }))
}

type SharedAdmin = State<Arc<AdminState>>;

/// A hub without servers does not list the tools about them, so the list is empty.
async fn list_servers(State(admin): SharedAdmin, look: CallerView) -> Response {
    let called = admin.call(look.caller, LIST, JsonObject::new()).await;
    match &called.outcome {
        Err(error) if error.kind == Kind::NotFound => json_response(
            JsonObject::new()
                .with("success", true)
                .with("result", no_servers())
                .with("error", Json::null())
                .into(),
        ),
        _ => tool_reply(&called, LIST),
    }
}

fn no_servers() -> Json {
    JsonObject::new().with("servers", Json::array(&[] as &[Json])).into()
}

async fn run_tool(State(admin): SharedAdmin, ask: CallRequest, tool: &'static str) -> Response {
    if !ask.arguments.members().is_ok_and(|arguments| arguments.iter().next().is_none()) {
        return error_response(&ToolError::invalid("This takes no arguments.").hint("Omit the body."));
    }
    let arguments = JsonObject::new().with("server", ask.name.as_str());
    tool_reply(&admin.call(ask.view.caller, tool, arguments).await, tool)
}

/// `{"answer": …}`: the last URL of the browser, the code alone, or an API key.
async fn complete_login(State(admin): SharedAdmin, ask: CallRequest) -> Response {
    let given = ask.arguments.members().ok().filter(|given| given.iter().count() == 1);
    let Some(answer) = given.and_then(|given| given.text("answer").or_else(|| given.text("code"))) else {
        return error_response(
            &ToolError::invalid("The body has no answer.")
                .hint("Send {\"answer\": \"…\"}: the last URL of the browser, the code, or the API key."),
        );
    };
    let arguments = JsonObject::new().with("server", ask.name.as_str()).with("answer", answer.as_str());
    tool_reply(&admin.call(ask.view.caller, LOGIN, arguments).await, LOGIN)
}

async fn openapi_document(State(admin): SharedAdmin, look: CallerView) -> Response {
    drop(look);
    json_response(admin_openapi::document(&admin.hub, admin.tokens.are_required()).into())
}

fn tool_reply(called: &CallOutcome, tool: &'static str) -> Response {
    call_reply(called, CallTarget { member: "tool", name: tool, server: Some("servers"), typed: true })
}

impl AdminState {
    /// Runs a call. A client that disconnects drops this future, and with it the call.
    async fn call(&self, caller: Arc<Caller>, tool: &str, arguments: JsonObject) -> CallOutcome {
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let request = Request {
            cancel,
            ..Request::new(Operation::tool(tool, arguments.into()), caller, Frontend::Admin)
        };
        self.hub.call(request).await
    }
}
