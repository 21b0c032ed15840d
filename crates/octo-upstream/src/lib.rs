//! The servers behind the hub, spoken to as an MCP client of both eras: child processes and streamable HTTP.
//! Only the envelope of a message is typed; what it carries passes as it came.

mod abort_on_drop;
mod active_calls;
mod backoff;
mod breaker;
mod change_streams;
mod close_signal;
mod connection;
mod decode;
mod dispatcher;
mod error;
mod fair_queue;
mod handshake;
mod header_params;
mod http;
mod link;
mod link_connect;
mod link_set;
mod list_kind;
mod listing_codec;
mod listing_election;
mod listing_publisher;
mod listing_refresh;
mod log_level;
pub mod login;
mod login_events;
mod login_on_demand;
pub mod openapi;
mod pending_requests;
mod ping;
mod request_meta;
mod resource_subscriptions;
mod server_requests;
pub mod servers;
mod stdio;
mod supervisor;
mod suspension;
mod transport;
mod upstream;
mod upstream_call;
mod upstream_spec;
mod upstream_status;

pub use login_on_demand::LoginOnDemand;
pub use upstream::Upstream;
pub use upstream_spec::{
    BreakerSpec, CallLimits, ConnectMode, SandboxSpec, Share, TransportSpec, UpstreamSpec,
};
pub use upstream_status::{ConnectionState, ServerInfo, UpstreamStatus};
