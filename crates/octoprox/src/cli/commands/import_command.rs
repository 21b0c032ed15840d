//! `octoprox import`: imports the servers of a client.

use crate::app_error::AppError;
use crate::cli::commands::servers_command::ServersFileEdit;
use crate::cli::file_change::FileChange;
use crate::clients::{
    Client, ClientConfig, SecretExtractor, ServerEntry, client_configs, required_variables,
};
use crate::settings::{Environment, Flags, check_server, load};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Import the MCP servers of a client into servers.yaml. Existing entries are kept, and the client's file is not changed.
/// Secrets are not copied: they are replaced by environment variables, whose names are printed.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox import claude
  octoprox import vscode --file .vscode/mcp.json --dry-run")]
pub struct Import {
    /// Client to import from; claude is Claude Code and Claude Desktop
    #[arg(value_enum)]
    client: Product,
    /// File of the client, if it is not in the default location
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// File to write to [default: servers.yaml beside the settings]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON: {file, diff (with --dry-run), backup, added, skipped, variables}
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Product {
    Claude,
    Cursor,
    Vscode,
    Codex,
}

impl Product {
    const fn clients(self) -> &'static [Client] {
        match self {
            Self::Claude => &[Client::ClaudeCode, Client::ClaudeDesktop],
            Self::Cursor => &[Client::Cursor],
            Self::Vscode => &[Client::VsCode],
            Self::Codex => &[Client::Codex],
        }
    }
}

/// Result of an import.
#[derive(Default)]
pub struct ImportResult {
    pub added: Vec<ImportedServer>,
    pub skipped: Vec<ImportedServer>,
    /// Environment variables that have to be set, including those that replace secrets.
    pub variables: BTreeSet<String>,
}

/// Server that was added or skipped, with a reason or note.
#[derive(Serialize)]
pub struct ImportedServer {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Import {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let found = self.read_client_servers(&world)?;
        let mut target = match &self.to {
            Some(to) => ServersFileEdit::open(world.current_dir.join(to))?,
            None => ServersFileEdit::beside_settings(flags, &world)?,
        };
        let mut vault = SecretExtractor::default();
        let known = if self.to.is_some() { BTreeMap::new() } else { existing_servers(&world, flags) };
        let taken = import_servers(&mut target, found, &known, &mut vault)?;
        let change = target.into_change();
        let backup = if self.dry_run || change.is_empty() { None } else { change.write()? };
        if self.json {
            let diff = self.dry_run.then(|| change.redacted_diff());
            let ImportResult { added, skipped, variables } = &taken;
            let result = json!({
                "file": change.path, "diff": diff, "backup": backup, "added": added, "skipped": skipped,
                "variables": variables,
            });
            return Ok(console::print(&result.to_string())?);
        }
        if self.dry_run {
            console::print(&change.redacted_diff())?;
            result_lines(&taken).iter().for_each(|line| console::print_err(line));
        } else {
            for line in result_lines(&taken) {
                console::print(&line)?;
            }
            report_written(&change, backup.as_ref());
        }
        print_next_steps(&taken, &world)
    }

    /// Reads the servers from the client's files. Fails if none of the files exists.
    fn read_client_servers(&self, world: &Environment) -> Result<Vec<ServerEntry>, AppError> {
        let clients = self.client.clients();
        let places: Vec<ClientConfig> = match (&self.file, clients.first()) {
            (Some(file), Some(client)) => vec![ClientConfig::named(*client, world.current_dir.join(file))],
            _ => client_configs(world).into_iter().filter(|place| clients.contains(&place.client)).collect(),
        };
        let mut found = Vec::new();
        let mut seen = false;
        for place in &places {
            let read = place.read(&world.current_dir).map_err(|why| {
                AppError::invalid(format!(
                    "{}: {why}. Fix the file, or name another with --file.",
                    place.path.display()
                ))
            })?;
            if let Some(reading) = read {
                seen = true;
                warn_ignored(&reading.servers.ignored, place);
                found.extend(reading.servers.entries);
            }
        }
        if !seen {
            let paths: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
            let error = octo_model::ToolError::not_found(format!("File not found: {}.", paths.join(", ")));
            return Err(error.hint("Name the client's file with --file.").into());
        }
        if let Some(file) = self.file.as_ref().filter(|_| found.is_empty()) {
            return Err(AppError::invalid(format!(
                "{}: no servers found. They are expected under `mcpServers`, `servers` or `mcp_servers`.",
                file.display()
            )));
        }
        Ok(found)
    }
}

