//! `octoprox import`: the servers that a client has already.

use super::change::Change;
use super::failure::Failure;
use super::out;
use super::servers::Target;
use super::table::harmless;
use crate::clients::{Client, Entry, Place, Vault, needed, places};
use crate::settings::{Flags, World, check_one, load};
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
pub struct Taken {
    pub added: Vec<Told>,
    pub skipped: Vec<Told>,
    /// Variables that have to be set, those that stand for secrets among them.
    pub variables: BTreeSet<String>,
}

/// A server, and what is to be known about it.
#[derive(Serialize)]
pub struct Told {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Import {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let world = World::real();
        let found = self.found(&world)?;
        let mut target = match &self.to {
            Some(to) => Target::open(world.folder.join(to))?,
            None => Target::list(flags, &world)?,
        };
        let mut vault = Vault::default();
        let known = if self.to.is_some() { BTreeMap::new() } else { known(&world, flags) };
        let taken = take(&mut target, found, &known, &mut vault)?;
        let change = target.change();
        if self.dry_run {
            out::data(&change.preview(self.json))?;
            return tell(&taken, &world);
        }
        let backup = if change.is_none() { None } else { change.write()? };
        if self.json {
            let Taken { added, skipped, variables } = &taken;
            let told = json!({
                "file": change.path, "backup": backup, "added": added, "skipped": skipped, "variables": variables,
            });
            return Ok(out::data(&told.to_string())?);
        }
        for line in lines(&taken) {
            out::data(&line)?;
        }
        written(&change, backup.as_ref());
        tell(&taken, &world)
    }

    /// The servers of the client's files. One of several may be missing; all of them may not.
    fn found(&self, world: &World) -> Result<Vec<Entry>, Failure> {
        let clients = self.client.clients();
        let places: Vec<Place> = match (&self.file, clients.first()) {
            (Some(file), Some(client)) => vec![Place::named(*client, world.folder.join(file))],
            _ => places(world).into_iter().filter(|place| clients.contains(&place.client)).collect(),
        };
        let mut found = Vec::new();
        let mut seen = false;
        for place in &places {
            let read = place.read(&world.folder).map_err(|why| {
                Failure::invalid(format!(
                    "{}: {why}. Mend it, or name another with --file.",
                    place.path.display()
                ))
            })?;
            if let Some(reading) = read {
                seen = true;
                strange(&reading.found.strange, place);
                found.extend(reading.found.entries);
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
pub fn strange(names: &[String], place: &Place) {
    for name in names {
        let path = place.path.display();
        out::talk(&format!("octoprox: {path}: `{}` is no server and is left out", harmless(name)));
    }
}

/// The servers that the settings have by now, and where from.
pub fn known(world: &World, flags: &Flags) -> BTreeMap<String, String> {
    let Ok(loaded) = load(world, flags) else { return BTreeMap::new() };
    let origin = |name: &String| loaded.layers.origin(&format!("servers.{name}")).to_string();
    loaded.settings.servers.keys().map(|name| (name.clone(), origin(name))).collect()
}

/// Puts servers into a list, with variables for their secrets. What is there already is not touched.
pub fn take(
    target: &mut Target,
    entries: Vec<Entry>,
    known: &BTreeMap<String, String>,
    vault: &mut Vault,
) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    for Entry { name, mut server, notes } in entries {
        vault.take(&name, &mut server);
        let skip = |why: String| Told { name: harmless(&name), why };
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
        if let Err(problems) = check_one(&name, &server) {
            let why = problems.0.iter().map(|problem| format!("{} {}", problem.what, problem.remedy));
            taken.skipped.push(skip(why.collect::<Vec<_>>().join(" ")));
            continue;
        }
        if let Err(why) = target.add(&name, &server) {
            let what = "give it block style (`servers:` with names below it), or name another file.";
            return Err(Target::by_hand(&target.path, &why, what));
        }
        taken.variables.extend(needed(&server));
        taken.added.push(Told { why: harmless(&notes.join("; ")), name });
    }
    Ok(taken)
}

/// One line for each server.
pub fn lines(taken: &Taken) -> Vec<String> {
    let line = |word: &str, told: &Told| match told.why.as_str() {
        "" => format!("{word} {}", told.name),
        why => format!("{word} {}: {why}", told.name),
    };
    let added = taken.added.iter().map(|told| line("added", told));
    added.chain(taken.skipped.iter().map(|told| line("skipped", told))).collect()
}

/// Says where something was written.
pub fn written(change: &Change, backup: Option<&PathBuf>) {
    if change.is_none() {
        return;
    }
    match backup {
        Some(backup) => {
            out::talk(&format!("Wrote {}; the old file is {}.", change.path.display(), backup.display()))
        }
        None => out::talk(&format!("Wrote {}.", change.path.display())),
    }
}

/// Says what is left to do.
fn tell(taken: &Taken, world: &World) -> Result<(), Failure> {
    let unset = unset(taken, world);
    if !unset.is_empty() {
        out::talk("Secrets are not copied. Set these where octoprox is started; their values stand in");
        out::talk("the client's file. Until then their servers are left out:");
        unset.iter().for_each(|name| out::talk(&format!("  {name}")));
    }
    if !taken.added.is_empty() {
        out::talk("Next: octoprox servers test");
    }
    Ok(())
}

/// The variables that nobody has set yet.
pub fn unset(taken: &Taken, world: &World) -> Vec<String> {
    taken.variables.iter().filter(|name| world.variable(name).is_none()).cloned().collect()
}
