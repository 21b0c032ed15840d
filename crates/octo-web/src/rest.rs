//! REST frontend: tools and prompts as plain HTTP with one reply format.

mod health;
mod reply_metadata;
mod request_extractors;
mod rest_call;
mod rest_lists;
mod rest_reply;
mod server_registry;

pub(crate) use health::health;
pub(crate) use reply_metadata::CallTarget;
pub(crate) use request_extractors::{CallRequest, CallerView};
pub(crate) use rest_reply::call_reply;
pub use rest_reply::tool_reply;

use crate::edge::Tokens;
use crate::readiness::ReadinessProbe;
use axum::Router;
use axum::routing::get;
use octo_hub::Hub;
use octo_toolkit::{NoPeer, Peer};
use std::sync::Arc;

/// Renders the metrics for Prometheus.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Configuration of the REST frontend.
pub struct RestConfig {
    pub hub: Arc<Hub>,
    pub metrics: RenderMetrics,
    pub probe: Arc<dyn ReadinessProbe>,
    /// Tokens of the edge: the OpenAPI document declares whether there are any.
    pub tokens: Tokens,
}

struct RestState {
    hub: Arc<Hub>,
    metrics: RenderMetrics,
    probe: Arc<dyn ReadinessProbe>,
    tokens: Tokens,
    /// REST cannot notify or ask its clients, so all calls share one peer.
    no_peer: Arc<dyn Peer>,
}

/// Routes, to be placed behind [`crate::edge`] with those of other frontends.
pub fn rest_router(parts: RestConfig) -> Router {
    let RestConfig { hub, metrics, probe, tokens } = parts;
    let rest = RestState { hub, metrics, probe, tokens, no_peer: Arc::new(NoPeer) };
    Router::new()
        .route("/tools", get(rest_lists::tools))
        .route("/tools/", get(rest_lists::tools))
        .route("/tools/{name}", get(rest_lists::tool).post(rest_call::tool))
        .route("/prompts", get(rest_lists::prompts))
        .route("/prompts/", get(rest_lists::prompts))
        .route("/prompts/{name}", axum::routing::post(rest_call::prompt))
        .route("/v0.1/servers", get(server_registry::list))
        .route("/v0.1/servers/{name}/versions", get(server_registry::versions))
        .route("/v0.1/servers/{name}/versions/{version}", get(server_registry::version))
        .route("/openapi.json", get(rest_lists::openapi))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(Arc::new(rest))
}
