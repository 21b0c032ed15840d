//! `octoprox logout`: deletes a login and revokes its tokens.

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::commands::login_command::{LoginTarget, print_wrapped};
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::console;
use clap::Args;
use octo_oauth::LogoutOutcome;
use serde_json::json;

/// Delete the login of a server and revoke its tokens at the authorization server.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox logout notion
  octoprox logout https://hub.example.com")]
pub struct Logout {
    /// Name of the server in the settings, or the URL of a bridge
    server: String,
    /// Profile of the hub at that URL
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print as JSON: {server, outcome}; the outcome is revoked, deleted (not revoked) or not_logged_in
    #[arg(long)]
    json: bool,
}

impl Logout {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        block_on_current_thread(async {
            let session = AppContext::start(loaded, LogMode::Command, AppMode::ReadOnly)?;
            let place =
                LoginTarget::find(&session, &self.server, self.profile.as_deref(), false, String::new())?;
            let outcome = place.logout().await?;
            let told = match outcome {
                LogoutOutcome::NotLoggedIn => format!("Not logged in to {}.", place.display_name),
                LogoutOutcome::Deleted if place.logins.takes_key(&place.server)? => {
                    format!("Deleted the API key of {}.", place.display_name)
                }
                LogoutOutcome::Deleted => format!(
                    "Deleted the login to {}, but could not revoke its tokens at the authorization server. To revoke \
                     them, remove the access in your account there.",
                    place.display_name
                ),
                LogoutOutcome::Revoked => format!("Logged out of {}.", place.display_name),
            };
            if self.json {
                console::print(
                    &json!({"server": place.display_name, "outcome": outcome.as_str()}).to_string(),
                )?;
            }
            print_wrapped(&told);
            Ok(())
        })
    }
}
