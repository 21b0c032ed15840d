//! How the hub proves who it is at a server behind it.

use octo_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A login at a server, or a key for it. Tokens of logins are kept by the hub and never stand here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerAuth {
    /// The way: `oauth2-pkce` is a login in any browser, `device-code` one by a code on another device, `api-key` a key that you
    /// have, `none` nothing at all.
    #[serde(rename = "type")]
    pub kind: AuthKind,
    /// Variable that holds the key. A program gets it under the same name, an address in a header.
    #[serde(default)]
    pub env: Option<String>,
    /// Header that carries the key as it is. Without it and without `query` the key is a bearer token.
    #[serde(default)]
    pub header: Option<String>,
    /// Parameter of the address that carries the key, for services that know no header.
    #[serde(default)]
    pub query: Option<String>,
    /// Client that was registered with the service by hand; without it the hub registers itself.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Secret of that client, when it has one. It is sent only to `issuer`, which must be set as well.
    #[serde(default)]
    pub client_secret: Option<Secret>,
    /// Authorization server. Set it where the service does not name it, where it is private, where its endpoints lie on another
    /// site, and beside `client_secret`.
    #[serde(default)]
    pub issuer: Option<String>,
    /// What is asked for in the login; what the service names when it is empty.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Parameters that are added to the authorization request, such as `access_type: offline` for Google. Those that the hub sets
    /// itself cannot be given.
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    /// Whether one login serves everybody who calls; otherwise each person logs in.
    #[serde(default)]
    pub shared: bool,
}

/// The ways to prove it.
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
    /// Whether a person has to log in before the server can be used.
    pub fn is_login(&self) -> bool {
        matches!(self.kind, AuthKind::Oauth | AuthKind::DeviceCode)
    }
}
