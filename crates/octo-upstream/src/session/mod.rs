//! Session with a server: handshake, requests and responses, server requests.

pub(crate) mod connection;
pub(crate) mod dispatcher;
pub(crate) mod handshake;
mod log_level;
pub(crate) mod pending_requests;
pub(crate) mod ping;
pub(crate) mod post_message;
mod request_meta;
pub(crate) mod server_info;
pub(crate) mod upstream_call;
pub(crate) mod upstream_task;
