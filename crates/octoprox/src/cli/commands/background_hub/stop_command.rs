//! `octoprox stop`: stops the background hubs.

use crate::app_error::AppError;
use crate::attach::hub_control::background_hubs;
use crate::terminal::console;
use clap::Args;

/// Stop the background hubs and their servers. Calls may finish first; open sessions start a new hub when they need one.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox stop")]
pub struct Stop {}

impl Stop {
    pub fn run(&self) -> Result<(), AppError> {
        let hubs = background_hubs()?;
        if hubs.is_empty() {
            return Ok(console::print("No background hub runs.")?);
        }
        for hub in hubs {
            let pid = hub.pid;
            hub.stop().map_err(|error| AppError::new(format!("Cannot stop hub {pid}: {error}.")))?;
            console::print(&format!("Stopped hub {pid}."))?;
        }
        Ok(())
    }
}
