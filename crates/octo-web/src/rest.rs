//! The REST face: tools and prompts as plain HTTP, one reply shape, no protocol to learn.

mod ask;
mod call;
mod lists;
mod metadata;
mod reply;
mod state;

pub(crate) use ask::{Ask, Look};
pub(crate) use metadata::Target;
pub(crate) use reply::reply;
pub(crate) use state::health;

use crate::edge::Tokens;
use crate::probe::Probe;
use axum::Router;
use axum::routing::get;
use octo_hub::Hub;
use octo_toolkit::{NoPeer, Peer};
use std::sync::Arc;

/// Writes the numbers for Prometheus.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// What the REST face is made of.
pub struct RestParts {
    pub hub: Arc<Hub>,
    pub metrics: Render,
    pub probe: Arc<dyn Probe>,
    /// Those of the edge: the OpenAPI document says whether there are any.
    pub tokens: Tokens,
}

struct Rest {
    hub: Arc<Hub>,
    metrics: Render,
    probe: Arc<dyn Probe>,
    tokens: Tokens,
    /// REST has no way back to its client, so all calls share one.
    nobody: Arc<dyn Peer>,
}

/// The routes, to be put behind [`crate::edge`] together with those of other faces.
pub fn router(parts: RestParts) -> Router {
    let RestParts { hub, metrics, probe, tokens } = parts;
    let rest = Rest { hub, metrics, probe, tokens, nobody: Arc::new(NoPeer) };
    Router::new()
        .route("/tools", get(lists::tools))
        .route("/tools/", get(lists::tools))
        .route("/tools/{name}", get(lists::tool).post(call::tool))
        .route("/prompts", get(lists::prompts))
        .route("/prompts/", get(lists::prompts))
        .route("/prompts/{name}", axum::routing::post(call::prompt))
        .route("/openapi.json", get(lists::openapi))
        .route("/health", get(state::health))
        .route("/ready", get(state::ready))
        .route("/metrics", get(state::metrics))
        .with_state(Arc::new(rest))
}
