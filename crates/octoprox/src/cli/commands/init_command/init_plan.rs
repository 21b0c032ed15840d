//! File changes of `octoprox init`, planned before the first write.

use crate::app_error::AppError;
use crate::cli::commands::import_command::{
    ImportResult, ImportSecrets, ImportedEntry, existing_servers, import_servers, warn_ignored,
};
use crate::cli::commands::init_command::InstalledClient;
use crate::cli::commands::init_command::init_answers::{InitAnswers, OPT_IN_TOOLBOXES};
use crate::cli::commands::init_command::undo_record::{ClientEdit, RemovedEntry};
use crate::cli::commands::servers_command::ServersFileEdit;
use crate::cli::file_change::FileChange;
use crate::clients::{Client, ClientConfig, Registration, ServerEntry, register};
use crate::process::local_programs::own_program;
use crate::settings::edit::settings_edit::ServerEdit;
use crate::settings::load::settings_locations::user_config_dir;
use crate::settings::{Environment, Flags};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Non-empty file changes, with the imported servers, their secrets and the registered clients.
pub struct InitPlan {
    pub changes: Vec<PlannedChange>,
    pub imported: ImportResult,
    pub secrets: ImportSecrets,
    pub registered: Vec<&'static Client>,
}

/// Change of a file. Those of the hub's own files come first.
pub struct PlannedChange {
    pub change: FileChange,
    /// For the file of a client.
    pub client: Option<ClientEdit>,
}

impl InitPlan {
    /// Plans the changes. A client that cannot be changed is added to `problems` and skipped.
    pub fn plan(
        answers: &InitAnswers,
        settings: PathBuf,
        present: Vec<InstalledClient>,
        world: &Environment,
        secrets: ImportSecrets,
        problems: &mut Vec<String>,
    ) -> Result<Self, AppError> {
        let flags = Flags { config: Some(settings.clone()), ..Flags::default() };
        let (changes, imported, registered) = (Vec::new(), ImportResult::default(), Vec::new());
        let mut steps = Self { changes, imported, secrets, registered };
        if !settings.exists() {
            let after = initial_settings(answers);
            steps.add(FileChange { path: settings.clone(), before: None, after }, None);
        }
        let mut target = ServersFileEdit::beside_settings(&flags, world)?;
        let known = if settings.exists() { existing_servers(world, &flags)? } else { BTreeMap::new() };
        let mut imported: HashMap<&str, Vec<ImportedEntry>> = HashMap::new();
        for client in answers.imported(&present) {
            let Some(reading) = &client.file else { continue };
            warn_ignored(&reading.servers.ignored, &client.config);
            let suffix = Some(client.config.client.id);
            let entries = reading.servers.entries.iter().cloned();
            let entries = entries.map(|entry| with_rules_of_others(entry, &present)).collect();
            let taken = import_servers(&mut target, entries, (&known, world), &mut steps.secrets, suffix)?;
            imported.insert(client.config.client.id, taken.imported);
            steps.imported.added.extend(taken.added);
            steps.imported.skipped.extend(taken.skipped);
            steps.imported.variables.extend(taken.variables);
            steps.imported.secrets.extend(taken.secrets);
        }
        steps.add(target.into_change(), None);
        let program = own_program(world.variable("PATH"))?.display().to_string();
        // With an explicit --config, a project's own octoprox.yaml has no effect.
        let args = ["stdio".to_owned(), "--config".to_owned(), settings.display().to_string()];
        let is_default = user_config_dir(world).is_some_and(|dir| dir.join("octoprox.yaml") == settings);
        let registered: Vec<_> =
            present.into_iter().filter(|client| answers.register.contains(&client.config.client)).collect();
        for client in registered {
            let entries = imported.remove(client.config.client.id).filter(|_| answers.remove);
            steps.plan_client(
                client,
                entries.unwrap_or_default(),
                (&program, &args),
                (world, is_default),
                problems,
            );
        }
        Ok(steps)
    }

    /// Plans the change of a client's file.
    fn plan_client(
        &mut self,
        InstalledClient { config: place, file: reading }: InstalledClient,
        entries: Vec<ImportedEntry>,
        (program, args): (&str, &[String]),
        (world, is_default): (&Environment, bool),
        problems: &mut Vec<String>,
    ) {
        let title = place.client.title;
        let before = reading.as_ref().map(|reading| reading.text.clone());
        let (registered, after) = match register(&place, reading.as_ref(), program, (args, is_default)) {
            Ok(Registration::AlreadyRegistered(_)) => (false, before.clone().unwrap_or_default()),
            Ok(Registration::NewText(after)) => (true, after),
            Ok(Registration::OtherHub(name)) => {
                problems.push(format!(
                    "{title}: `{name}` starts octoprox with other settings, or is disabled. Nothing was changed there."
                ));
                return;
            }
            Err(why) => {
                problems.push(registration_problem(&place.path, place.client, &why, program, args));
                return;
            }
        };
        if registered {
            self.registered.push(place.client);
        }
        let (after, removed) = remove_imported(&place, after, entries, world, problems);
        let client = ClientEdit { id: place.client.id.to_owned(), registered, removed };
        self.add(FileChange { path: place.path, before, after }, Some(client));
    }

