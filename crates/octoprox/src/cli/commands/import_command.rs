//! `octoprox import`: imports the servers of a client.

mod import_secrets;

use crate::app_error::AppError;
use crate::cli::commands::servers_command::ServersFileEdit;
use crate::cli::file_change::FileChange;
use crate::clients::{
    CLIENTS, Client, ClientConfig, ServerEntry, client_configs, name_start_dir, replace_references,
    required_variables, stored_secrets,
};
use crate::settings::{Environment, Flags, MAX_SERVER_NAME_LEN, SecretSettings, check_server, load};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use octo_model::normalized_name;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub use import_secrets::{ImportSecrets, stored_values};

/// Import the MCP servers of a client into servers.yaml. Existing entries are kept, and the client's file is not changed.
/// Secrets are stored, encrypted, as with `octoprox secret set`; servers.yaml contains only their names.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox import claude
  octoprox import vscode --file .vscode/mcp.json --dry-run")]
pub struct Import {
    /// Client to import from; claude is Claude Code and Claude Desktop
    #[arg(value_parser = client_names())]
    client: String,
    /// File of the client, if it is not in the default location
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// File to write to [default: servers.yaml beside the settings]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace secrets by environment variables instead of storing them. Default with --to
    #[arg(long)]
    no_secrets: bool,
    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON: {file, diff (with --dry-run), backup, added, skipped, secrets, variables}
    #[arg(long)]
    json: bool,
}

/// Both clients of Claude.
const CLAUDE: &str = "claude";

/// The names of clients on the command line.
fn client_names() -> PossibleValuesParser {
    let titled = CLIENTS.iter().map(|client| PossibleValue::new(client.id).help(client.title));
    let claude = PossibleValue::new(CLAUDE).help("Claude Code and Claude Desktop");
    PossibleValuesParser::new([claude].into_iter().chain(titled))
}

/// Result of an import.
#[derive(Default)]
pub struct ImportResult {
    pub added: Vec<ImportedServer>,
    pub skipped: Vec<ImportedServer>,
    /// Environment variables that have to be set, including those that replace secrets.
    pub variables: BTreeSet<String>,
    /// Stored secrets that the added servers use.
    pub secrets: BTreeSet<String>,
    /// Entries of the client's file that the hub has now.
    pub imported: Vec<ImportedEntry>,
}

