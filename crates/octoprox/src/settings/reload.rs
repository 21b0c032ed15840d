//! Reloading: which changes apply at run time and how.

pub(crate) mod applied_servers;
pub(crate) mod reloadable;
pub(crate) mod server_plan;
pub(crate) mod settings_watcher;
