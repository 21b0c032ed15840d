//! `octoprox secret`: manages the secrets that settings refer to.

use crate::app_error::AppError;
use crate::cli::commands::config_command::reload_all;
use crate::settings::{Environment, Flags, SecretSettings, is_secret_store_name, load};
use crate::terminal::console;
use crate::terminal::hidden_input::{no_value, read_hidden_value};
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::{definition_list, sanitize_line};
use clap::{Args, Subcommand};
use octo_model::{Secret as SecretValue, ToolError};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Store secrets, encrypted, and use them in the settings as ${secret:NAME}.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox secret set GITHUB_TOKEN
  octoprox secret list
  octoprox secret remove GITHUB_TOKEN")]
pub struct Secret {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Set(Set),
    List(List),
    Remove(Remove),
}

/// Store a secret, or replace it. The value is read from the prompt, or from standard input. Running hubs use it at once.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox secret set GITHUB_TOKEN
  octoprox secret set DEPLOY_KEY < key.pem")]
struct Set {
    /// Name of the secret: letters, digits, `_`, `.` and `-`
    #[arg(value_parser = secret_name)]
    name: String,
    /// Print the result as JSON: {stored, used_by}
    #[arg(long)]
    json: bool,
}

/// List the names of all secrets and what uses them. The values are not shown.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox secret list\n  octoprox secret list --json")]
struct List {
    /// Print the list as JSON: {secrets: [{name, stored, used_by}]}
    #[arg(long)]
    json: bool,
}

/// Delete a secret. Servers that use it are disabled.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox secret remove GITHUB_TOKEN")]
struct Remove {
    /// Name of the secret
    name: String,
    /// Print the result as JSON: {removed, used_by}
    #[arg(long)]
    json: bool,
}

fn secret_name(text: &str) -> Result<String, String> {
    match is_secret_store_name(text) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits, `_`, `.` and `-`, such as GITHUB_TOKEN".to_owned()),
    }
}

impl Secret {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let settings = SecretSettings::read(&world, flags)?;
        settings.unapproved.iter().for_each(|ignored| console::print_err(&format!("octoprox: {ignored}")));
        match &self.command {
            Command::Set(set) => set.run(&settings)?,
            Command::List(list) => return list.run(&settings),
            Command::Remove(remove) => remove.run(&settings)?,
        }
        reload_hubs(&world, flags)
    }
}

impl Set {
    fn run(&self, settings: &SecretSettings) -> Result<(), AppError> {
        let name = &self.name;
        let value = read_hidden_value(&format!("Value of {name}: "))?;
        if value.is_empty() {
            return Err(no_value());
        }
        settings.store.set(name, SecretValue::new(value))?;
        let used_by = uses_of(name, settings);
        if self.json {
            console::print(&json!({"stored": name, "used_by": used_by}).to_string())?;
        } else {
            console::print(&format!("Stored {name}."))?;
            if used_by.is_empty() {
                console::print_err(&format!("Use it in the settings as ${{secret:{name}}}."));
            } else {
                console::print_err(&format!("Used by: {}.", join(&used_by)));
            }
        }
        Ok(())
    }
}

impl List {
    fn run(&self, settings: &SecretSettings) -> Result<(), AppError> {
        let stored: BTreeSet<String> = settings.store.names()?.into_iter().collect();
        let names: BTreeSet<&String> = stored.iter().chain(settings.uses.keys()).collect();
        let used_by = |name: &String| uses_of(name, settings);
        if self.json {
            let row = |name: &&String| json!({"name": name, "stored": stored.contains(*name), "used_by": used_by(name)});
            let rows: Vec<Value> = names.iter().map(row).collect();
            return Ok(console::print(&json!({"secrets": rows}).to_string())?);
        }
        if names.is_empty() {
            console::print_err("No secrets stored. Store one with `octoprox secret set NAME`.");
            return Ok(());
        }
        let row = |name: &&String| {
            let missing = if stored.contains(*name) { "" } else { "not stored; " };
            let users = match used_by(name) {
                users if users.is_empty() => "not used".to_owned(),
                users => format!("used by {}", join(&users)),
            };
            (sanitize_line(name), sanitize_line(&format!("{missing}{users}")))
        };
        let rows: Vec<(String, String)> = names.iter().map(row).collect();
        Ok(console::print(&definition_list(&rows, columns()))?)
    }
}

impl Remove {
    fn run(&self, settings: &SecretSettings) -> Result<(), AppError> {
        if !settings.store.remove(&self.name)? {
            let error = ToolError::not_found(format!("Secret not found: `{}`.", sanitize_line(&self.name)));
            return Err(error.hint("List them with `octoprox secret list`.").into());
        }
        let used_by = uses_of(&self.name, settings);
        if self.json {
            console::print(&json!({"removed": self.name, "used_by": used_by}).to_string())?;
        } else {
            console::print(&format!("Removed {}.", self.name))?;
            if !used_by.is_empty() {
                console::print_err(&format!("It is still used by: {}.", join(&used_by)));
            }
        }
        Ok(())
    }
}

fn uses_of(name: &str, settings: &SecretSettings) -> BTreeSet<String> {
    settings.uses.get(name).cloned().unwrap_or_default()
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

/// Reloads running hubs. Settings that are invalid for another reason are reported by the hubs' own commands.
fn reload_hubs(world: &Environment, flags: &Flags) -> Result<(), AppError> {
    let Ok(loaded) = load(world, flags) else { return Ok(()) };
    for (pid, report) in reload_all(&loaded)? {
        if let Some(error) = report.error {
            return Err(AppError::new(format!(
                "Hub {pid} failed to reload its settings: {error} Restart it."
            )));
        }
    }
    Ok(())
}
