//! Background hub: one process per user serves all sessions and commands that would otherwise each start every server.
//!
//! `octoprox stdio` is then a relay between its client and the hub's socket, which starts the hub if none runs.

pub mod attach_server;
mod confinement;
mod hub_client;
pub mod hub_control;
mod hub_key;
pub mod hub_protocol;
mod hub_socket;
mod hub_start;
mod line_buffer;
pub mod log_rotation;
mod peer_process;
mod program_file;
mod resumable_session;
pub mod session_app;
pub mod session_relay;
pub mod successor_check;
pub mod tool_queries;

pub use hub_client::{AttachError, HubStream};
pub use hub_protocol::PROTOCOL_VERSION;
pub use hub_start::{HUB_COMMAND, HubStartup, detach};
