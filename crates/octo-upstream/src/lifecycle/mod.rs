//! Links to a server: when each is made, ended and made again, and how the server is doing.

pub(crate) mod link;
pub(crate) mod link_set;
pub(crate) mod link_state;
pub(crate) mod login_events;
mod negotiation;
mod open_connection;
pub(crate) mod server;
pub(crate) mod server_status;
pub(crate) mod supervisor;
