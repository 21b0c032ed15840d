//! Preparation of a login: flow, client and scopes.

use crate::authorization_code::{LoginFlow, LoginFlowKind};
use crate::discovery::Discovery;
use crate::issuer::Issuer;
use crate::login_spec::{Flow, OAuth};
use crate::oauth_client::OAuthClient;
use octo_model::{Principal, ToolError};

const MAX_SCOPES: usize = 128;

/// What is known before a person is prompted.
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

/// Scopes to request: those that the server demands, otherwise those of the settings or its metadata; plus those
/// granted before, and `offline_access` if supported.
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

/// Flow that the settings permit and the server supports.
pub(crate) fn choose_flow(wanted: Flow, issuer: &Issuer) -> Result<Flow, ToolError> {
    let none = |what: &str| {
        ToolError::unavailable(format!("The authorization server does not support logging in {what}."))
            .hint("Set another `flow` in the server's `auth`, or ask the server's operator.")
    };
    match wanted {
        Flow::Device if issuer.supports_device() => Ok(Flow::Device),
        Flow::Device => Err(none("with a code")),
        Flow::Auto if !issuer.supports_code() && issuer.supports_device() => Ok(Flow::Device),
        Flow::Auto | Flow::Browser if !issuer.supports_code() => Err(none("with a browser")),
        Flow::Auto | Flow::Browser if !issuer.supports_pkce() => Err(ToolError::denied(
            "The authorization server does not support PKCE with S256, so no login was started.",
        )
        .hint("Its operator must support PKCE and declare it in the metadata.")),
        Flow::Auto | Flow::Browser => Ok(Flow::Browser),
    }
}
