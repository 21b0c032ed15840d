//! Logins at upstream servers: OAuth 2.1 with PKCE, the device grant, and API keys. All URLs and responses of a login
//! are untrusted: URLs are subject to the egress policy, responses are limited in size and time, and credentials of one
//! issuer are never sent to another.

mod account;
mod accounts;
mod auth_http;
mod authorization_code;
mod challenge;
mod device_code;
mod discovery;
mod issuer;
mod keep_alive;
mod login_deadline;
mod login_plan;
mod login_registry;
mod login_service;
mod login_snapshot;
mod login_spec;
mod login_status;
mod lost_login;
mod oauth_client;
mod refresh;
mod revocation;
mod same_site;
mod start_page;
mod token_endpoint;
mod token_set;

pub use account::{Account, UsedCredential};
pub use accounts::Accounts;
pub use login_deadline::LoginDeadline;
pub use login_registry::{LoginChange, LoginEvent};
pub use login_service::{CompletedLogin, LoginPrompt, Logins, LogoutOutcome};
pub use login_snapshot::{LoginProgress, LoginSnapshot};
pub use login_spec::{
    Auth, ClientIdentity, Flow, KeyPlacement, LoginSharing, LoginSpec, OAuth, RESERVED_AUTHORIZE_PARAMS,
};
pub use login_status::{LoginState, LoginStatus};
pub use lost_login::LostLogin;
pub use same_site::is_same_site;
pub use start_page::{BrowserRedirect, Confirmation};
