//! `octoprox servers`: the servers behind the hub.

mod add;
mod diff;
mod list;
mod plan;
mod remove;
mod target;
mod trial;

use super::failure::Failure;
use crate::settings::Flags;
use clap::{Args, Subcommand};
pub use list::{Line, lines as standings};
pub use target::Target;

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
    List(list::List),
    Add(add::Add),
    Remove(remove::Remove),
    Test(trial::Trial),
    Plan(plan::Plan),
    Diff(diff::Diff),
}

impl Servers {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        match &self.command {
            Command::List(command) => command.run(flags),
            Command::Add(command) => command.run(flags),
            Command::Remove(command) => command.run(flags),
            Command::Test(command) => command.run(flags),
            Command::Plan(command) => command.run(flags),
            Command::Diff(command) => command.run(flags),
        }
    }
}
