//! `server_logout`.

use crate::server_registry::Servers;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Ends the caller's login at a server: removes it here and revokes it at the authorization server. Prefer
/// server_disconnect to end a connection and stay logged in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the server in the settings.
    server: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Name of the server in the settings.
    server: String,
    /// Result: not_logged_in, deleted (here only), or revoked (at the authorization server as well).
    outcome: &'static str,
}

pub struct Logout;

impl Tool for Logout {
    const NAME: &'static str = "server_logout";
    const TITLE: &'static str = "Log out at a server";
    const KEYWORDS: &'static str = "sign out revoke account disconnect token";
    const REQUESTS: &'static [&'static str] = &[
        "sign me out of notion",
        "revoke the hub's access to my account",
        "remove my stored token for the integration",
        "stop the hub from acting for me at linear",
        "switch accounts: first give up the present authorisation",
        "withdraw the oauth grant",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![Example::new("Give up a login", json!({"server": "notion"}))]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<Output, ToolError> {
        servers.login_sharing(&input.server, &cx.caller)?;
        let outcome = servers.logins().logout(&cx.caller, &input.server).await?.as_str();
        Ok(Output { server: input.server, outcome })
    }
}
