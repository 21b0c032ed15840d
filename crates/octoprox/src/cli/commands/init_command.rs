//! `octoprox init`: writes settings, imports servers and registers octoprox with clients.

mod file_undo;
mod init_answers;
mod init_plan;
mod undo_record;

use crate::app_error::AppError;
use crate::cli::commands::import_command::{
    ImportSecrets, report_written, result_lines, stored_values, unset_variables,
};
use crate::clients::{Client, ClientConfig, ClientFile, client_configs};
use crate::settings::edit::replace_file::BackupPlace;
use crate::settings::{Environment, Flags, SecretSettings, SecretStore, open_default_secret_store};
use crate::terminal::console;
use crate::terminal::prompter::Prompter;
use crate::terminal::terminal_width::{columns, wrap_words};
use crate::terminal::text_table::{definition_list, sanitize_line};
use clap::Args;
use file_undo::FileUndo;
use init_answers::{InitAnswers, needed_variables};
use init_plan::{InitPlan, PlannedChange};
use octo_model::ToolError;
use serde_json::json;
use std::path::{Path, PathBuf};
use undo_record::{UndoRecord, UndoResult};

/// Set up octoprox: write commented settings, import the servers of installed clients, and register octoprox with them.
///
/// Asks a few questions. Makes a backup of every file that it changes; --undo restores them all. A second run adds only what
/// is missing. Imported servers are removed from the clients' own lists, so that no tool appears twice. Their secrets are
/// stored, encrypted, as with `octoprox secret set`.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox init
  octoprox init --yes
  octoprox init --dry-run
  octoprox init --undo")]
pub struct Init {
    /// Accept every default without asking
    #[arg(short, long)]
    yes: bool,
    /// Print every change without making it or asking
    #[arg(long)]
    dry_run: bool,
    /// Do not import servers
    #[arg(long)]
    no_import: bool,
    /// Do not register with clients
    #[arg(long)]
    no_register: bool,
    /// Keep imported servers in the clients' own lists
    #[arg(long)]
    keep: bool,
    /// Replace secrets by environment variables instead of storing them
    #[arg(long)]
    no_secrets: bool,
    /// Restore every file that init has changed, as it was before
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "no_import", "no_register", "keep", "no_secrets"])]
    undo: bool,
    /// Print the result as JSON: {written, planned, added, skipped, registered, …}
    #[arg(long)]
    json: bool,
}

/// Variables that every process of a user has.
const USUAL_VARIABLES: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"];

/// Client that is in use on this machine, with its configuration file.
pub struct InstalledClient {
    pub config: ClientConfig,
    pub file: Option<ClientFile>,
}

