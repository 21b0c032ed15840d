//! From file, environment and flags to checked settings.

use super::choice::{self, Choice, Chooser};
use super::guard::{Guard, protected};
use super::layers::Layers;
use super::missing::Missing;
use super::problem::{Origin, Problem, Problems};
use super::settings_file::SettingsFile;
use super::trust::{Approval, TrustStore};
use super::workspace_choice::WorkspaceChoice;
use super::{Settings, World, check, explain, find, interpolate, keys, paths, servers_file, variables};
use octo_grants::config_dirs::FileApproval;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// What the command line says about settings.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub servers: Option<PathBuf>,
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// Settings that hold together, and what is to be known about them.
pub struct Loaded {
    pub settings: Settings,
    pub layers: Layers,
    /// The file, when there is one.
    pub file: Option<PathBuf>,
    /// Every file that servers are read from, also one that is not there yet, and the list of approved files.
    pub followed: Vec<PathBuf>,
    /// Servers that are left out because a variable is not set.
    pub missing: Missing,
    /// Values that came from variables with secret names, wherever they ended up.
    pub secrets: Vec<String>,
    /// What is no error and yet worth knowing.
    pub notes: Vec<String>,
    /// Files of a project that are left alone until a person approves them, as sentences.
    pub unapproved: Vec<String>,
    /// Why tools work where they work.
    pub workspace: WorkspaceChoice,
    /// Files and folders that decide what runs, by their canonical paths.
    pub protected: Vec<PathBuf>,
    /// What of the files that the settings name counts.
    pub approve: Option<FileApproval>,
    /// The records of approved files.
    pub trust: TrustStore,
}

/// Whether settings are obeyed, or only compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Obeyed,
    Compared,
}

/// Reads everything and says everything that is wrong at once.
pub fn load(world: &World, flags: &Flags) -> Result<Loaded, Problems> {
    load_for(world, flags, Use::Obeyed)
}

/// The same for settings that nothing is done with, so that nobody needs to have approved them.
pub fn load_to_compare(world: &World, flags: &Flags) -> Result<Settings, Problems> {
    load_for(world, flags, Use::Compared).map(|loaded| loaded.settings)
}

fn load_for(world: &World, flags: &Flags, usage: Use) -> Result<Loaded, Problems> {
    let mut layers = Layers::default();
    let trust = TrustStore::open(world)?;
    let Choice { path: file, chooser, approved, ignored } = Choice::new(world, flags.config.as_ref(), &trust);
    let mut unapproved: Vec<String> = ignored.into_iter().collect();
    let mut read = Vec::new();
    if let Some(path) = &file {
        let opened = approved.map_or_else(|| unchanged(path, &trust), Ok)?;
        layers.lay(opened.tree()?, &Origin::File(path.clone()));
        read.push(opened);
    }
    let mut notes = variables::unknown(world);
    let beside = find::servers(world, file.as_deref());
    if let Some(path) = beside.as_deref().filter(|path| path.is_file()) {
        let opened = SettingsFile::open(path)?;
        match (chooser, trust.approval(&opened)) {
            (Chooser::Person, Approval::Changed) => return Err(changed(&opened).into()),
            (Chooser::Approval, approval @ (Approval::Changed | Approval::Unknown)) => {
                unapproved.push(choice::ignored("servers.yaml here", approval));
            }
            (_, Approval::Approved | Approval::Unknown) => {
                notes.extend(servers_file::lay_own(&mut layers, &opened)?);
                read.push(opened);
            }
        }
    }
    let named = flags.servers.as_ref().map(|path| world.folder.join(path));
    if let Some(path) = &named {
        let opened = unchanged(path, &trust)?;
        notes.extend(servers_file::lay(&mut layers, &opened)?);
        read.push(opened);
    }
    let mut filled = interpolate::fill(&mut layers, world);
    filled.secrets.extend(keys::give(&mut layers, world, &mut filled.missing));
    notes.extend(filled.missing.leave_out(&mut layers));
    let mut problems = filled.problems;
    problems.extend(variables::lay(&mut layers, world));
    lay_flags(&mut layers, flags);
    let workspace = paths::settle(&mut layers, world);
    let mut secrets = filled.secrets;
    secrets.extend(variables::secrets(world));
    let settings = typed(&layers, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => {
            let guard = Guard::new(&settings, &trust);
            if usage == Use::Obeyed {
                problems.extend(guard.problems(&read, chooser));
            }
            if !problems.is_empty() {
                return Err(Problems(problems));
            }
            let approve = guard.approve(&read, chooser);
            let followed: Vec<PathBuf> = file.iter().cloned().chain(beside).chain(named).collect();
            let protected = protected(world, &settings, &trust, &followed);
            let followed = followed.into_iter().chain(trust.path()).collect();
            let missing = filled.missing;
            Ok(Loaded {
                settings,
                layers,
                file,
                followed,
                missing,
                secrets,
                notes,
                unapproved,
                workspace,
                protected,
                approve,
                trust,
            })
        }
        _ => Err(Problems(problems)),
    }
}

/// A file that a person has named, unless it was approved once with another content.
fn unchanged(path: &Path, trust: &TrustStore) -> Result<SettingsFile, Problem> {
    let file = SettingsFile::open(path)?;
    match trust.approval(&file) {
        Approval::Changed => Err(changed(&file)),
        Approval::Approved | Approval::Unknown => Ok(file),
    }
}

fn changed(file: &SettingsFile) -> Problem {
    choice::refused(file, "the file has changed since it was approved")
}

/// Whether one server would hold together, before it is written anywhere. What variables it needs is another matter.
pub fn check_one(name: &str, server: &Map<String, Value>) -> Result<(), Problems> {
    let mut server = server.clone();
    if Value::Object(server.clone()).to_string().contains("${") {
        server.insert("enabled".to_owned(), Value::Bool(false));
    }
    let mut layers = Layers::default();
    let list = Map::from_iter([(name.to_owned(), Value::Object(server))]);
    layers.lay(Map::from_iter([("servers".to_owned(), Value::Object(list))]), &Origin::Default);
    let mut problems = Vec::new();
    typed(&layers, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

fn lay_flags(layers: &mut Layers, flags: &Flags) {
    if let Some(host) = &flags.host {
        layers.set("listen.host", Value::from(host.as_str()), &Origin::Flag("--host"));
    }
    if let Some(port) = flags.port {
        layers.set("listen.port", Value::from(port), &Origin::Flag("--port"));
    }
}

/// The types know what fits; only when something does not is the schema asked for every place at once.
fn typed(layers: &Layers, problems: &mut Vec<Problem>) -> Option<Settings> {
    match serde_json::from_value::<Settings>(layers.tree()) {
        Ok(settings) => {
            problems.extend(check::check(&settings, layers));
            Some(settings)
        }
        Err(error) => {
            let explained = explain::explain(layers);
            if explained.is_empty() {
                problems.push(Problem::new(
                    layers.origin(""),
                    "",
                    format!("the settings do not fit: {error}."),
                    "Mend that.",
                ));
            }
            problems.extend(explained);
            None
        }
    }
}

#[cfg(test)]
mod tests;
