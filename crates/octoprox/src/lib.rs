//! The octoprox binary: settings, toolboxes, command line and assembly of the application.

#![expect(
    clippy::disallowed_methods,
    reason = "the binary reads the environment and the settings file, opens the log file and listens"
)]

mod app;
pub(crate) mod app_context;
pub(crate) mod app_error;
mod attach;
mod bearer_token;
mod cli;
mod client_roots;
mod clients;
mod dialects;
mod fleet;
mod gateway;
mod hub_probe;
pub mod jq_workers;
mod packages;
mod process;
mod reloader;
mod remedy_text;
pub mod settings;
pub mod shipped_prompts;
mod stores;
pub mod telemetry;
pub(crate) mod terminal;
mod toolboxes;

pub use cli::main;
pub use toolboxes::{WorkspaceGuard, open_capabilities, toolboxes};