/// Reports entries of a client's list that are not servers.
pub fn warn_ignored(names: &[String], place: &ClientConfig) {
    for name in names {
        let path = place.path.display();
        console::print_err(&format!("octoprox: {path}: skipped `{}`: not a server", sanitize_text(name)));
    }
}

/// Returns the servers of the settings, each with the file that defines it.
pub fn existing_servers(world: &Environment, flags: &Flags) -> BTreeMap<String, String> {
    let Ok(loaded) = load(world, flags) else { return BTreeMap::new() };
    let origin = |name: &String| loaded.layers.origin(&format!("servers.{name}")).to_string();
    loaded.settings.servers.keys().map(|name| (name.clone(), origin(name))).collect()
}

/// Adds servers to a file, with environment variables for their secrets. Existing entries are kept.
pub fn import_servers(
    target: &mut ServersFileEdit,
    entries: Vec<ServerEntry>,
    known: &BTreeMap<String, String>,
    vault: &mut SecretExtractor,
) -> Result<ImportResult, AppError> {
    let mut taken = ImportResult::default();
    for ServerEntry { name, mut server, notes } in entries {
        vault.extract(&name, &mut server);
        let skip = |why: String| ImportedServer { name: sanitize_text(&name), reason: why };
        if let Some(there) = target.entry(&name) {
            let same = there == Value::Object(server);
            let why = if same { "already exists" } else { "another server of this name exists and is kept" };
            taken.skipped.push(skip(why.to_owned()));
            continue;
        }
        if let Some(file) = known.get(&name) {
            taken.skipped.push(skip(format!("another server of this name is in {file} and is kept")));
            continue;
        }
        if let Err(problems) = check_server(&name, &server) {
            let why = problems.0.iter().map(|problem| format!("{} {}", problem.message, problem.hint));
            taken.skipped.push(skip(why.collect::<Vec<_>>().join(" ")));
            continue;
        }
        if let Err(why) = target.add(&name, &server) {
            let what = "use block style (`servers:` with names below it), or name another file.";
            return Err(ServersFileEdit::manual_edit_error(&target.path, &why, what));
        }
        taken.variables.extend(required_variables(&server));
        taken.added.push(ImportedServer { reason: sanitize_text(&notes.join("; ")), name });
    }
    Ok(taken)
}

/// Renders one line per server.
pub fn result_lines(taken: &ImportResult) -> Vec<String> {
    let line = |word: &str, told: &ImportedServer| match told.reason.as_str() {
        "" => format!("{word} {}", told.name),
        why => format!("{word} {}: {why}", told.name),
    };
    let added = taken.added.iter().map(|told| line("added", told));
    added.chain(taken.skipped.iter().map(|told| line("skipped", told))).collect()
}

/// Reports which file was written.
pub fn report_written(change: &FileChange, backup: Option<&PathBuf>) {
    if change.is_empty() {
        return;
    }
    match backup {
        Some(backup) => {
            console::print_err(&format!("Wrote {}; backup: {}.", change.path.display(), backup.display()))
        }
        None => console::print_err(&format!("Wrote {}.", change.path.display())),
    }
}

/// Prints the next steps.
fn print_next_steps(taken: &ImportResult, world: &Environment) -> Result<(), AppError> {
    let unset = unset_variables(taken, world);
    if !unset.is_empty() {
        console::print_err(
            "Secrets are not copied. Set these variables where octoprox is started; their values are in",
        );
        console::print_err("the client's file. Until then, the servers that need them are skipped:");
        unset.iter().for_each(|name| console::print_err(&format!("  {name}")));
    }
    if !taken.added.is_empty() {
        console::print_err("Next: octoprox servers test");
    }
    Ok(())
}

/// Returns the required variables that are not set.
pub fn unset_variables(taken: &ImportResult, world: &Environment) -> Vec<String> {
    taken.variables.iter().filter(|name| world.variable(name).is_none()).cloned().collect()
}
