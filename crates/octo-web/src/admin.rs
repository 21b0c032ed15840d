//! The admin API: the servers behind the hub and the logins there. Each request is a call of one of the hub's own tools, so that
//! policy, limits and audit hold for it as for any other.

mod callback;
mod login_page;
mod openapi;
mod page;

use crate::edge::Tokens;
use crate::fault::{failure, json};
use crate::rest::{Ask, Look, Target, reply};
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, header};
use octo_hub::{CallOutcome, Hub, Request};
use octo_model::{Caller, Frontend, Json, JsonObject, Kind, Operation, ToolError};
use octo_toolkit::{BoxFuture, NoPeer, Peer};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const LIST: &str = "servers_list";
const CONNECT: &str = "server_connect";
const DISCONNECT: &str = "server_disconnect";
const LOGIN: &str = "server_login";
const STATUS: &str = "server_login_status";
const LOGOUT: &str = "server_logout";

/// The logins that browsers begin here and come back from.
pub trait BrowserLogins: Send + Sync {
    /// What a person reads on the page with this id.
    fn confirmation(&self, id: &str) -> Result<LoginConfirmation, ToolError>;

    /// Binds the login of that page to the browser that sends these cookies.
    fn depart(&self, id: &str, cookies: &str) -> Result<LoginDeparture, ToolError>;

    /// Finishes a login of the person at this machine with the part of the address behind `?`; the name of the server.
    fn finish(&self, query: String) -> BoxFuture<'_, Result<String, ToolError>>;

    /// Finishes the login that the browser with these cookies began; nothing when it began none.
    fn finish_in_browser(
        &self,
        query: String,
        cookies: String,
    ) -> BoxFuture<'_, Result<Option<String>, ToolError>>;
}

/// A login that somebody asked for.
pub struct LoginConfirmation {
    pub server: String,
    pub caller: String,
    pub is_shared: bool,
    pub code_host: String,
}

/// Where a browser goes to log in, and the cookie that it takes along.
pub struct LoginDeparture {
    pub url: String,
    pub set_cookie: String,
}

/// All cookies of a request.
fn cookies(headers: &HeaderMap) -> String {
    let sent: Vec<&str> =
        headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    sent.join("; ")
}

/// What the admin API is made of.
pub struct AdminParts {
    pub hub: Arc<Hub>,
    pub logins: Arc<dyn BrowserLogins>,
    /// Those of the edge. A browser has none, so that where they are required it must be the one that began a login.
    pub tokens: Tokens,
}

struct Admin {
    hub: Arc<Hub>,
    logins: Arc<dyn BrowserLogins>,
    tokens: Tokens,
    nobody: Arc<dyn Peer>,
}

/// The routes, to be put behind [`crate::edge`] with [`crate::ADMIN_ROUTES`].
pub fn admin(parts: AdminParts) -> Router {
    let AdminParts { hub, logins, tokens } = parts;
    Router::new()
        .route("/servers", get(list))
        .route("/servers/{id}", get(|state, ask| run(state, ask, LIST)))
        .route("/servers/{id}/connect", post(|state, ask| run(state, ask, CONNECT)))
        .route("/servers/{id}/disconnect", post(|state, ask| run(state, ask, DISCONNECT)))
        .route("/servers/{id}/auth/start", post(|state, ask| run(state, ask, LOGIN)))
        .route("/servers/{id}/auth/status", get(|state, ask| run(state, ask, STATUS)))
        .route("/servers/{id}/auth/complete", post(complete))
        .route("/servers/{id}/auth/logout", post(|state, ask| run(state, ask, LOGOUT)))
        .route("/auth/start/{id}", get(login_page::page).post(login_page::leave))
        .route("/auth/callback", get(callback::page))
        .route("/openapi.json", get(document))
        .route("/health", get(crate::rest::health))
        .with_state(Arc::new(Admin { hub, logins, tokens, nobody: Arc::new(NoPeer) }))
}

type Shared = State<Arc<Admin>>;

/// A hub without servers does not list the tools about them, and has nothing to tell.
async fn list(State(admin): Shared, look: Look) -> Response {
    let called = admin.call(look.caller, LIST, JsonObject::new()).await;
    match &called.outcome {
        Err(error) if error.kind == Kind::NotFound => json(
            JsonObject::new().with("success", true).with("result", none()).with("error", Json::null()).into(),
        ),
        _ => told(&called, LIST),
    }
}

fn none() -> Json {
    JsonObject::new().with("servers", Json::array(&[] as &[Json])).into()
}

async fn run(State(admin): Shared, ask: Ask, tool: &'static str) -> Response {
    if !ask.arguments.members().is_ok_and(|arguments| arguments.iter().next().is_none()) {
        return failure(&ToolError::invalid("This takes no arguments.").hint("Leave the body out."));
    }
    let arguments = JsonObject::new().with("server", ask.name.as_str());
    told(&admin.call(ask.look.caller, tool, arguments).await, tool)
}

/// `{"answer": …}`: the last address of the browser, the code alone, or an API key.
async fn complete(State(admin): Shared, ask: Ask) -> Response {
    let given = ask.arguments.members().ok().filter(|given| given.iter().count() == 1);
    let Some(answer) = given.and_then(|given| given.text("answer").or_else(|| given.text("code"))) else {
        return failure(
            &ToolError::invalid("There is no answer in the body.")
                .hint("Send {\"answer\": \"…\"}: the last address of the browser, the code, or the API key."),
        );
    };
    let arguments = JsonObject::new().with("server", ask.name.as_str()).with("answer", answer.as_str());
    told(&admin.call(ask.look.caller, LOGIN, arguments).await, LOGIN)
}

async fn document(State(admin): Shared, look: Look) -> Response {
    drop(look);
    json(openapi::document(&admin.hub, admin.tokens.are_required()).into())
}

fn told(called: &CallOutcome, tool: &'static str) -> Response {
    reply(called, Target { member: "tool", name: tool, server: Some("servers"), typed: true })
}

impl Admin {
    /// A client that goes away drops this future, and with it the call.
    async fn call(&self, caller: Arc<Caller>, tool: &str, arguments: JsonObject) -> CallOutcome {
        let cancel = CancellationToken::new();
        let _gone = cancel.clone().drop_guard();
        let request = Request {
            op: Operation::tool(tool, arguments.into()),
            caller,
            frontend: Frontend::Admin,
            profile: String::new(),
            peer: Arc::clone(&self.nobody),
            cancel,
            timeout: None,
            trace: None,
        };
        self.hub.call(request).await
    }
}
