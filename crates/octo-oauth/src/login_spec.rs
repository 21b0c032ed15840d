//! What the settings say of the login at one server, and how the hub introduces itself.

use octo_grants::Net;
use octo_model::Caller;
use octo_model::Secret;
use octo_ports::Owner;
use std::collections::BTreeMap;

/// Whose login at which server.
pub(crate) type LoginKey = (Owner, String);

/// How the hub introduces itself to authorization servers.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// What people read on the page that asks for their consent.
    pub name: String,
    /// Where browsers are sent back to: the hub's admin port, or an address that leads there.
    pub redirect_uri: String,
    /// An https address at which [`Logins::metadata_document`](crate::Logins::metadata_document) is published, when there is one.
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
    /// Each caller has their own.
    #[default]
    PerCaller,
    /// One for all; only an administrator should be let begin it.
    Shared,
}

/// Which way a person logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// With a browser, or with a device code where the server knows nothing else.
    #[default]
    Auto,
    Browser,
    Device,
}

/// OAuth 2.1. All of it is found out by itself where the settings say nothing.
#[derive(Debug, Clone, Default)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Asked for instead of what the server's metadata lists; what the server demands comes on top.
    pub scopes: Vec<String>,
    /// The authorization server, by the operator's choice; it may be private then.
    pub issuer: Option<String>,
    /// Added to the authorization request; see [`RESERVED_AUTHORIZE_PARAMS`].
    pub authorize_params: BTreeMap<String, String>,
    pub flow: Flow,
}

/// Parameters of the authorization request that only the hub sets: with another value of one, the login would be another's,
/// or open to others.
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

/// Where an API key goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlacement {
    /// A header, with a text in front such as `Bearer `.
    Header {
        name: String,
        prefix: String,
    },
    Query(String),
    /// A variable of the program that is the server.
    Environment(String),
}

#[derive(Debug, Clone)]
pub enum Auth {
    OAuth(OAuth),
    Key(KeyPlacement),
}

/// The login at one server.
#[derive(Debug, Clone)]
pub struct LoginSpec {
    pub server: String,
    /// The server's address; a program has none.
    pub url: Option<String>,
    pub auth: Auth,
    pub sharing: LoginSharing,
    /// The way to authorization servers.
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
