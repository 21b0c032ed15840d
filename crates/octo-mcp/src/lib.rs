//! MCP frontend: stdio and streamable HTTP, both eras. It converts; it never decides.

mod client_context;
mod client_peer;
mod discover;
mod drain;
mod front_sessions;
mod header_checks;
mod http_transport;
mod incoming;
mod legacy_era;
mod legacy_session;
mod listen;
mod mcp;
mod methods;
mod modern_era;
mod notifications;
mod request_state;
mod rpc_errors;
mod shared_fronts;
mod sse_response;
mod stateless_epochs;
mod stdio_transport;
mod suspended_calls;
mod task;
mod task_calls;
mod task_registry;

pub use client_context::next_client_key;
pub use client_peer::Outbox;
pub use drain::DRAIN_NOTIFICATION;
pub use mcp::{Mcp, McpSettings};
pub use shared_fronts::{FrontLink, FrontMessage, FrontMessageBody, RelayedRequest, SharedFrontsConfig};
pub use task_registry::TaskSettings;
