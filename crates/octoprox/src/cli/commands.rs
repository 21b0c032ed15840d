//! Subcommands, one file each.

pub(crate) mod add_command;
pub(crate) mod audit_command;
pub(crate) mod background_hub;
pub(crate) mod bridge_command;
pub(crate) mod call_command;
pub(crate) mod config_command;
pub(crate) mod doctor_command;
pub(crate) mod fleet_nodes;
pub(crate) mod healthcheck_command;
pub(crate) mod import_command;
pub(crate) mod init_command;
pub(crate) mod login_command;
pub(crate) mod logout_command;
pub(crate) mod model_command;
pub(crate) mod prompts_command;
pub(crate) mod secret_command;
pub(crate) mod serve_command;
pub(crate) mod servers_command;
pub(crate) mod shared_database;
pub(crate) mod shell_files;
pub(crate) mod stdio_command;
pub(crate) mod token_command;
pub(crate) mod tool_listing;
pub(crate) mod trust_command;
pub(crate) mod workflow_command;
