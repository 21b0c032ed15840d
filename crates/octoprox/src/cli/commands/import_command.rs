//! `octoprox import`: the servers that a client has already.

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
    /// Print the result as JSON: {file, backup, added, skipped, variables}
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

/// What came of taking servers over.
#[derive(Default)]
pub struct ImportResult {
    pub added: Vec<ImportedServer>,
    pub skipped: Vec<ImportedServer>,
    /// Variables that have to be set, those that stand for secrets among them.
    pub variables: BTreeSet<String>,
}

/// A server, and what is to be known about it.
#[derive(Serialize)]
pub struct ImportedServer {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
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
        if self.dry_run {
            console::print(&change.preview(self.json))?;
            return print_next_steps(&taken, &world);
        }
        let backup = if change.is_empty() { None } else { change.write()? };
        if self.json {
            let ImportResult { added, skipped, variables } = &taken;
            let told = json!({
                "file": change.path, "backup": backup, "added": added, "skipped": skipped, "variables": variables,
            });
            return Ok(console::print(&told.to_string())?);
        }
        for line in result_lines(&taken) {
            console::print(&line)?;
        }
        report_written(&change, backup.as_ref());
        print_next_steps(&taken, &world)
    }

    /// The servers of the client's files. One of several may be missing; all of them may not.
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
                    "{}: {why}. Mend it, or name another with --file.",
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
            let error = octo_model::ToolError::not_found(format!("There is no {}.", paths.join(" and no ")));
            return Err(error.hint("Name the client's file with --file.").into());
        }
        Ok(found)
    }
}

/// Says what in a client's list is no server.
pub fn warn_ignored(names: &[String], place: &ClientConfig) {
    for name in names {
        let path = place.path.display();
        console::print_err(&format!(
            "octoprox: {path}: `{}` is no server and is left out",
            sanitize_text(name)
        ));
    }
}

/// The servers that the settings have by now, and where from.
pub fn existing_servers(world: &Environment, flags: &Flags) -> BTreeMap<String, String> {
    let Ok(loaded) = load(world, flags) else { return BTreeMap::new() };
    let origin = |name: &String| loaded.layers.origin(&format!("servers.{name}")).to_string();
    loaded.settings.servers.keys().map(|name| (name.clone(), origin(name))).collect()
}

/// Puts servers into a list, with variables for their secrets. What is there already is not touched.
pub fn import_servers(
    target: &mut ServersFileEdit,
    entries: Vec<ServerEntry>,
    known: &BTreeMap<String, String>,
    vault: &mut SecretExtractor,
) -> Result<ImportResult, AppError> {
    let mut taken = ImportResult::default();
    for ServerEntry { name, mut server, notes } in entries {
        vault.extract(&name, &mut server);
        let skip = |why: String| ImportedServer { name: sanitize_text(&name), why };
        if let Some(there) = target.entry(&name) {
            let same = there == Value::Object(server);
            let why =
                if same { "it is there already" } else { "another server of this name is there and stays" };
            taken.skipped.push(skip(why.to_owned()));
            continue;
        }
        if let Some(file) = known.get(&name) {
            taken.skipped.push(skip(format!("another server of this name is in {file} and stays")));
            continue;
        }
        if let Err(problems) = check_server(&name, &server) {
            let why = problems.0.iter().map(|problem| format!("{} {}", problem.message, problem.hint));
            taken.skipped.push(skip(why.collect::<Vec<_>>().join(" ")));
            continue;
        }
        if let Err(why) = target.add(&name, &server) {
            let what = "give it block style (`servers:` with names below it), or name another file.";
            return Err(ServersFileEdit::manual_edit_error(&target.path, &why, what));
        }
        taken.variables.extend(required_variables(&server));
        taken.added.push(ImportedServer { why: sanitize_text(&notes.join("; ")), name });
    }
    Ok(taken)
}

/// One line for each server.
pub fn result_lines(taken: &ImportResult) -> Vec<String> {
    let line = |word: &str, told: &ImportedServer| match told.why.as_str() {
        "" => format!("{word} {}", told.name),
        why => format!("{word} {}: {why}", told.name),
    };
    let added = taken.added.iter().map(|told| line("added", told));
    added.chain(taken.skipped.iter().map(|told| line("skipped", told))).collect()
}

/// Says where something was written.
pub fn report_written(change: &FileChange, backup: Option<&PathBuf>) {
    if change.is_empty() {
        return;
    }
    match backup {
        Some(backup) => console::print_err(&format!(
            "Wrote {}; the old file is {}.",
            change.path.display(),
            backup.display()
        )),
        None => console::print_err(&format!("Wrote {}.", change.path.display())),
    }
}

/// Says what is left to do.
fn print_next_steps(taken: &ImportResult, world: &Environment) -> Result<(), AppError> {
    let unset = unset_variables(taken, world);
    if !unset.is_empty() {
        console::print_err(
            "Secrets are not copied. Set these where octoprox is started; their values stand in",
        );
        console::print_err("the client's file. Until then their servers are left out:");
        unset.iter().for_each(|name| console::print_err(&format!("  {name}")));
    }
    if !taken.added.is_empty() {
        console::print_err("Next: octoprox servers test");
    }
    Ok(())
}

/// The variables that nobody has set yet.
pub fn unset_variables(taken: &ImportResult, world: &Environment) -> Vec<String> {
    taken.variables.iter().filter(|name| world.variable(name).is_none()).cloned().collect()
}
