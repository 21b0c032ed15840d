//! From file, environment and flags to checked settings.

use crate::settings::approval::approval_guard::{ApprovalGuard, protected_paths};
use crate::settings::approval::settings_choice::{self, Chooser, SettingsChoice};
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
use crate::settings::check::{schema_problems, settings_check};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::unset_variables::UnsetVariables;
use crate::settings::load::{
    api_keys, env_variables, interpolation, resolve_paths, servers_file, settings_locations,
};
use crate::settings::workspace_choice::WorkspaceChoice;
use crate::settings::{Environment, Settings};
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
pub struct LoadedSettings {
    pub settings: Settings,
    pub layers: Layers,
    /// The file, when there is one.
    pub file: Option<PathBuf>,
    /// Every file that servers are read from, also one that is not there yet, and the list of approved files.
    pub watched_files: Vec<PathBuf>,
    /// Servers that are left out because a variable is not set.
    pub unset_variables: UnsetVariables,
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
enum LoadPurpose {
    Apply,
    Compare,
}

/// Reads everything and says everything that is wrong at once.
pub fn load(world: &Environment, flags: &Flags) -> Result<LoadedSettings, SettingsProblems> {
    load_for(world, flags, LoadPurpose::Apply)
}

/// The same for settings that nothing is done with, so that nobody needs to have approved them.
pub fn load_for_comparison(world: &Environment, flags: &Flags) -> Result<Settings, SettingsProblems> {
    load_for(world, flags, LoadPurpose::Compare).map(|loaded| loaded.settings)
}

fn load_for(
    world: &Environment,
    flags: &Flags,
    usage: LoadPurpose,
) -> Result<LoadedSettings, SettingsProblems> {
    let mut layers = Layers::default();
    let trust = TrustStore::open(world)?;
    let SettingsChoice { path: file, chooser, approved, ignored } =
        SettingsChoice::new(world, flags.config.as_ref(), &trust);
    let mut unapproved: Vec<String> = ignored.into_iter().collect();
    let mut read = Vec::new();
    if let Some(path) = &file {
        let opened = approved.map_or_else(|| open_unchanged(path, &trust), Ok)?;
        layers.merge(opened.tree()?, &SettingOrigin::File(path.clone()));
        read.push(opened);
    }
    let mut notes = env_variables::unknown_variables(world);
    let beside = settings_locations::servers_file(world, file.as_deref());
    if let Some(path) = beside.as_deref().filter(|path| path.is_file()) {
        let opened = SettingsFile::open(path)?;
        match (chooser, trust.approval(&opened)) {
            (Chooser::Person, Approval::Changed) => return Err(changed_problem(&opened).into()),
            (Chooser::Approval, approval @ (Approval::Changed | Approval::Unknown)) => {
                unapproved.push(settings_choice::ignored_notice("servers.yaml here", approval));
            }
            (_, Approval::Approved | Approval::Unknown) => {
                notes.extend(servers_file::merge_own(&mut layers, &opened)?);
                read.push(opened);
            }
        }
    }
    let named = flags.servers.as_ref().map(|path| world.current_dir.join(path));
    if let Some(path) = &named {
        let opened = open_unchanged(path, &trust)?;
        notes.extend(servers_file::merge_foreign(&mut layers, &opened)?);
        read.push(opened);
    }
    let mut filled = interpolation::interpolate(&mut layers, world);
    filled.secrets.extend(api_keys::apply_api_keys(&mut layers, world, &mut filled.missing));
    notes.extend(filled.missing.disable_servers(&mut layers));
    let mut problems = filled.problems;
    problems.extend(env_variables::merge_env(&mut layers, world));
    merge_flags(&mut layers, flags);
    let workspace = resolve_paths::resolve_paths(&mut layers, world);
    let mut secrets = filled.secrets;
    secrets.extend(env_variables::env_secrets(world));
    let settings = deserialize(&layers, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => {
            let guard = ApprovalGuard::new(&settings, &trust);
            if usage == LoadPurpose::Apply {
                problems.extend(guard.problems(&read, chooser));
            }
            if !problems.is_empty() {
                return Err(SettingsProblems(problems));
            }
            let approve = guard.approval_check(&read, chooser);
            let followed: Vec<PathBuf> = file.iter().cloned().chain(beside).chain(named).collect();
            let protected = protected_paths(world, &settings, &trust, &followed);
            let followed = followed.into_iter().chain(trust.path()).collect();
            let missing = filled.missing;
            Ok(LoadedSettings {
                settings,
                layers,
                file,
                watched_files: followed,
                unset_variables: missing,
                secrets,
                notes,
                unapproved,
                workspace,
                protected,
                approve,
                trust,
            })
        }
        _ => Err(SettingsProblems(problems)),
    }
}

/// A file that a person has named, unless it was approved once with another content.
fn open_unchanged(path: &Path, trust: &TrustStore) -> Result<SettingsFile, SettingsProblem> {
    let file = SettingsFile::open(path)?;
    match trust.approval(&file) {
        Approval::Changed => Err(changed_problem(&file)),
        Approval::Approved | Approval::Unknown => Ok(file),
    }
}

fn changed_problem(file: &SettingsFile) -> SettingsProblem {
    settings_choice::refused_file(file, "the file has changed since it was approved")
}

/// Whether one server would hold together, before it is written anywhere. What variables it needs is another matter.
pub fn check_server(name: &str, server: &Map<String, Value>) -> Result<(), SettingsProblems> {
    let mut server = server.clone();
    if Value::Object(server.clone()).to_string().contains("${") {
        server.insert("enabled".to_owned(), Value::Bool(false));
    }
    let mut layers = Layers::default();
    let list = Map::from_iter([(name.to_owned(), Value::Object(server))]);
    layers.merge(Map::from_iter([("servers".to_owned(), Value::Object(list))]), &SettingOrigin::Default);
    let mut problems = Vec::new();
    deserialize(&layers, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(SettingsProblems(problems)) }
}

fn merge_flags(layers: &mut Layers, flags: &Flags) {
    if let Some(host) = &flags.host {
        layers.set("listen.host", Value::from(host.as_str()), &SettingOrigin::Flag("--host"));
    }
    if let Some(port) = flags.port {
        layers.set("listen.port", Value::from(port), &SettingOrigin::Flag("--port"));
    }
}

/// The types know what fits; only when something does not is the schema asked for every place at once.
fn deserialize(layers: &Layers, problems: &mut Vec<SettingsProblem>) -> Option<Settings> {
    match serde_json::from_value::<Settings>(layers.tree()) {
        Ok(settings) => {
            problems.extend(settings_check::check_settings(&settings, layers));
            Some(settings)
        }
        Err(error) => {
            let explained = schema_problems::schema_problems(layers);
            if explained.is_empty() {
                problems.push(SettingsProblem::new(
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
