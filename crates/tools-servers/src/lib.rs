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

/// Tools with which agents and the admin API manage servers.
pub fn toolbox() -> Toolbox {
    Toolbox::new("servers", "The servers behind the hub: state, connections and logins.")
        .using_servers()
        .requires(Requirement::Server)
        .with(servers_list::List)
        .with(servers_search::Search)
        .with(servers_add::Add)
        .with(server_connect::Connect)
        .with(server_disconnect::Disconnect)
        .with(server_login::Login)
        .with(server_login_status::ServerLoginStatus)
        .with(server_logout::Logout)
}
