//! Links to a server: when they connect, close and reconnect, and the status of the server.

pub(crate) mod link;
pub(crate) mod link_set;
pub(crate) mod link_state;
pub(crate) mod login_events;
mod negotiation;
mod open_connection;
pub(crate) mod server;
pub(crate) mod server_status;
pub(crate) mod supervisor;
