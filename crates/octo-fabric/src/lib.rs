//! Calls between the nodes of a fleet: a source that one node serves is a source on every other.

mod address;
mod bus;
mod call_message;
mod call_stream;
mod caller_results;
mod fleet_metrics;
mod frame;
mod front_messages;
mod in_process_bus;
mod inbox;
mod nats_bus;
mod node;
mod node_status;
mod remote_call;
mod remote_listing;
mod remote_peer;
mod remote_source;
mod sealed_bus;
mod served_call;
mod service_claim;
mod service_lease;
mod source_server;
mod source_watchers;

pub use address::{InvalidName, SourceAddress};
pub use bus::{Bus, BusError, BusState, Message, MessageStream, Subject, Subscription};
pub use caller_results::CallerResults;
pub use front_messages::{FrontMessageHandler, FrontMessageServer, FrontMessages};
pub use in_process_bus::InProcessBus;
pub use nats_bus::nats_check::{NatsProblem, NatsServer, check_nats};
pub use nats_bus::{NatsBus, NatsCredentials, NatsOptions, new_nkey};
pub use node::Node;
pub use node_status::{
    AuditStatus, NodeReport, NodeStatus, ServiceStatus, StatusReply, StatusServer, collect_metrics,
    collect_status, serve_status,
};
pub use remote_source::RemoteSource;
pub use sealed_bus::SealedBus;
pub use sealed_bus::fleet_keys::{FleetKeyError, FleetKeys};
pub use service_claim::served_files::ServedFiles;
pub use service_claim::{ClaimOutcome, ServiceClaim};
pub use service_lease::lease_check::LeaseCheck;
pub use service_lease::{SERVICE_LEASE_DURATION, ServiceLease};
pub use source_server::{SourceServer, serve_files, serve_source};
