//! The hub as a process: its program, other hubs of the same user, and the service manager.

pub mod local_programs;
pub mod running_hubs;
pub mod service_manager;
pub mod this_program;