impl Init {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let settings = settings_file(flags, &world)?;
        if self.undo {
            return self.run_undo(&settings, &world);
        }
        let asker = Prompter::new(self.yes || self.dry_run, "init")?;
        let mut problems = Vec::new();
        let present = self.installed_clients(&world, &mut problems);
        if asker == Prompter::Interactive {
            print_intro(&settings, &present);
        }
        let store = if self.no_secrets { None } else { secret_store(&settings, &world, &mut problems) };
        let is_set = |name: &str| world.variable(name).is_some();
        let answers = InitAnswers::ask(self, asker, &settings, &present, &is_set)?;
        let secrets = match store.filter(|_| answers.store_secrets) {
            Some(store) => {
                let needed = needed_variables(answers.imported(&present)).into_keys();
                let value = |name: String| Some((name.clone(), value_to_store(&name, &answers, &world)?));
                ImportSecrets::storing(store, needed.filter_map(value).collect())?
            }
            None => ImportSecrets::as_variables(),
        };
        let steps = InitPlan::plan(&answers, settings.clone(), present, &world, secrets, &mut problems)?;
        if self.dry_run {
            for planned in steps.changes.iter().filter(|_| !self.json) {
                console::print(&planned.change.redacted_diff_without(&steps.secret_values()))?;
            }
            return self.report(&steps, &[], &problems, &world);
        }
        let backups = self.write(&steps, &settings, &world, &mut problems)?;
        self.report(&steps, &backups, &problems, &world)
    }

    /// Stores the secrets and writes the files. A client's file that cannot be written is added to `problems`.
    fn write(
        &self,
        steps: &InitPlan,
        settings: &Path,
        world: &Environment,
        problems: &mut Vec<String>,
    ) -> Result<Vec<(PathBuf, Option<PathBuf>)>, AppError> {
        let mut record = UndoRecord::open(settings, world)?;
        if steps.changes.is_empty() && steps.imported.secrets.is_empty() {
            return Ok(Vec::new());
        }
        record.note_dir(settings);
        // Before the files that use them.
        steps.secrets.store(&steps.imported.secrets, |name, value| record.add_secret(name, value))?;
        let mut backups = Vec::new();
        for PlannedChange { change, client } in &steps.changes {
            // The file of a client may have had secrets in plain text, which were stored meanwhile.
            let folder = record.backup_dir();
            let place = match client {
                Some(_) => BackupPlace::Private(&folder),
                None => BackupPlace::Beside,
            };
            let backup = match change.write_with_backup(place) {
                Err(error) if client.is_some() => {
                    problems.push(error.text().to_owned());
                    continue;
                }
                written => written?,
            };
            record.add(change, backup.clone(), client.clone())?;
            if !self.json {
                report_written(change, backup.as_ref());
            }
            backups.push((change.path.clone(), backup));
        }
        Ok(backups)
    }

    fn run_undo(&self, settings: &Path, world: &Environment) -> Result<(), AppError> {
        let record = UndoRecord::open(settings, world)?;
        if record.is_empty() {
            let error = ToolError::not_found("Nothing to undo: `octoprox init` has changed no file.");
            return Err(error.hint("Backups have the name of the file with .bak.").into());
        }
        let mut problems = Vec::new();
        let store = secret_store(settings, world, &mut problems);
        if let (None, true, Some(why)) = (&store, record.has_secrets(), problems.first()) {
            return Err(AppError::new(format!("Nothing was changed: {why}")));
        }
        let UndoResult { files, removed_secrets, kept_secrets } = record.undo(settings, store.as_ref())?;
        let line = |undone: &FileUndo| match undone {
            FileUndo::Restored(path) => format!("restored {}", path.display()),
            FileUndo::Edited(path) => {
                format!("restored the servers in {}; other changes are kept", path.display())
            }
            FileUndo::Removed(path) => format!("removed {}", path.display()),
            FileUndo::Kept(path, why) => format!("kept {}: {why}", path.display()),
            FileUndo::Stuck(path, why) => format!("not restored: {}: {why}", path.display()),
        };
        let mut lines: Vec<String> = files.iter().map(line).collect();
        let secrets = [("removed", removed_secrets), ("kept", kept_secrets)];
        let secrets = secrets.iter().filter(|(_, names)| !names.is_empty());
        lines.extend(secrets.map(|(what, names)| format!("{what} the stored secrets: {}", names.join(", "))));
        let stuck = files.iter().filter(|undone| matches!(undone, FileUndo::Stuck(..))).count();
        if self.json {
            console::print(&json!({"undone": lines, "not_restored": stuck}).to_string())?;
        } else {
            lines.iter().try_for_each(|line| console::print(line))?;
        }
        if stuck == 0 { Ok(()) } else { Err(AppError::silent(1)) }
    }

    /// Returns the clients in use. A client whose file cannot be parsed is reported and skipped.
    fn installed_clients(&self, world: &Environment, problems: &mut Vec<String>) -> Vec<InstalledClient> {
        let mut present = Vec::new();
        for place in client_configs(world).into_iter().filter(ClientConfig::is_in_use) {
            match place.read(&world.current_dir) {
                Ok(reading) => present.push(InstalledClient { config: place, file: reading }),
                Err(why) => {
                    let title = place.client.title;
                    problems.push(format!("skipped {title}: {}: {why}.", place.path.display()));
                }
            }
        }
        present
    }

    fn report(
        &self,
        steps: &InitPlan,
        backups: &[(PathBuf, Option<PathBuf>)],
        problems: &[String],
        world: &Environment,
    ) -> Result<(), AppError> {
        let unset = unset_variables(&steps.imported, world);
        if self.json {
            let files = backups.iter().map(|(path, backup)| json!({"file": path, "backup": backup}));
            let planned = steps.changes.iter().filter(|_| self.dry_run).map(|PlannedChange { change, .. }| {
                json!({"file": change.path, "diff": change.redacted_diff_without(&steps.secret_values())})
            });
            let told = json!({
                "written": files.collect::<Vec<_>>(),
                "planned": planned.collect::<Vec<_>>(),
                "added": steps.imported.added,
                "skipped": steps.imported.skipped,
                "registered": steps.registered.iter().map(|client| client.title).collect::<Vec<_>>(),
                "secrets": steps.imported.secrets,
                "variables": unset,
                "problems": problems,
            });
            return Ok(console::print(&told.to_string())?);
        }
        for problem in problems {
            say(&format!("octoprox: {problem}"));
        }
        let registered = steps.registered.iter().map(|client| registered_line(client));
        let removed = steps.changes.iter().filter_map(removed_line);
        for line in result_lines(&steps.imported).into_iter().chain(registered).chain(removed) {
            // With --dry-run, standard output has the changes.
            if self.dry_run { console::print_err(&line) } else { console::print(&line)? }
        }
        print_next_steps(steps, &unset, self.dry_run);
        Ok(())
    }
}

