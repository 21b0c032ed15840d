//! `octoprox servers`: manages upstream servers.

mod add_server;
mod diff_server;
mod install_servers;
mod list_servers;
mod plan_servers;
mod remove_server;
mod server_effects;
mod server_listing;
mod servers_file_edit;
mod test_servers;

use crate::app_error::AppError;
use crate::settings::Flags;
pub use add_server::parse_pairs;
use clap::{Args, Subcommand};
pub use list_servers::{ServerLine, server_lines as standings};
use octo_model::nearest;
pub use servers_file_edit::ServersFileEdit;
pub use test_servers::TestServers;

/// List, add, remove and test the MCP servers behind the hub.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox servers list
  octoprox servers add notion --url https://mcp.notion.com/mcp
  octoprox servers test notion")]
pub struct Servers {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list_servers::List),
    Add(add_server::Add),
    Install(install_servers::Install),
    Remove(remove_server::Remove),
    Test(test_servers::TestServers),
    Plan(plan_servers::Plan),
    Diff(diff_server::Diff),
    Effects(server_effects::Effects),
}

impl Servers {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            Command::List(command) => command.run(flags),
            Command::Add(command) => command.run(flags),
            Command::Install(command) => command.run(flags),
            Command::Remove(command) => command.run(flags),
            Command::Test(command) => command.run(flags),
            Command::Plan(command) => command.run(flags),
            Command::Diff(command) => command.run(flags),
            Command::Effects(command) => command.run(flags),
        }
    }
}

/// The server that a name probably means. Names of toolboxes have an ending: `github` is `github-mcp`.
fn similar_server<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let with_ending = format!("{name}-mcp");
    known.clone().find(|known| *known == with_ending).or_else(|| nearest(name, known))
}
