//! Client for upstream MCP servers of both eras, over stdio and streamable HTTP. Only the envelope of a message is
//! typed; the payload passes through unchanged.

mod admission;
mod error;
mod lifecycle;
mod listing;
mod login_on_demand;
mod session;
mod transport;
mod upstream;
mod upstream_spec;

pub use lifecycle::server_status::{ServerStatus, UpstreamReport};
pub use login_on_demand::LoginOnDemand;
pub use octo_wire::Era;
pub use session::server_info::ServerInfo;
pub use transport::message_memory::MessageMemory;
pub use upstream::Upstream;
pub use upstream_spec::{
    BreakerSpec, CallLimits, ConnectMode, InstalledProgram, PackageLookup, PrepareStart, SHARED_HOME,
    SandboxSpec, Share, TransportSpec, UpstreamSpec,
};
