//! `--standalone`: without the background hub.

use crate::app_error::AppError;
use crate::settings::{Environment, parse_bool};
use clap::Args;

/// Variable with the same effect.
const STANDALONE_VARIABLE: &str = "OCTOPROX_STANDALONE";

#[derive(Args)]
pub struct StandaloneOption {
    /// Start servers in this process instead of the background hub [env: OCTOPROX_STANDALONE]
    #[arg(long)]
    standalone: bool,
}

impl StandaloneOption {
    pub fn is_set(&self) -> Result<bool, AppError> {
        let world = Environment::current();
        let Some(text) = world.variable(STANDALONE_VARIABLE).filter(|_| !self.standalone) else {
            return Ok(self.standalone);
        };
        parse_bool(text)
            .map_err(|(problem, hint)| AppError::invalid(format!("{STANDALONE_VARIABLE}: {problem} {hint}")))
    }
}
