//! `octoprox hub`: runs the background hub. Sessions start it.

use crate::app_error::AppError;
use crate::attach::{PROTOCOL_VERSION, attach_server, detach};
use crate::terminal::console;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Run the background hub, for octoprox itself.
#[derive(Args)]
pub struct RunHub {
    /// Socket to listen on
    #[arg(long, value_name = "FILE", required_unless_present = "handover_version")]
    socket: Option<PathBuf>,
    /// Start the hub in the background and exit
    #[arg(long)]
    detach: bool,
    /// Seconds without a session after which the hub exits
    #[arg(long, value_name = "SECONDS", default_value_t = attach_server::IDLE_TIMEOUT.as_secs())]
    idle_seconds: u64,
    /// Print the version of the protocol between hubs and sessions
    #[arg(long)]
    handover_version: bool,
}

impl RunHub {
    pub fn run(&self) -> Result<(), AppError> {
        // The hub outlives the process that starts it, whose locks and pipes it must not keep.
        octo_grants::exec::close_inherited_fds()?;
        match &self.socket {
            Some(socket) if self.detach => Ok(detach(socket)?),
            Some(socket) => {
                octo_grants::raise_descriptor_limit()?;
                attach_server::run(socket, Duration::from_secs(self.idle_seconds))
            }
            None => Ok(console::print(&PROTOCOL_VERSION.to_string())?),
        }
    }
}
