//! The binary: settings, the list of toolboxes, the command line, and the one place where everything is put together.

#![expect(
    clippy::disallowed_methods,
    reason = "the binary reads the environment and the settings file, opens the log file and listens"
)]

mod assemble;
mod cli;
mod client_roots;
mod clients;
mod dialects;
mod gateway;
pub mod jq;
mod probe;
mod program;
pub mod prompts;
mod pruner;
mod reload;
mod running;
mod secret_key;
pub mod settings;
pub mod telemetry;
mod token;
mod toolboxes;
mod unrecorded;

pub use cli::main;
pub use toolboxes::{WorkspaceGuard, doors, toolboxes};
