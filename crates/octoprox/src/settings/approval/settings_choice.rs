//! Selection of the settings file. A project's file is used only if its content was approved.

use crate::settings::Environment;
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_locations;
use std::path::{Path, PathBuf};

/// Who chose the settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooser {
    /// `--config`, `OCTOPROX_CONFIG`, or the user's configuration directory.
    Person,
    /// The current directory, approved with `octoprox trust`.
    Approval,
}

/// The settings file in use, if any.
pub struct SettingsChoice {
    pub path: Option<PathBuf>,
    pub chooser: Chooser,
    /// The approved content.
    pub approved: Option<SettingsFile>,
    /// Message about a project file that is ignored.
    pub ignored: Option<String>,
}

impl SettingsChoice {
    pub fn new(world: &Environment, flag: Option<&PathBuf>, trust: &TrustStore) -> Self {
        let chosen = |path, ignored| Self { path, chooser: Chooser::Person, approved: None, ignored };
        if let Some(named) = settings_locations::named_file(world, flag) {
            return chosen(Some(named), None);
        }
        let Some(path) = settings_locations::project_file(world) else {
            return chosen(settings_locations::user_file(world), None);
        };
        let file = SettingsFile::open(&path).ok();
        let approval = file.as_ref().map_or(Approval::Unknown, |file| trust.approval(file));
        match (file, approval) {
            (Some(file), Approval::Approved) => {
                Self { path: Some(path), chooser: Chooser::Approval, approved: Some(file), ignored: None }
            }
            (_, approval) => chosen(
                settings_locations::user_file(world),
                Some(ignored_notice("octoprox.yaml here", approval)),
            ),
        }
    }

    /// Returns the server list that belongs to the settings file.
    pub fn servers(&self, world: &Environment) -> Option<PathBuf> {
        settings_locations::servers_file(world, self.path.as_deref())
    }
}

/// Returns the message for an ignored project file.
pub fn ignored_notice(what: &str, approval: Approval) -> String {
    let why = match approval {
        Approval::Changed => "has changed since it was approved",
        Approval::Approved | Approval::Unknown => "is not approved",
    };
    format!("{what} {why}, so it is ignored. Review it, then run `octoprox trust`.")
}

/// Rejects a file that the user chose but that others may have modified since.
pub fn refused_file(file: &SettingsFile, why: &str) -> SettingsProblem {
    let path = file.path.display();
    SettingsProblem::new(
        SettingOrigin::File(file.path.clone()),
        "",
        format!("{why}, so it is not used."),
        format!("Review it, then run `octoprox trust {path}`."),
    )
}

/// Returns whether a path is below one of these directories. Both must be canonical.
pub fn is_inside_any(real: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| real.starts_with(folder))
}
