//! The servers behind the hub, spoken to as an MCP client of both eras: child processes and streamable HTTP.
//! Only the envelope of a message is typed; what it carries passes as it came.

mod login_on_demand;
mod backoff;
mod listing_publisher;
mod breaker;
mod upstream_call;
mod pending_requests;
mod stdio;
mod connection;
mod error;
mod handshake;
mod ping;
mod log_level;
mod http;
mod active_calls;
mod dispatcher;
mod list_kind;
mod listing_codec;
mod change_streams;
mod listing_election;
mod listing_refresh;
pub mod login;
mod close_signal;
mod request_meta;
mod header_params;
pub mod openapi;
mod link_set;
mod server_requests;
mod link_connect;
mod decode;
mod login_events;
mod upstream_status;
mod suspension;
pub mod servers;
mod upstream_spec;
mod link;
mod supervisor;
mod abort_on_drop;
mod fair_queue;
mod upstream;
mod resource_subscriptions;
mod transport;

pub use login_on_demand::LoginOnDemand;
pub use upstream_status::{ServerInfo, ConnectionState, UpstreamStatus};
pub use upstream_spec::{SandboxSpec, ConnectMode, CallLimits, TransportSpec, Share, UpstreamSpec, BreakerSpec};
pub use upstream::Upstream;
