//! `octoprox man`: writes the man pages.

use crate::app_error::AppError;
use crate::cli::Cli;
use crate::terminal::console;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Write the man pages of all commands into a directory.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox man ~/.local/share/man/man1 && man octoprox-serve")]
pub struct Man {
    /// Directory; created if it does not exist
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

impl Man {
    pub fn run(&self) -> Result<(), AppError> {
        let failed = |error| AppError::new(format!("{}: {error}.", self.directory.display()));
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &self.directory).map_err(failed)?;
        Ok(console::print(&format!("Wrote the man pages to {}.\n", self.directory.display()))?)
    }
}
