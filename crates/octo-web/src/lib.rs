//! HTTP edge of every listener, and the frontends behind it: REST and the admin API.

mod admin;
mod edge;
mod error_response;
mod listener;
mod readiness;
mod rest;
mod rest_openapi;
mod route_access;
#[cfg(test)]
mod tests;

pub use admin::{AdminConfig, BrowserLogins, LoginConfirmation, LoginRedirect, admin};
pub use edge::{EdgeSettings, TokenConfigError, TokenSettings, Tokens, edge, token_fingerprint};
pub use error_response::http_status;
pub use listener::{ListenerLimits, PeerOwner, serve, serve_with_limits};
pub use readiness::{Check, CheckState, NoProbe, ReadinessProbe};
pub use rest::{RenderMetrics, RestConfig, rest_router, tool_reply};
pub use rest_openapi::openapi_document;
pub use route_access::{ADMIN_ROUTES, Access, ROUTES, Route};
