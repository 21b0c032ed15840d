//! `octoprox init`: writes settings, imports servers and registers octoprox with clients.

mod init_answers;
mod init_plan;

use crate::app_error::AppError;
use crate::cli::commands::import_command::{report_written, result_lines, unset_variables};
use crate::cli::file_change::FileChange;
use crate::clients::{Client, ClientConfig, ClientFile, client_configs};
use crate::settings::{Environment, Flags};
use crate::terminal::console;
use crate::terminal::prompter::Prompter;
use crate::terminal::terminal_width::{columns, wrap_words};
use clap::Args;
use init_answers::InitAnswers;
use init_plan::InitPlan;
use serde_json::json;
use std::path::PathBuf;

/// Set up octoprox: write commented settings, import the servers of installed clients, and register octoprox with them.
///
/// Asks a few questions. Makes a backup of every file that it changes. A second run adds only what is missing. Secrets
/// are not copied: they are replaced by environment variables, whose names are printed.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox init
  octoprox init --yes
  octoprox init --dry-run")]
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
    /// Print the result as JSON: {written, planned, added, skipped, registered, …}
    #[arg(long)]
    json: bool,
}

/// Client that is in use on this machine, with its configuration file.
pub struct InstalledClient {
    pub config: ClientConfig,
    pub file: Option<ClientFile>,
}

impl Init {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let asker = Prompter::new(self.yes || self.dry_run, "init")?;
        let settings = settings_file(flags, &world)?;
        let mut problems = Vec::new();
        let present = self.installed_clients(&world, &mut problems);
        if asker == Prompter::Interactive {
            print_intro(&settings, &present);
        }
        let answers = InitAnswers::ask(self, asker, &settings, &present)?;
        let steps = InitPlan::plan(&answers, settings, present, &world, &mut problems)?;
        if self.dry_run {
            for change in steps.changes.iter().filter(|_| !self.json) {
                console::print(&change.redacted_diff())?;
            }
            return self.report(&steps, &[], &problems, &world);
        }
        let mut backups = Vec::new();
        for change in &steps.changes {
            let backup = change.write()?;
            if !self.json {
                report_written(change, backup.as_ref());
            }
            backups.push(backup);
        }
        self.report(&steps, &backups, &problems, &world)
    }

    /// Returns the clients in use. A client whose file cannot be parsed is reported and skipped.
    fn installed_clients(&self, world: &Environment, problems: &mut Vec<String>) -> Vec<InstalledClient> {
        let mut present = Vec::new();
        for place in client_configs(world).into_iter().filter(ClientConfig::is_in_use) {
            match place.read(&world.current_dir) {
                Ok(reading) => present.push(InstalledClient { config: place, file: reading }),
                Err(why) => {
                    let title = place.client.title();
                    problems.push(format!("skipped {title}: {}: {why}.", place.path.display()));
                }
            }
        }
        present
    }

    fn report(
        &self,
        steps: &InitPlan,
        backups: &[Option<PathBuf>],
        problems: &[String],
        world: &Environment,
    ) -> Result<(), AppError> {
        let unset = unset_variables(&steps.imported, world);
        if self.json {
            let files = steps.changes.iter().zip(backups);
            let files = files.map(|(change, backup)| json!({"file": change.path, "backup": backup}));
            let planned = steps.changes.iter().filter(|_| self.dry_run).map(FileChange::to_json);
            let told = json!({
                "written": files.collect::<Vec<_>>(),
                "planned": planned.collect::<Vec<_>>(),
                "added": steps.imported.added,
                "skipped": steps.imported.skipped,
                "registered": steps.registered.iter().map(|client| client.title()).collect::<Vec<_>>(),
                "variables": unset,
                "problems": problems,
            });
            return Ok(console::print(&told.to_string())?);
        }
        for problem in problems {
            console::print_err(&format!("octoprox: {problem}"));
        }
        if !self.dry_run {
            for line in result_lines(&steps.imported)
                .into_iter()
                .chain(steps.registered.iter().map(|client| registered_line(*client)))
            {
                console::print(&line)?;
            }
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

fn registered_line(client: Client) -> String {
    format!("registered with {}", client.title())
}

fn print_intro(settings: &std::path::Path, present: &[InstalledClient]) {
    let names: Vec<&str> = present.iter().map(|client| client.config.client.title()).collect();
    let found = if names.is_empty() { "no client".to_owned() } else { names.join(", ") };
    console::print_err(&format!("Settings: {}\nFound on this machine: {found}", settings.display()));
    console::print_err("Press Enter to accept the default. Nothing is written before the last answer.\n");
}

/// Prints the next steps.
fn print_next_steps(steps: &InitPlan, unset: &[String], dry: bool) {
    let say = |text: &str| wrap_words(text, columns()).iter().for_each(|line| console::print_err(line));
    if dry {
        return say(if steps.changes.is_empty() { "Nothing would change." } else { "Nothing was written." });
    }
    if steps.changes.is_empty() {
        say("Everything is already set up.");
    }
    if !unset.is_empty() {
        say(
            "\u{2022} Secrets were not copied. Set these where octoprox is started: in your shell, or under `env` of \
             octoprox's entry in the client. Until then, the servers that need them are skipped.",
        );
        unset.iter().for_each(|name| console::print_err(&format!("    {name}")));
    }
    if !steps.imported.added.is_empty() {
        say(
            "\u{2022} octoprox servers test   tests the imported servers. The clients still start them, too: \
             remove them there once everything works.",
        );
    }
    if !steps.registered.is_empty() {
        let names: Vec<&str> = steps.registered.iter().map(|client| client.title()).collect();
        say(&format!("\u{2022} Restart {} to load octoprox.", names.join(", ")));
    }
    say("\u{2022} octoprox tools          lists what an agent sees.");
    say("\u{2022} octoprox doctor         checks this machine.");
}
