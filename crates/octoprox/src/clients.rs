//! Supported clients: where they store their MCP servers, in which format, and how to register octoprox with them.

mod client_config;
mod client_entry;
mod client_rules;
mod client_servers;
mod client_table;
pub mod jsonc;
mod register;
mod relative_start;
mod secret_extractor;
mod server_name;
mod shell_command;
mod variable_references;

pub use client_config::{ClientConfig, ClientFile, client_configs};
pub use client_servers::{ServerEntry, is_octoprox, read_servers};
pub use client_table::{CLIENTS, Client};
pub use register::{Registration, register};
pub use relative_start::name_start_dir;
pub use secret_extractor::{SecretExtractor, looks_secret};
pub use server_name::valid_name;
pub use variable_references::{replace_references, required_variables, stored_secrets};
