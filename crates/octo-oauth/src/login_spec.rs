//! Login settings of one server, and the identity of the hub as an OAuth client.

use octo_grants::Net;
use octo_model::Caller;
use octo_model::Secret;
use octo_ports::Owner;
use std::collections::BTreeMap;

/// Owner and server of a login.
pub(crate) type LoginKey = (Owner, String);

/// Identity of the hub at authorization servers.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// Name on the consent page.
    pub name: String,
    /// Redirect URI of browsers: the hub's admin port, or a URL that leads there.
    pub redirect_uri: String,
    /// https URL at which [`Logins::metadata_document`](crate::Logins::metadata_document) is published, if any.
    pub metadata_url: Option<String>,
}

impl ClientIdentity {
    pub fn new(redirect: impl Into<String>) -> Self {
        Self { name: "Octoprox".to_owned(), redirect_uri: redirect.into(), metadata_url: None }
    }
}

/// Who shares a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginSharing {
    /// One login per caller.
    #[default]
    PerCaller,
    /// One login for all; only an administrator should be allowed to start it.
    Shared,
}

/// OAuth flow for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Browser, or device code if the server supports nothing else.
    #[default]
    Auto,
    Browser,
    Device,
}

/// OAuth 2.1. Unset values are discovered.
#[derive(Debug, Clone, Default)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Requested instead of the scopes in the server's metadata; scopes that the server demands are added.
    pub scopes: Vec<String>,
    /// Authorization server set by the operator; it may be private then.
    pub issuer: Option<String>,
    /// Additional parameters of the authorization request; see [`RESERVED_AUTHORIZE_PARAMS`].
    pub authorize_params: BTreeMap<String, String>,
    pub flow: Flow,
}

/// Parameters of the authorization request that only the hub sets: another value would change whose login it is or
/// weaken its protection.
pub const RESERVED_AUTHORIZE_PARAMS: &[&str] = &[
    "client_id",
    "client_secret",
    "code_challenge",
    "code_challenge_method",
    "nonce",
    "redirect_uri",
    "request",
    "request_uri",
    "resource",
    "response_mode",
    "response_type",
    "scope",
    "state",
];

/// Where an API key is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlacement {
    /// A header, with a prefix such as `Bearer `.
    Header {
        name: String,
        prefix: String,
    },
    Query(String),
    /// Environment variable of the server's program.
    Environment(String),
}

#[derive(Debug, Clone)]
pub enum Auth {
    OAuth(OAuth),
    Key(KeyPlacement),
}

/// Login settings of one server.
#[derive(Debug, Clone)]
pub struct LoginSpec {
    pub server: String,
    /// URL of the server; `None` for a program.
    pub url: Option<String>,
    pub auth: Auth,
    pub sharing: LoginSharing,
    /// Egress to authorization servers.
    pub net: Net,
}

impl LoginSpec {
    pub fn oauth(server: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            url: Some(url.into()),
            auth: Auth::OAuth(OAuth::default()),
            sharing: LoginSharing::default(),
            net: Net::default(),
        }
    }

    pub(crate) fn owner(&self, caller: &Caller) -> Owner {
        match self.sharing {
            LoginSharing::Shared => Owner::Shared,
            LoginSharing::PerCaller => Owner::from(caller),
        }
    }
}