/// Place of an entry in the client's file: the keys of its list, and its name.
pub struct ImportedEntry {
    pub list: Vec<String>,
    pub name: String,
    /// Variables that the server needs.
    pub variables: BTreeSet<String>,
    /// The variable whose value in the environment is not that of the client.
    pub mismatch: Option<String>,
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
        let mut secrets = if self.no_secrets || self.to.is_some() {
            ImportSecrets::as_variables()
        } else {
            ImportSecrets::storing(SecretSettings::read(&world, flags)?.store, BTreeMap::new())?
        };
        let known = if self.to.is_some() { BTreeMap::new() } else { existing_servers(&world, flags)? };
        let taken = import_servers(&mut target, found, (&known, &world), &mut secrets, None)?;
        let change = target.into_change();
        if !self.dry_run {
            secrets.store(&taken.secrets, |_, _| Ok(()))?;
        }
        let backup = if self.dry_run || change.is_empty() { None } else { change.write()? };
        if self.json {
            let diff = self.dry_run.then(|| change.redacted_diff());
            let ImportResult { added, skipped, variables, secrets, .. } = &taken;
            let result = json!({
                "file": change.path, "diff": diff, "backup": backup, "added": added, "skipped": skipped,
                "secrets": secrets, "variables": variables,
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
        let is_named = |client: &Client| match self.client.as_str() {
            CLAUDE => client.id.starts_with(CLAUDE),
            id => client.id == id,
        };
        let named = CLIENTS.iter().find(|client| is_named(client));
        let places: Vec<ClientConfig> = match (&self.file, named) {
            (Some(file), Some(client)) => vec![ClientConfig::named(client, world.current_dir.join(file))],
            _ => client_configs(world).into_iter().filter(|place| is_named(place.client)).collect(),
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

/// Returns the servers of the settings, each with the file that defines it. Fails if the settings are invalid.
pub fn existing_servers(world: &Environment, flags: &Flags) -> Result<BTreeMap<String, String>, AppError> {
    let loaded = load(world, flags)?;
    let origin = |name: &String| loaded.layers.origin(&format!("servers.{name}")).to_string();
    Ok(loaded.settings.servers.keys().map(|name| (name.clone(), origin(name))).collect())
}

/// Adds servers to a file, with references to their secrets. Existing entries are kept. With `suffix`, a server whose
/// name another one has is added under its name with the suffix, and one that octoprox cannot run as the client does is
/// skipped.
pub fn import_servers(
    target: &mut ServersFileEdit,
    entries: Vec<ServerEntry>,
    (known, world): (&BTreeMap<String, String>, &Environment),
    secrets: &mut ImportSecrets,
    suffix: Option<&str>,
) -> Result<ImportResult, AppError> {
    let mut taken = ImportResult::default();
    for ServerEntry { name, list, original_name, mut server, mut notes, unsupported, rules } in entries {
        secrets.extractor.extract(&name, &mut server);
        notes.extend(name_start_dir(&mut server, world));
        let skip = |why: String| ImportedServer { name: sanitize_text(&name), reason: sanitize_text(&why) };
        if let Some(why) = reason_to_stay(&unsupported, &rules).filter(|_| suffix.is_some()) {
            taken.skipped.push(skip(why));
            continue;
        }
        let dropped = || format!("rules of the client that do not apply here: {}", rules.join(", "));
        notes.extend((!rules.is_empty()).then(dropped));
        let place = |name: &str, target: &ServersFileEdit| {
            Placement::of(name, &server, target, known, (secrets, world, suffix.is_some()))
        };
        let mut placement = place(&name, target);
        if let (Placement::Taken(_), Some(suffix)) = (&placement, suffix) {
            notes.push(format!("another server is named {name}"));
            placement = place(&with_suffix(&name, suffix), target);
        }
        let mut entry = ImportedEntry {
            list,
            name: original_name,
            variables: required_variables(&server),
            mismatch: secrets.mismatch(&required_variables(&server), world),
        };
        let free = match placement {
            Placement::Free(free) => free,
            Placement::Exists(there) => {
                taken.secrets.extend(stored_secrets(&there));
                entry.variables = required_variables(&there);
                taken.imported.push(entry);
                taken.skipped.push(skip("already exists".to_owned()));
                continue;
            }
            Placement::Outdated(at) if target.remove(&at).is_ok() => at,
            Placement::Outdated(_) => {
                taken.skipped.push(skip("it exists, with variables, and cannot be edited safely".to_owned()));
                continue;
            }
            Placement::Taken(why) => {
                taken.skipped.push(skip(why));
                continue;
            }
        };
        if !secrets.fit(&stored_secrets(&server)) {
            taken.skipped.push(skip("its secret is too long to be stored".to_owned()));
            continue;
        }
        if let Err(problems) = check_server(&free, &server) {
            let why = problems.0.iter().map(|problem| format!("{} {}", problem.message, problem.hint));
            taken.skipped.push(skip(why.collect::<Vec<_>>().join(" ")));
            continue;
        }
        if let Err(why) = target.add(&free, &server) {
            let what = "use block style (`servers:` with names below it), or name another file.";
            return Err(ServersFileEdit::manual_edit_error(&target.path, &why, what));
        }
        taken.variables.extend(entry.variables.iter().cloned());
        taken.secrets.extend(stored_secrets(&server));
        taken.imported.push(entry);
        taken.added.push(ImportedServer { reason: sanitize_text(&notes.join("; ")), name: free });
    }
    Ok(taken)
}

/// Why a server stays in its client, if it must.
fn reason_to_stay(unsupported: &[String], rules: &[String]) -> Option<String> {
    if !unsupported.is_empty() {
        return Some(format!("it uses {}, which octoprox does not support", unsupported.join(", ")));
    }
    let rules = Some(rules.join(", ")).filter(|rules| !rules.is_empty())?;
    Some(format!(
        "its client has rules about its tools that would no longer apply ({rules}), so it stays there. Write them as \
         `policy` rules of octoprox and remove them there, then run the command again"
    ))
}

/// A name with a suffix, within the limit.
fn with_suffix(name: &str, suffix: &str) -> String {
    let room = MAX_SERVER_NAME_LEN.saturating_sub(suffix.len() + 1);
    let name: String = name.chars().take(room).collect();
    format!("{}-{suffix}", name.trim_end_matches(['-', '_']))
}

/// Whether a server can be added under a name.
enum Placement {
    Free(String),
    /// The same server is there.
    Exists(Map<String, Value>),
    /// The same server is there under this name, with variables whose values can be stored now.
    Outdated(String),
    /// Another server is there, with the reason to skip this one.
    Taken(String),
}

impl Placement {
    fn of(
        name: &str,
        server: &Map<String, Value>,
        target: &ServersFileEdit,
        known: &BTreeMap<String, String>,
        (secrets, world, is_setup): (&ImportSecrets, &Environment, bool),
    ) -> Self {
        let there = match target.entry(name) {
            Some(Value::Object(there)) if is_same_server(&there, server) => there,
            Some(_) => return Self::Taken("another server of this name exists and is kept".to_owned()),
            None => return Self::of_new(name, target, known),
        };
        let variables = required_variables(&there);
        if let Some(variable) = secrets.mismatch(&variables, world) {
            return Self::Taken(format!("it exists with another value of {variable} and is kept"));
        }
        let stored = stored_secrets(server);
        // The variables of a shell may not be those of a client.
        let is_unsure =
            |name: &&String| stored.contains(*name) && (is_setup || world.variable(name).is_none());
        match variables.iter().find(is_unsure) {
            Some(_) => Self::Outdated(name.to_owned()),
            None => Self::Exists(there),
        }
    }

    fn of_new(name: &str, target: &ServersFileEdit, known: &BTreeMap<String, String>) -> Self {
        if let Some(file) = known.get(name) {
            return Self::Taken(format!("another server of this name is in {file} and is kept"));
        }
        let names = target.names();
        let mut others = names.iter().chain(known.keys());
        match others.find(|other| normalized_name(other) == normalized_name(name)) {
            Some(other) => Self::Taken(format!("some clients cannot distinguish its name from `{other}`")),
            None => Self::Free(name.to_owned()),
        }
    }
}

/// Returns whether two definitions are the same, whatever form their secrets have.
fn is_same_server(there: &Map<String, Value>, server: &Map<String, Value>) -> bool {
    let normalize = |server: &Map<String, Value>| {
        let mut server = server.clone();
        for value in server.values_mut() {
            replace_references(value, &mut |name| name.strip_prefix("secret:").map(str::to_owned));
        }
        server.retain(|key, value| match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            value => key != "enabled" || *value != Value::Bool(true),
        });
        server
    };
    let (there, mut server) = (normalize(there), normalize(server));
    // Earlier versions did not write the directory.
    server.retain(|key, _| key != "cwd" || there.contains_key("cwd"));
    there == server
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
            "Set these variables where octoprox is started; their values are in the client's file.",
        );
        console::print_err("Until then, the servers that need them are disabled:");
        unset.iter().for_each(|name| console::print_err(&format!("  {name}")));
    }
    if !taken.secrets.is_empty() {
        console::print_err("Secrets of these servers, encrypted (see `octoprox secret list`):");
        taken.secrets.iter().for_each(|name| console::print_err(&format!("  {name}")));
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
