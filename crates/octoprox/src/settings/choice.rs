//! Which settings file is in use. A project's own file is, only when a person has approved its content.

use super::problem::{Origin, Problem};
use super::settings_file::SettingsFile;
use super::trust::{Approval, TrustStore};
use super::{World, find};
use std::path::{Path, PathBuf};

/// Who chose the settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooser {
    /// `--config`, `OCTOPROX_CONFIG`, or the folder for settings.
    Person,
    /// The folder one stands in; approved with `octoprox trust`.
    Approval,
}

/// The settings file in use, if any.
pub struct Choice {
    pub path: Option<PathBuf>,
    pub chooser: Chooser,
    /// The content that was approved.
    pub approved: Option<SettingsFile>,
    /// A project's file that is left alone, and why.
    pub ignored: Option<String>,
}

impl Choice {
    pub fn new(world: &World, flag: Option<&PathBuf>, trust: &TrustStore) -> Self {
        let chosen = |path, ignored| Self { path, chooser: Chooser::Person, approved: None, ignored };
        if let Some(named) = find::named(world, flag) {
            return chosen(Some(named), None);
        }
        let Some(path) = find::project(world) else { return chosen(find::own(world), None) };
        let file = SettingsFile::open(&path).ok();
        let approval = file.as_ref().map_or(Approval::Unknown, |file| trust.approval(file));
        match (file, approval) {
            (Some(file), Approval::Approved) => {
                Self { path: Some(path), chooser: Chooser::Approval, approved: Some(file), ignored: None }
            }
            (_, approval) => chosen(find::own(world), Some(ignored("octoprox.yaml here", approval))),
        }
    }

    /// The list of servers that goes with the settings file.
    pub fn servers(&self, world: &World) -> Option<PathBuf> {
        find::servers(world, self.path.as_deref())
    }
}

/// Says that a project's file is left alone.
pub fn ignored(what: &str, approval: Approval) -> String {
    let why = match approval {
        Approval::Changed => "has changed since it was approved",
        Approval::Approved | Approval::Unknown => "is not approved",
    };
    format!("{what} {why}, so it is ignored. Read it, then run `octoprox trust`.")
}

/// Refuses a file that a person has chosen and somebody else may have written since.
pub fn refused(file: &SettingsFile, why: &str) -> Problem {
    let path = file.path.display();
    Problem::new(
        Origin::File(file.path.clone()),
        "",
        format!("{why}, so it is not used."),
        format!("Read it, then run `octoprox trust {path}`."),
    )
}

/// Whether a path lies beneath one of these folders. Both are canonical.
pub fn is_beneath(real: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| real.starts_with(folder))
}
