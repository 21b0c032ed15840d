//! `octoprox init`: from nothing to an agent that has its tools.

mod answers;
mod steps;

use super::ask::Asker;
use super::change::Change;
use super::failure::Failure;
use super::import::{lines, unset, written};
use super::out;
use super::width::{columns, wrapped};
use crate::clients::{Client, Place, Reading, places};
use crate::settings::{Flags, World};
use answers::Answers;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use steps::Steps;

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

/// A client that is in use here, and what its file holds.
pub struct Present {
    pub place: Place,
    pub reading: Option<Reading>,
}

impl Init {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let world = World::real();
        let asker = Asker::new(self.yes || self.dry_run, "init")?;
        let settings = settings_file(flags, &world)?;
        let mut problems = Vec::new();
        let present = self.present(&world, &mut problems);
        if asker == Asker::Person {
            greet(&settings, &present);
        }
        let answers = Answers::ask(self, asker, &settings, &present)?;
        let steps = Steps::plan(&answers, settings, present, &world, &mut problems)?;
        if self.dry_run {
            for change in steps.all.iter().filter(|_| !self.json) {
                out::data(&change.shown())?;
            }
            return self.finish(&steps, &[], &problems, &world);
        }
        let mut backups = Vec::new();
        for change in &steps.all {
            let backup = change.write()?;
            if !self.json {
                written(change, backup.as_ref());
            }
            backups.push(backup);
        }
        self.finish(&steps, &backups, &problems, &world)
    }

    /// The clients that are in use. One whose file is broken is told of and left alone.
    fn present(&self, world: &World, problems: &mut Vec<String>) -> Vec<Present> {
        let mut present = Vec::new();
        for place in places(world).into_iter().filter(Place::is_in_use) {
            match place.read(&world.folder) {
                Ok(reading) => present.push(Present { place, reading }),
                Err(why) => {
                    let title = place.client.title();
                    problems.push(format!("{title} is left alone: {}: {why}.", place.path.display()));
                }
            }
        }
        present
    }

    fn finish(
        &self,
        steps: &Steps,
        backups: &[Option<PathBuf>],
        problems: &[String],
        world: &World,
    ) -> Result<(), Failure> {
        let unset = unset(&steps.taken, world);
        if self.json {
            let files = steps.all.iter().zip(backups);
            let files = files.map(|(change, backup)| json!({"file": change.path, "backup": backup}));
            let planned = steps.all.iter().filter(|_| self.dry_run).map(Change::described);
            let told = json!({
                "written": files.collect::<Vec<_>>(),
                "planned": planned.collect::<Vec<_>>(),
                "added": steps.taken.added,
                "skipped": steps.taken.skipped,
                "registered": steps.registered.iter().map(|client| client.title()).collect::<Vec<_>>(),
                "variables": unset,
                "problems": problems,
            });
            return Ok(out::data(&told.to_string())?);
        }
        for problem in problems {
            out::talk(&format!("octoprox: {problem}"));
        }
        if !self.dry_run {
            for line in lines(&steps.taken)
                .into_iter()
                .chain(steps.registered.iter().map(|client| registered(*client)))
            {
                out::data(&line)?;
            }
        }
        next(steps, &unset, self.dry_run);
        Ok(())
    }
}

/// Where settings are written: the file that was named, else the one in the folder for settings. What lies in the folder
/// one happens to stand in is never the place.
fn settings_file(flags: &Flags, world: &World) -> Result<PathBuf, Failure> {
    let named = flags.config.clone().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from));
    if let Some(named) = named {
        return Ok(world.folder.join(named));
    }
    let own = crate::settings::find::own_folder(world);
    own.map(|folder| folder.join("octoprox.yaml")).ok_or_else(|| {
        Failure::invalid("There is no home folder to keep settings in. Name a file with --config.")
    })
}

fn registered(client: Client) -> String {
    format!("registered with {}", client.title())
}

fn greet(settings: &std::path::Path, present: &[Present]) {
    let names: Vec<&str> = present.iter().map(|client| client.place.client.title()).collect();
    let found = if names.is_empty() { "no client".to_owned() } else { names.join(", ") };
    out::talk(&format!("Settings: {}\nFound on this machine: {found}", settings.display()));
    out::talk("Enter takes what stands in brackets. Nothing is written before the last answer.\n");
}

/// What to do now.
fn next(steps: &Steps, unset: &[String], dry: bool) {
    let say = |text: &str| wrapped(text, columns()).iter().for_each(|line| out::talk(line));
    if dry {
        return say(if steps.all.is_empty() { "Nothing would change." } else { "Nothing was written." });
    }
    if steps.all.is_empty() {
        say("Everything was in place already.");
    }
    if !unset.is_empty() {
        say(
            "\u{2022} Secrets were not copied. Set these where octoprox is started: in your shell, or under `env` of \
             octoprox's entry in the client. Until then their servers are left out.",
        );
        unset.iter().for_each(|name| out::talk(&format!("    {name}")));
    }
    if !steps.taken.added.is_empty() {
        say(
            "\u{2022} octoprox servers test   tries the servers that were taken over. The clients still start them, too: \
             take them out there once all is well.",
        );
    }
    if !steps.registered.is_empty() {
        let names: Vec<&str> = steps.registered.iter().map(|client| client.title()).collect();
        say(&format!("\u{2022} Restart {} so that it finds octoprox.", names.join(", ")));
    }
    say("\u{2022} octoprox tools          lists what an agent sees.");
    say("\u{2022} octoprox doctor         checks this machine.");
}
