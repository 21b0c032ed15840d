//! Toolbox for upstream servers: state, connections and logins. Agents and the admin API call these tools like any
//! other.

mod server_connect;
mod server_disconnect;
mod server_login;
mod server_login_status;
mod server_logout;
mod server_registry;
mod server_views;
mod servers_add;
mod servers_list;
mod servers_search;

use octo_toolkit::{Requirement, Toolbox};
pub use server_registry::{ServerEntry, ServerKind, Servers};
pub use server_views::{LoginView, ServerView};

/// Tools that find servers to add, useful without any server.
pub fn catalogue_toolbox() -> Toolbox {
    Toolbox::new("catalogue", "MCP servers that a person could add.")
        .switched_by("servers")
        .with(servers_search::Search)
        .with(servers_add::Add)
}

/// Tools with which agents and the admin API manage servers.
pub fn toolbox() -> Toolbox {
    Toolbox::new("servers", "The servers behind the hub: state, connections and logins.")
        .using_servers()
        .requires(Requirement::Server)
        .with(servers_list::List)
        .with(server_connect::Connect)
        .with(server_disconnect::Disconnect)
        .with(server_login::Login)
        .with(server_login_status::ServerLoginStatus)
        .with(server_logout::Logout)
}
