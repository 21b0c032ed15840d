//! Commands of a fleet: its workers and its status.

pub(crate) mod fleet_command;
pub(crate) mod worker_command;
