//! The folder that tools work in when no setting names one: the folder octoprox was started in, unless that is no project.

use super::Environment;
use crate::settings::check::settings_problem::SettingOrigin;
use crate::settings::load::settings_locations;
use std::path::{Path, PathBuf};

/// Why tools work where they work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceChoice {
    /// A setting, a variable or a flag names it.
    Setting(SettingOrigin),
    /// The folder that octoprox was started in.
    CurrentDir,
    /// The folder that octoprox was started in is none for tools.
    Refused { folder: PathBuf, is: &'static str },
}

impl WorkspaceChoice {
    /// Whether tools may work in the folder that octoprox was started in.
    pub fn implicit(world: &Environment) -> Self {
        match unfit_reason(world, &world.current_dir) {
            Some(is) => Self::Refused { folder: world.current_dir.clone(), is },
            None => Self::CurrentDir,
        }
    }

    /// In words, for people.
    pub fn reason(&self) -> String {
        match self {
            Self::Setting(origin) => format!("from the setting workspace ({origin})"),
            Self::CurrentDir => "the folder octoprox was started in".to_owned(),
            Self::Refused { is, .. } => format!("refused: it is {is}"),
        }
    }

    /// What tools answer when there is no folder for them.
    pub fn refusal(&self) -> Option<String> {
        let Self::Refused { is, .. } = self else { return None };
        Some(format!("The folder that octoprox was started in is {is}, so tools may not work in it."))
    }
}

/// What to do about it.
pub const WORKSPACE_HINT: &str =
    "Set `workspace` in the settings or OCTOPROX_WORKSPACE to a project's folder, or start octoprox in one.";

/// Why a folder that nobody has named is none for tools: whoever may write there decides what this user runs.
pub fn unfit_reason(world: &Environment, folder: &Path) -> Option<&'static str> {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let folder = real(folder.to_owned());
    if folder.parent().is_none() {
        return Some("the root of the file system");
    }
    let homes = world.variable("HOME").map(PathBuf::from).into_iter().chain(std::env::home_dir());
    if homes.map(real).any(|home| home == folder) {
        return Some("your home directory");
    }
    let mut own = settings_locations::user_config_dir(world)
        .into_iter()
        .chain(settings_locations::state_dir(world))
        .map(real);
    let holds = own.any(|own| own.starts_with(&folder) || folder.starts_with(&own));
    holds.then_some("where octoprox keeps its own settings and data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_no_project() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("ann");
        for folder in ["project", ".config/octoprox", ".local/state/octoprox"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(&home, home.join("project/home")).unwrap();
        let variables = [("HOME".to_owned(), home.display().to_string())].into();
        let world = Environment { variables, current_dir: home.clone() };
        for (folder, is_fit) in [
            ("/", false),
            ("/usr", true),
            (".", false),
            ("..", false),
            ("project/home", false),
            ("project/..", false),
            (".config", false),
            (".config/octoprox", false),
            (".local/state/octoprox", false),
            ("project", true),
        ] {
            assert_eq!(unfit_reason(&world, &home.join(folder)).is_none(), is_fit, "{folder}");
        }
    }
}
