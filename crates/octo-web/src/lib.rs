//! The HTTP edge of every listener, and the faces behind it: REST and the admin API.

mod admin;
mod edge;
mod fault;
mod openapi;
mod probe;
mod rest;
mod routes;
mod serve;
#[cfg(test)]
mod tests;

pub use admin::{AdminParts, BrowserLogins, LoginConfirmation, LoginDeparture, admin};
pub use edge::{EdgeSettings, TokenFault, TokenSettings, Tokens, edge, fingerprint};
pub use fault::status;
pub use openapi::document;
pub use probe::{Check, CheckState, NoProbe, Probe};
pub use rest::{Render, RestParts, router};
pub use routes::{ADMIN_ROUTES, Access, ROUTES, Route};
pub use serve::{Limits, PeerOwner, serve, serve_within};