/// Returns the settings file to write: the named one, else the one in the user's configuration directory. Never a
/// file in the current directory.
fn settings_file(flags: &Flags, world: &Environment) -> Result<PathBuf, AppError> {
    let named = flags.config.clone().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from));
    if let Some(named) = named {
        return Ok(world.current_dir.join(named));
    }
    let own = crate::settings::load::settings_locations::user_config_dir(world);
    own.map(|folder| folder.join("octoprox.yaml"))
        .ok_or_else(|| AppError::invalid("No home directory for the settings. Name a file with --config."))
}

/// Opens the secrets of these settings, which may not exist yet. Without them, secrets become variables.
fn secret_store(settings: &Path, world: &Environment, problems: &mut Vec<String>) -> Option<SecretStore> {
    let opened = if settings.exists() {
        let flags = Flags { config: Some(settings.to_owned()), ..Flags::default() };
        SecretSettings::read(world, &flags).map(|settings| settings.store)
    } else {
        open_default_secret_store(world)
    };
    let checked = opened.and_then(|store| stored_values(&store).map(|_| store));
    checked.map_err(|error| problems.push(format!("secrets cannot be stored: {}", error.text()))).ok()
}

/// Returns the value of a variable that is stored, so that a server works wherever octoprox is started: the one that was
/// entered, or the one of the environment.
fn value_to_store(name: &str, answers: &InitAnswers, world: &Environment) -> Option<String> {
    let set = || world.variable(name).filter(|_| !USUAL_VARIABLES.contains(&name)).map(str::to_owned);
    answers.values.get(name).cloned().or_else(set)
}

/// Tells which servers are no longer in a client's own list.
fn removed_line(PlannedChange { client, .. }: &PlannedChange) -> Option<String> {
    let client = client.as_ref().filter(|client| !client.removed.is_empty())?;
    let names: Vec<String> = client.removed.iter().map(|entry| sanitize_line(&entry.name)).collect();
    let title = Client::find(&client.id).map_or("", |client| client.title);
    Some(format!("removed from the list of {title}: {}", names.join(", ")))
}

fn registered_line(client: &Client) -> String {
    format!("registered with {}", client.title)
}

fn print_intro(settings: &std::path::Path, present: &[InstalledClient]) {
    let names: Vec<&str> = present.iter().map(|client| client.config.client.title).collect();
    let found = if names.is_empty() { "no client".to_owned() } else { names.join(", ") };
    console::print_err(&format!("Settings: {}\nFound on this machine: {found}", settings.display()));
    console::print_err("Press Enter to accept the default. Nothing is written before the last answer.\n");
}

fn say(text: &str) {
    wrap_words(text, columns()).iter().for_each(|line| console::print_err(line));
}

/// Prints the next steps.
fn print_next_steps(steps: &InitPlan, unset: &[String], dry: bool) {
    if dry {
        return say(if steps.changes.is_empty() { "Nothing would change." } else { "Nothing was written." });
    }
    if steps.changes.is_empty() {
        say("Everything is already set up.");
    }
    if !unset.is_empty() {
        say(
            "Set these variables where octoprox is started: in your shell, or under `env` of octoprox's entry in the \
             client. Until then, the servers that need them are disabled.",
        );
        unset.iter().for_each(|name| console::print_err(&format!("  {name}")));
    }
    if !steps.registered.is_empty() {
        let names: Vec<&str> = steps.registered.iter().map(|client| client.title).collect();
        say(&format!("Restart {} to load octoprox.", names.join(", ")));
    }
    let commands = [
        (!steps.imported.added.is_empty(), "octoprox servers test", "test the imported servers"),
        (!steps.imported.secrets.is_empty(), "octoprox secret list", "list the stored secrets"),
        (true, "octoprox tools", "list what an agent sees"),
        (true, "octoprox doctor", "check this machine"),
        (!steps.changes.is_empty(), "octoprox init --undo", "restore every file as it was"),
    ];
    let rows = commands.iter().filter(|(applies, ..)| *applies);
    let rows: Vec<_> = rows.map(|(_, command, about)| ((*command).to_owned(), (*about).to_owned())).collect();
    console::print_err(&format!("Next:\n{}", definition_list(&rows, columns()).trim_end()));
}
