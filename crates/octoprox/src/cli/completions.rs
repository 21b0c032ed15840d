//! `octoprox completions`: for the shell.

use super::failure::Failure;
use super::{Cli, out};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print shell completions.
#[derive(Args)]
#[command(
    after_help = "Example:\n  octoprox completions bash > ~/.local/share/bash-completion/completions/octoprox"
)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(&self) -> Result<(), Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "octoprox", &mut text);
        Ok(out::data(&String::from_utf8_lossy(&text))?)
    }
}
