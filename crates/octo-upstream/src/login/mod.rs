//! Logins at the servers behind the hub: OAuth 2.1 with PKCE, the device grant, and API keys. Every address and every answer
//! of a login comes from a stranger: addresses keep to the network policy, answers to their sizes and times, and what one
//! issuer has given is never shown to another.

mod account;
mod accounts;
mod authorization_code;
mod challenge;
mod oauth_client;
mod device_code;
mod discovery;
mod token_set;
mod issuer;
mod keep_alive;
mod login_service;
mod lost_login;
mod login_snapshot;
mod refresh;
mod login_spec;
mod login_registry;
mod same_site;
mod start_page;
mod status;
mod token_endpoint;
mod auth_http;

pub use account::Account;
pub(crate) use account::UsedCredential;
pub use accounts::Accounts;
pub use login_service::{LoginPrompt, CompletedLogin, LogoutOutcome, Logins};
pub use lost_login::LostLogin;
pub(crate) use login_snapshot::{LoginProgress, LoginSnapshot};
pub use login_spec::{Auth, Flow, ClientIdentity, KeyPlacement, LoginSpec, OAuth, RESERVED_AUTHORIZE_PARAMS, LoginSharing};
pub(crate) use login_registry::{LoginChange, LoginEvent};
pub use start_page::{Confirmation, BrowserRedirect};
pub use status::{LoginState, LoginStatus};
