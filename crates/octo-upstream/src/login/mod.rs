//! Logins at the servers behind the hub: OAuth 2.1 with PKCE, the device grant, and API keys. Every address and every answer
//! of a login comes from a stranger: addresses keep to the network policy, answers to their sizes and times, and what one
//! issuer has given is never shown to another.

mod account;
mod accounts;
mod authorize;
mod challenge;
mod client;
mod device;
mod discover;
mod grant;
mod issuer;
mod keep_alive;
mod logins;
mod lost_login;
mod moment;
mod renew;
mod settings;
mod shelf;
mod site;
mod start_page;
mod status;
mod token;
mod web;

pub use account::Account;
pub(crate) use account::Used;
pub use accounts::Accounts;
pub use logins::{Begun, Done, Left, Logins};
pub use lost_login::LostLogin;
pub(crate) use moment::{Came, Moment};
pub use settings::{Auth, Flow, Identity, KeyPlace, LoginSpec, OAuth, OWN_AUTHORIZE_PARAMS, Whose};
pub(crate) use shelf::{LoginChange, Settled};
pub use start_page::{Confirmation, Departure};
pub use status::{State, Status};
