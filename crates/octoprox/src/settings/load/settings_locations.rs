//! Locations of the settings files.

use crate::settings::Environment;
use std::path::{Path, PathBuf};

/// Returns the file given with `--config` or `OCTOPROX_CONFIG`. Reading it fails if it does not exist.
pub fn named_file(world: &Environment, flag: Option<&PathBuf>) -> Option<PathBuf> {
    let named = flag.cloned().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from))?;
    Some(world.current_dir.join(named))
}

/// Returns the settings file in the current directory. It is used only if approved.
pub fn project_file(world: &Environment) -> Option<PathBuf> {
    let path = world.current_dir.join("octoprox.yaml");
    let is_own = user_file(world).is_some_and(|own| own.canonicalize().ok() == path.canonicalize().ok());
    (path.symlink_metadata().is_ok() && !is_own).then_some(path)
}

/// Returns the settings file in the user's configuration directory.
pub fn user_file(world: &Environment) -> Option<PathBuf> {
    user_config_dir(world).map(|folder| folder.join("octoprox.yaml")).filter(|path| path.is_file())
}

/// Returns the path of `servers.yaml` next to the settings file, or in the configuration directory if there is no
/// settings file. A `servers.yaml` in the current directory alone is not used.
pub fn servers_file(world: &Environment, settings: Option<&Path>) -> Option<PathBuf> {
    let folder = match settings {
        Some(file) => file.parent().map(Path::to_owned),
        None => user_config_dir(world),
    };
    folder.map(|folder| folder.join("servers.yaml")).filter(|list| settings != Some(list.as_path()))
}

/// Returns the user's configuration directory of octoprox.
pub fn user_config_dir(world: &Environment) -> Option<PathBuf> {
    config_home(world).map(|home| home.join("octoprox"))
}

fn config_home(world: &Environment) -> Option<PathBuf> {
    xdg_dir(world, "XDG_CONFIG_HOME", ".config")
}

/// Returns the default state directory.
pub fn state_dir(world: &Environment) -> Option<PathBuf> {
    xdg_dir(world, "XDG_STATE_HOME", ".local/state").map(|home| home.join("octoprox"))
}

/// Resolves a directory as in the XDG specification: the variable if it is an absolute path, otherwise a directory in
/// the home directory.
fn xdg_dir(world: &Environment, variable: &str, otherwise: &str) -> Option<PathBuf> {
    let told = world.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    told.or_else(|| Some(PathBuf::from(world.variable("HOME")?).join(otherwise)))
}
