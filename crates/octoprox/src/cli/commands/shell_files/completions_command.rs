//! `octoprox completions`: prints shell completions.

use crate::app_error::AppError;
use crate::cli::Cli;
use crate::terminal::console;
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
    pub fn run(&self) -> Result<(), AppError> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "octoprox", &mut text);
        Ok(console::print(&String::from_utf8_lossy(&text))?)
    }
}
