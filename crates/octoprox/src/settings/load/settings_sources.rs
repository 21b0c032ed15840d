//! The files that settings are read from, merged in order of precedence.

use crate::settings::Environment;
use crate::settings::approval::settings_choice::{self, Chooser, SettingsChoice};
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
use crate::settings::load::env_variables;
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::{servers_file, settings_locations};
use std::path::{Path, PathBuf};

/// Settings given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub servers: Option<PathBuf>,
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// Merged files, before variables, secrets and flags.
pub struct SettingsSources {
    pub layers: Layers,
    /// The settings file, if any.
    pub file: Option<PathBuf>,
    /// servers.yaml beside it, which may not exist.
    pub beside: Option<PathBuf>,
    /// File named with `--servers`.
    pub named: Option<PathBuf>,
    pub chooser: Chooser,
    /// The files that were read.
    pub read: Vec<SettingsFile>,
    pub notes: Vec<String>,
    /// Messages about project files that are ignored until they are approved.
    pub unapproved: Vec<String>,
    pub trust: TrustStore,
}

impl SettingsSources {
    pub fn read(world: &Environment, flags: &Flags) -> Result<Self, SettingsProblems> {
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
        Ok(Self { layers, file, beside, named, chooser, read, notes, unapproved, trust })
    }
}

/// Opens a file named by the user. Refuses it if it was approved with different content.
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
