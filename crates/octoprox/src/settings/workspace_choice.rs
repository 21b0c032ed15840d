//! Default workspace: the directory octoprox was started in, unless it is unsuitable.

use super::Environment;
use crate::settings::check::settings_problem::SettingOrigin;
use crate::settings::load::settings_locations;
use std::path::{Path, PathBuf};

/// How the workspace was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceChoice {
    /// Set by a setting, a variable or a flag.
    Setting(SettingOrigin),
    /// The directory octoprox was started in.
    CurrentDir,
    /// The directory octoprox was started in is unsuitable.
    Refused { folder: PathBuf, is: &'static str },
}

impl WorkspaceChoice {
    /// Chooses the directory octoprox was started in, if it is suitable.
    pub fn implicit(world: &Environment) -> Self {
        match unfit_reason(world, &world.current_dir) {
            Some(is) => Self::Refused { folder: world.current_dir.clone(), is },
            None => Self::CurrentDir,
        }
    }

    /// Describes the choice for users.
    pub fn reason(&self) -> String {
        match self {
            Self::Setting(origin) => format!("from the setting workspace ({origin})"),
            Self::CurrentDir => "the directory octoprox was started in".to_owned(),
            Self::Refused { is, .. } => format!("refused: it is {is}"),
        }
    }

    /// Error message of tools if there is no workspace.
    pub fn refusal(&self) -> Option<String> {
        let Self::Refused { is, .. } = self else { return None };
        Some(format!("No workspace: octoprox was started in {is}, which tools must not use."))
    }
}

/// Hint for that error.
pub const WORKSPACE_HINT: &str =
    "Set `workspace` in the settings or OCTOPROX_WORKSPACE to a project directory, or start octoprox in one.";

/// Returns why a directory that was not chosen explicitly is unsuitable: write access to it would let tools control
/// what this user runs.
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
    holds.then_some("the directory of octoprox's own settings or data")
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
