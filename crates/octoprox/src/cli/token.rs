//! `octoprox token`: ways in for callers.

use super::failure::Failure;
use super::out;
use crate::token::fresh;
use clap::{Args, Subcommand};

/// Makes bearer tokens for callers.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox token new laptop")]
pub struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(New),
}

/// Makes a token. It is printed once, on standard output; the lines for the settings, which hold only its hash, go to
/// standard error.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox token new laptop\n  TOKEN=$(octoprox token new ci)")]
struct New {
    /// Who the token is for; policy and audit know the caller by this name
    name: String,
}

impl Token {
    pub fn run(&self) -> Result<(), Failure> {
        let Command::New(New { name }) = &self.command;
        let token = fresh().map_err(|_| Failure::new("The system gives no randomness. Try again."))?;
        let name = serde_json::Value::from(name.as_str());
        out::talk("The token, printed once. Clients send it as `Authorization: Bearer …`:");
        out::data(&token)?;
        out::talk("\nAdd to octoprox.yaml:\n");
        out::talk(&format!(
            "auth:\n  tokens:\n    - name: {name}\n      sha256: {}",
            octo_web::fingerprint(&token)
        ));
        Ok(())
    }
}
