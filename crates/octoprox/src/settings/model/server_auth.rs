//! Authentication at an upstream server.

use octo_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Authentication at an upstream server: a login or an API key. Tokens are in the credential store, never in the
/// settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerAuth {
    /// Authentication method. `oauth2-pkce`: OAuth login in a browser. `device-code`: login with a code on another
    /// device. `api-key`: a fixed key. `none`: no authentication.
    #[serde(rename = "type")]
    pub kind: AuthKind,
    /// Environment variable that contains the key. A program receives it under the same name; for a URL it is sent as
    /// `header` or `query` specify.
    #[serde(default)]
    pub env: Option<String>,
    /// Header that carries the key, without a prefix. If neither `header` nor `query` is set, the key is sent as a
    /// bearer token.
    #[serde(default)]
    pub header: Option<String>,
    /// Query parameter that carries the key, for services that do not accept a header.
    #[serde(default)]
    pub query: Option<String>,
    /// OAuth client ID, if you registered a client yourself. Otherwise the hub registers one.
    #[serde(default)]
    pub client_id: Option<String>,
    /// OAuth client secret. It is sent only to `issuer`, which is then required.
    #[serde(default)]
    pub client_secret: Option<Secret>,
    /// URL of the authorization server. Required if the service does not publish it, if its address is private, if its
    /// endpoints are on another site, or if `client_secret` is set.
    #[serde(default)]
    pub issuer: Option<String>,
    /// OAuth scopes to request. Default: the scopes that the service publishes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Additional parameters of the authorization request, such as `access_type: offline` for Google. Parameters that
    /// the hub sets itself are rejected.
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    /// Use one login for all callers. If false, each caller logs in.
    #[serde(default)]
    pub shared: bool,
}

/// Authentication methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(extend("enum" = ["none", "oauth2-pkce", "oauth2", "device-code", "api-key"]))]
pub enum AuthKind {
    None,
    #[serde(rename = "oauth2-pkce", alias = "oauth2")]
    Oauth,
    DeviceCode,
    ApiKey,
}

impl ServerAuth {
    /// Returns whether someone must log in before the server can be used.
    pub fn is_login(&self) -> bool {
        matches!(self.kind, AuthKind::Oauth | AuthKind::DeviceCode)
    }
}
