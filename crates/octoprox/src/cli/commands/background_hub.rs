//! Commands for the background hub.

pub(crate) mod hub_command;
pub(crate) mod logs_command;
pub(crate) mod status_command;
pub(crate) mod stop_command;
