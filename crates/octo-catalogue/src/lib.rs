//! Facts about MCP servers: what runs, who publishes it, what it needs, and what its tools do. Pure: nothing here
//! reads files or the network.

mod catalogue;
mod catalogue_entry;
mod look_alike;
mod own_variable;
mod registry_api;
mod server_reference;

pub use catalogue::{Catalogue, CatalogueError};
pub use catalogue_entry::{
    CatalogueEntry, LocalAccess, LoginKind, Package, PackageRegistry, Publisher, PublisherEvidence, Remote,
    TokenHeader, ToolsSource, Variable,
};
pub use look_alike::LookAlike;
pub use own_variable::own_variable;
pub use registry_api::{RegistryQuery, RegistryServer, registry_servers};
pub use server_reference::{PackageReference, ReferenceError, ServerReference};
