//! Loads and checks settings from files, environment and flags.

use crate::packages::ServersLock;
use crate::settings::approval::approval_guard::{ApprovalGuard, protected_paths};
use crate::settings::approval::script_scope::ScriptScope;
use crate::settings::approval::trust_store::TrustStore;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
use crate::settings::check::{schema_problems, settings_check};
use crate::settings::load::package_digests::PackageDigests;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::settings_sources::{Flags, SettingsSources};
use crate::settings::load::unset_variables::UnsetVariables;
use crate::settings::load::{api_keys, env_variables, interpolation, resolve_paths, secret_references};
use crate::settings::workspace_choice::WorkspaceChoice;
use crate::settings::{Environment, Settings};
use octo_grants::config_dirs::FileApproval;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Valid settings, with information about their sources.
pub struct LoadedSettings {
    pub settings: Settings,
    pub layers: Layers,
    /// The settings file, if any.
    pub file: Option<PathBuf>,
    /// Every file that servers are read from, including files that do not exist yet, and the list of approved files.
    pub watched_files: Vec<PathBuf>,
    /// Servers that are disabled because a variable is not set or a secret is not stored.
    pub unset_variables: UnsetVariables,
    /// Stored secrets and API keys in the settings, and values of variables with secret names.
    pub secrets: Vec<String>,
    /// Notes that are not errors.
    pub notes: Vec<String>,
    /// Messages about project files that are ignored until they are approved.
    pub unapproved: Vec<String>,
    /// How the workspace was chosen.
    pub workspace: WorkspaceChoice,
    /// Canonical paths of the files and directories that determine what runs.
    pub protected: Vec<PathBuf>,
    /// Approval check for the files named in the settings.
    pub approve: Option<FileApproval>,
    /// Scripts that need an approval, if the settings do.
    pub scripts: Option<ScriptScope>,
    /// Records of approved files.
    pub trust: TrustStore,
}

/// Whether the settings are applied or only compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadPurpose {
    Apply,
    Compare,
}

/// Loads the settings and reports all problems at once.
pub fn load(world: &Environment, flags: &Flags) -> Result<LoadedSettings, SettingsProblems> {
    load_for(world, flags, LoadPurpose::Apply)
}

/// Loads settings for comparison only, which requires no approval.
pub fn load_for_comparison(world: &Environment, flags: &Flags) -> Result<Settings, SettingsProblems> {
    load_for(world, flags, LoadPurpose::Compare).map(|loaded| loaded.settings)
}

fn load_for(
    world: &Environment,
    flags: &Flags,
    usage: LoadPurpose,
) -> Result<LoadedSettings, SettingsProblems> {
    let SettingsSources {
        mut layers,
        file,
        beside,
        named,
        chooser,
        mut read,
        mut notes,
        mut unapproved,
        trust,
    } = SettingsSources::read(world, flags)?;
    let mut filled = interpolation::interpolate(&mut layers, world);
    secret_references::resolve_secrets(&mut filled, &mut layers, world);
    filled.secrets.extend(api_keys::apply_api_keys(&mut layers, world, &mut filled.missing));
    notes.extend(filled.missing.disable_servers(&mut layers));
    let mut problems = filled.problems;
    problems.extend(env_variables::merge_env(&mut layers, world));
    merge_flags(&mut layers, flags);
    let workspace = resolve_paths::resolve_paths(&mut layers, world);
    let digests = PackageDigests::fill(&mut layers, &trust, chooser);
    problems.extend(digests.problems);
    unapproved.extend(digests.unapproved);
    read.extend(digests.read);
    filled.secrets.extend(env_variables::env_secrets(world));
    let settings = deserialize(&layers, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => {
            let guard = ApprovalGuard::new(&settings, &trust);
            if usage == LoadPurpose::Apply {
                problems.extend(guard.problems(&read, chooser));
            }
            if !problems.is_empty() {
                return Err(SettingsProblems(problems).without(filled.secrets));
            }
            let approve = guard.approval_check(&read, chooser);
            let scripts = guard.script_scope(&read, chooser, &layers.tree());
            unapproved.extend(unapproved_scripts(&settings, scripts.as_ref()));
            let followed = with_lock_files(file.iter().cloned().chain(beside).chain(named).collect());
            // Between the check of a script and its start, no tool may replace it.
            let scripts_named = scripts.iter().flat_map(|scope| scope.records(&layers.tree()));
            let kept = followed.iter().cloned().chain(scripts_named.map(|record| record.path));
            let protected = protected_paths(world, &settings, &trust, &kept.collect::<Vec<_>>());
            Ok(LoadedSettings {
                settings,
                layers,
                file,
                watched_files: followed.into_iter().chain(trust.path()).collect(),
                unset_variables: filled.missing,
                secrets: filled.secrets,
                notes,
                unapproved,
                workspace,
                protected,
                approve,
                scripts,
                trust,
            })
        }
        _ => Err(SettingsProblems(problems).without(filled.secrets)),
    }
}

/// Messages about servers that do not start until their scripts are approved.
fn unapproved_scripts(settings: &Settings, scripts: Option<&ScriptScope>) -> Vec<String> {
    let enabled = settings.servers.iter().filter(|(_, server)| server.enabled);
    let refused = enabled.filter_map(|(name, server)| scripts?.check(name, server).err());
    refused
        .map(|error| [Some(error.message), error.hint].into_iter().flatten().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Adds the lock file of each file with servers.
fn with_lock_files(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut locks: Vec<PathBuf> = files.iter().map(|file| ServersLock::path_beside(file)).collect();
    locks.dedup();
    files.extend(locks);
    files
}

/// Checks a server definition before it is written, with placeholders for variables and secrets.
pub fn check_server(name: &str, server: &Map<String, Value>) -> Result<(), SettingsProblems> {
    let mut layers = Layers::default();
    let list = Map::from_iter([(name.to_owned(), Value::Object(server.clone()))]);
    layers.merge(Map::from_iter([("servers".to_owned(), Value::Object(list))]), &SettingOrigin::Default);
    let mut problems = Vec::new();
    layers.for_each_text(&mut |path, text| {
        let is_url = path.ends_with(".url") || path.ends_with(".document");
        match interpolation::with_placeholders(text) {
            Ok(_) if is_url && text.starts_with("${") => *text = "https://placeholder.example".to_owned(),
            Ok(whole) => *text = whole,
            Err(problem) => problems.push(problem),
        }
    });
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

/// Deserializes the settings. On failure, validates against the schema to report all problems at once.
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
                    format!("invalid settings: {error}."),
                    "Fix this.",
                ));
            }
            problems.extend(explained);
            None
        }
    }
}

#[cfg(test)]
mod tests;
