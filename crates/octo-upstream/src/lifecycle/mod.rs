//! Links to a server: when each is made, ended and made again, and how the server is doing.

pub(crate) mod link;
pub(crate) mod link_connect;
pub(crate) mod link_set;
pub(crate) mod login_events;
pub(crate) mod server_status;
pub(crate) mod supervisor;
mod suspension;
