//! A login before a person is asked: with which flow, as which client, for which scopes.

use crate::authorization_code::{LoginFlow, LoginFlowKind};
use crate::discovery::Discovery;
use crate::issuer::Issuer;
use crate::login_spec::{Flow, OAuth};
use crate::oauth_client::OAuthClient;
use octo_model::{Principal, ToolError};

const MAX_SCOPES: usize = 128;

/// What is known before a person is asked.
pub(crate) struct LoginPlan {
    pub(crate) by: Principal,
    pub(crate) url: String,
    pub(crate) discovery: Discovery,
    pub(crate) client: OAuthClient,
    pub(crate) scopes: Vec<String>,
}

impl LoginPlan {
    pub(crate) fn into_pending(self, way: LoginFlowKind) -> LoginFlow {
        LoginFlow {
            by: self.by,
            url: self.url,
            issuer: self.discovery.issuer,
            client: self.client,
            scopes: self.scopes,
            resource: self.discovery.resource,
            way,
        }
    }
}

/// What is asked for: what the server demands, else what the settings or its metadata say; what was given before stays, and
/// so does the leave to renew.
pub(crate) fn requested_scopes(
    found: &Discovery,
    oauth: &OAuth,
    demanded: Vec<String>,
    had: Vec<String>,
) -> Vec<String> {
    let usual = if oauth.scopes.is_empty() { &found.scopes } else { &oauth.scopes };
    let usual = if demanded.is_empty() || !oauth.scopes.is_empty() { usual.as_slice() } else { &[] };
    let later = found.issuer.supports_scope("offline_access").then(|| "offline_access".to_owned());
    let mut all: Vec<String> = Vec::new();
    for scope in had.into_iter().chain(demanded).chain(usual.iter().cloned()).chain(later) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    all.truncate(MAX_SCOPES);
    all
}

/// The way that the settings want and the server has.
pub(crate) fn choose_flow(wanted: Flow, issuer: &Issuer) -> Result<Flow, ToolError> {
    let none = |what: &str| {
        ToolError::unavailable(format!("The authorization server has no way to log in {what}."))
            .hint("Set `flow` in the server's `auth` to another one, or ask the server's operator.")
    };
    match wanted {
        Flow::Device if issuer.supports_device() => Ok(Flow::Device),
        Flow::Device => Err(none("with a code")),
        Flow::Auto if !issuer.supports_code() && issuer.supports_device() => Ok(Flow::Device),
        Flow::Auto | Flow::Browser if !issuer.supports_code() => Err(none("with a browser")),
        Flow::Auto | Flow::Browser if !issuer.supports_pkce() => Err(ToolError::denied(
            "The authorization server does not protect codes with S256, so no login is begun.",
        )
        .hint("Its operator must offer PKCE and say so in its metadata.")),
        Flow::Auto | Flow::Browser => Ok(Flow::Browser),
    }
}
