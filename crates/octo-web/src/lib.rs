//! The HTTP edge of every listener, and the REST face behind it.

mod edge;
mod fault;
mod openapi;
mod rest;
mod routes;
mod serve;
#[cfg(test)]
mod tests;

pub use edge::{EdgeSettings, TokenFault, TokenSettings, Tokens, edge, fingerprint};
pub use fault::status;
pub use openapi::document;
pub use rest::{Render, RestParts, router};
pub use routes::{Access, ROUTES, Route};
pub use serve::{Limits, serve, serve_within};
