//! `octoprox servers remove`.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::cli::commands::servers_command::servers_file_edit::ServersFileEdit;
use crate::cli::commands::servers_command::similar_server;
use crate::cli::file_change::FileChange;
use crate::settings::edit::replace_file::lock_folder_of;
use crate::settings::{Environment, Flags, SettingOrigin};
use crate::terminal::console;
use clap::Args;
use octo_model::ToolError;
use serde_json::json;
use std::path::PathBuf;

/// Remove a server from the file that defines it. All other lines are kept, also comments above it, and a backup is
/// made.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox servers remove notion\n  octoprox servers remove notion --dry-run"
)]
pub struct Remove {
    /// Name of the server
    name: String,
    /// File to remove it from, if several define it
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON: {removed, file, backup}
    #[arg(long)]
    json: bool,
}

impl Remove {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let path = match &self.from {
            Some(from) => world.current_dir.join(from),
            None => self.defining_file(flags)?,
        };
        let _held = lock_folder_of(&path)?;
        let mut target = ServersFileEdit::open(path)?;
        let what = format!("remove the lines of `{}` yourself.", self.name);
        target
            .remove(&self.name)
            .map_err(|why| ServersFileEdit::manual_edit_error(&target.path, &why, &what))?;
        let change = target.into_change();
        if self.dry_run {
            return Ok(console::print(&change.preview(self.json))?);
        }
        let backup = change.write()?;
        FileChange::of_lock(&change.path, &self.name, None)?.write_generated()?;
        if self.json {
            let told = json!({"removed": self.name, "file": change.path, "backup": backup});
            return Ok(console::print(&told.to_string())?);
        }
        if let Some(backup) = backup {
            console::print_err(&format!("Backup: {}.", backup.display()));
        }
        Ok(console::print(&format!("removed {} from {}", self.name, change.path.display()))?)
    }

    /// Returns the file that defines the server.
    fn defining_file(&self, flags: &Flags) -> Result<PathBuf, AppError> {
        let loaded = load_settings(flags)?;
        if !loaded.settings.servers.contains_key(&self.name) {
            let known = loaded.settings.servers.keys().map(String::as_str);
            let hint = match similar_server(&self.name, known) {
                Some(close) => format!("Did you mean `{close}`?"),
                None => "Run `octoprox servers list` to see the servers.".to_owned(),
            };
            return Err(ToolError::not_found(format!("Server not found: `{}`.", self.name))
                .hint(hint)
                .into());
        }
        match loaded.layers.origin(&format!("servers.{}", self.name)) {
            SettingOrigin::File(path) => Ok(path),
            origin => {
                Err(AppError::invalid(format!("`{}` comes from {origin}, not from a file.", self.name)))
            }
        }
    }
}
