//! Supported clients: where they store their MCP servers, in which format, and how to register octoprox with them.

mod client_config;
mod client_entry;
mod client_servers;
pub mod jsonc;
mod register;
mod secret_extractor;
mod server_name;
mod variable_references;

pub use client_config::{Client, ClientConfig, ClientFile, client_configs};
pub use client_servers::{ServerEntry, read_servers};
pub use register::{Registration, register};
pub use secret_extractor::{SecretExtractor, looks_secret};
pub use server_name::valid_name;
pub use variable_references::required_variables;
