//! `octoprox logout`: the end of a login.

use super::failure::Failure;
use super::login::{Place, say};
use super::out;
use super::session::{Purpose, Session, alone, settings};
use crate::settings::Flags;
use crate::telemetry::Talk;
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
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Logout {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        alone(async {
            let session = Session::begin(loaded, Talk::Person, Purpose::Looks)?;
            let place = Place::find(&session, &self.server, self.profile.as_deref(), false, String::new())?;
            let (word, told) = match place.logout().await? {
                LogoutOutcome::NotLoggedIn => ("nothing", format!("There was no login at {}.", place.shown)),
                LogoutOutcome::Forgotten => (
                    "forgotten",
                    format!(
                        "The login at {} is forgotten here. Its authorization server could not be told; where that matters, \
                     end the access in your account there.",
                        place.shown
                    ),
                ),
                LogoutOutcome::Revoked => ("revoked", format!("Logged out at {}.", place.shown)),
            };
            if self.json {
                out::data(&json!({"server": place.shown, "left": word}).to_string())?;
            }
            say(&told);
            Ok(())
        })
    }
}