    /// Secrets of the clients' files, which must not be shown.
    pub fn secret_values(&self) -> Vec<&String> {
        self.secrets.extractor.values().values().collect()
    }

    fn add(&mut self, change: FileChange, client: Option<ClientEdit>) {
        if !change.is_empty() {
            self.changes.push(PlannedChange { change, client });
        }
    }
}

/// A server that another client limits is not taken over from this one, either: both would get it from octoprox.
fn with_rules_of_others(mut entry: ServerEntry, present: &[InstalledClient]) -> ServerEntry {
    if !entry.rules.is_empty() {
        return entry;
    }
    for InstalledClient { config, file } in present {
        let others = file.iter().flat_map(|file| &file.servers.entries);
        let is_it =
            |other: &&ServerEntry| other.original_name == entry.original_name || other.server == entry.server;
        let rules = others.filter(is_it).flat_map(|other| &other.rules);
        let rules: Vec<String> = rules.map(|rule| format!("{}: {rule}", config.client.title)).collect();
        entry.rules.extend(rules);
    }
    entry
}

/// Removes servers that the hub has now from the client's own list, so that no tool appears twice. One that cannot be
/// removed is added to `problems`, as is one that needs a variable: only the client may know its value.
fn remove_imported(
    place: &ClientConfig,
    mut text: String,
    entries: Vec<ImportedEntry>,
    world: &Environment,
    problems: &mut Vec<String>,
) -> (String, Vec<RemovedEntry>) {
    let (title, path) = (place.client.title, place.path.display());
    let mut gone = Vec::new();
    for ImportedEntry { list, name, variables, mismatch } in entries {
        let unset = variables.iter().find(|variable| world.variable(variable).is_none());
        let why = match (unset, mismatch) {
            (Some(unset), _) => {
                Some(format!("{unset} is not set. Set it, or run `octoprox init` to enter it."))
            }
            (None, Some(variable)) => Some(format!("{variable} has another value in the environment.")),
            (None, None) => None,
        };
        if let Some(why) = why {
            problems.push(format!("{title}: `{name}` is still in its own list, because {why}"));
            continue;
        }
        let keys: Vec<&str> = list.iter().map(String::as_str).collect();
        let edit = ServerEdit { path: &place.path, list: &keys, name: &name };
        match edit.remove(&text) {
            Ok(removed) => {
                text = removed;
                gone.push(RemovedEntry { list, name });
            }
            Err(why) => problems.push(format!("{title}: {path}: {why}. Remove `{name}` there yourself.")),
        }
    }
    (text, gone)
}

fn registration_problem(path: &Path, client: &Client, why: &str, program: &str, args: &[String]) -> String {
    let (title, args) = (client.title, args.join(" "));
    format!("skipped {title}: {}: {why}. Add octoprox there yourself: {program} {args}", path.display())
}

/// Initial settings file, with further settings in comments.
fn initial_settings(answers: &InitAnswers) -> String {
    let workspace = match &answers.workspace {
        Some(folder) => format!("workspace: {}\n", serde_json::Value::from(folder.as_str())),
        None => "# workspace: ~/projects\n".to_owned(),
    };
    let about = |toolbox: &str| {
        OPT_IN_TOOLBOXES.iter().find(|(name, _)| *name == toolbox).map_or("", |(_, about)| about)
    };
    let switch =
        |(toolbox, on): &(&str, bool)| format!("  {:21}# {}\n", format!("{toolbox}: {on}"), about(toolbox));
    let switches: String = answers.switches.iter().map(switch).collect();
    format!(
        "# Settings of octoprox. All of them are optional. `octoprox config schema` describes every one,
# `octoprox config check` reports problems, `octoprox config show` prints the effective settings.

# Directory that tools work in. Default: the directory that octoprox is started in,
# unless that is / or your home directory.
{workspace}
# Toolboxes that are off by default. All others are on.
toolboxes:
{switches}
# MCP servers are defined in servers.yaml beside this file; `octoprox add` adds one.

# Where `octoprox serve` listens. Clients that start octoprox themselves need no port.
# listen:
#   host: 127.0.0.1
#   port: 7000

# Commits and pushes are dry runs unless they are allowed.
# git:
#   allow_commit: true
#   allow_push: true

# Private addresses that tools may reach; public ones need no entry.
# net:
#   allow: [wiki.local, 10.0.0.0/8]
"
    )
}

/// The initial settings file must parse.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::load::settings_format;

    #[test]
    fn what_is_written_can_be_read() {
        for (workspace, on) in [(None, false), (Some("/srv/a b".to_owned()), true)] {
            let switches = OPT_IN_TOOLBOXES.iter().map(|(name, _)| (*name, on)).collect();
            let answers = InitAnswers {
                workspace: workspace.clone(),
                switches,
                import: vec![],
                register: vec![],
                remove: true,
                store_secrets: true,
                values: Default::default(),
            };
            let text = initial_settings(&answers);
            let tree = settings_format::parse_as(Path::new("octoprox.yaml"), &text).unwrap();
            let settings: crate::settings::Settings = serde_json::from_value(tree).unwrap();
            assert_eq!(settings.toolboxes.shell, on);
            assert_eq!(settings.workspace, workspace.map(PathBuf::from));
            assert!(text.lines().all(|line| line.chars().count() <= 100));
        }
    }
}
