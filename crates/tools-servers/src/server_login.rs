//! `server_login`.

use crate::server_registry::Servers;
use crate::server_views::LoginView;
use octo_model::{Frontend, Remedy};
use octo_oauth::LoginPrompt;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Starts a login at a server and returns the URL that a person opens, or completes one with the URL or code that they
/// paste back. Show the URL to the person; prefer server_login_status to learn whether they are done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the server in the settings.
    server: String,
    /// The last URL of the person's browser, or the code it shows, if the browser could not return to the hub.
    #[serde(default)]
    answer: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What the person does next: open_url, enter_code (at the URL), enter_api_key, or none.
    action: &'static str,
    /// URL that the person opens in a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// URL at the authorization server, for a browser that cannot open `url`: pass its last URL as `answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_url: Option<String>,
    /// The `state` of the authorization request, which the browser returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Code that the person enters there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_code: Option<String>,
    /// Seconds until it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<i64>,
    /// What to tell the person.
    message: String,
    /// Current state of the login.
    login: LoginView,
}

pub struct Login;

impl Tool for Login {
    const NAME: &'static str = "server_login";
    const TITLE: &'static str = "Log in at a server";
    const KEYWORDS: &'static str = "sign in authenticate OAuth authorize account connect";
    const REQUESTS: &'static [&'static str] = &[
        "sign me in to notion",
        "authorise the hub to use my google account",
        "give me the link to grant access to the linear integration",
        "i have the code from the browser, complete the sign-in",
        "the integration says unauthorised, start oauth",
        "renew an expired authorisation with more scopes",
        "enter an api key for the connected service",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Begin a login", json!({"server": "notion"})),
            Example::new(
                "Finish it with what the browser shows",
                json!({"server": "notion", "answer": "http://localhost:3100/auth/callback?code=c0de&state=st4te"}),
            ),
        ]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<Output, ToolError> {
        let name = &input.server;
        servers.login_sharing(name, &cx.caller)?;
        let mut output = match &input.answer {
            None => output_for(name, servers.logins().begin(&cx.caller, name).await?, cx),
            Some(answer) => {
                if servers.logins().takes_key(name)? && is_from_model(cx) {
                    return Err(ToolError::denied("API keys are not accepted in a conversation.")
                        .remedy(Remedy::EnterApiKey { server: name.clone() }));
                }
                servers.logins().complete(&cx.caller, name, answer).await?;
                Output::new("none", format!("The login at {name} is complete."))
            }
        };
        output.login = LoginView::of(&servers, name, &cx.caller).await?;
        Ok(output)
    }
}

/// MCP arguments are part of a model's context, where a permanent secret does not belong.
fn is_from_model(cx: &CallContext) -> bool {
    matches!(cx.frontend, Frontend::Stdio | Frontend::Http)
}

impl Output {
    fn new(action: &'static str, message: String) -> Self {
        let login = LoginView::default();
        Self {
            action,
            url: None,
            auth_url: None,
            state: None,
            user_code: None,
            expires_in: None,
            message,
            login,
        }
    }
}

fn output_for(name: &str, begun: LoginPrompt, cx: &CallContext) -> Output {
    match begun {
        LoginPrompt::Open { url, start, state, code_host, expires_in } => {
            let elsewhere = if start.is_some() { "open auth_url instead, and " } else { "" };
            Output {
                message: format!(
                    "Open the URL in a browser and agree; the login code then goes to {code_host}. If a page cannot be opened, {elsewhere}paste the last page's full URL as `answer` of server_login for {name}."
                ),
                url: Some(start.unwrap_or_else(|| url.clone())),
                auth_url: Some(url),
                state: Some(state),
                expires_in: Some(expires_in),
                ..Output::new("open_url", String::new())
            }
        }
        LoginPrompt::Enter { url, user_code, url_with_code, expires_in } => Output {
            message: format!("Open {url} on any device and enter the code {user_code}."),
            url: Some(url_with_code.unwrap_or(url)),
            user_code: Some(user_code),
            expires_in: Some(expires_in),
            ..Output::new("enter_code", String::new())
        },
        LoginPrompt::ApiKey => {
            let remedy = Remedy::EnterApiKey { server: name.to_owned() };
            Output::new("enter_api_key", cx.append_remedy(&format!("{name} needs an API key."), &remedy))
        }
    }
}
