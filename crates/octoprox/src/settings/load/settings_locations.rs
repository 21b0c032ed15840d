//! Where the settings file is.

use crate::settings::Environment;
use std::path::{Path, PathBuf};

/// The file that was named with `--config` or `OCTOPROX_CONFIG`. It must be there; reading it says so.
pub fn named_file(world: &Environment, flag: Option<&PathBuf>) -> Option<PathBuf> {
    let named = flag.cloned().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from))?;
    Some(world.current_dir.join(named))
}

/// The file of the folder one stands in, which counts only when a person has approved it.
pub fn project_file(world: &Environment) -> Option<PathBuf> {
    let path = world.current_dir.join("octoprox.yaml");
    let is_own = user_file(world).is_some_and(|own| own.canonicalize().ok() == path.canonicalize().ok());
    (path.symlink_metadata().is_ok() && !is_own).then_some(path)
}

/// The file in the folder for settings.
pub fn user_file(world: &Environment) -> Option<PathBuf> {
    user_config_dir(world).map(|folder| folder.join("octoprox.yaml")).filter(|path| path.is_file())
}

/// The list of servers that may lie beside the settings file, or in the folder for settings where there is none. A file
/// of that name in whatever folder one happens to stand in starts nothing.
pub fn servers_file(world: &Environment, settings: Option<&Path>) -> Option<PathBuf> {
    let folder = match settings {
        Some(file) => file.parent().map(Path::to_owned),
        None => user_config_dir(world),
    };
    folder.map(|folder| folder.join("servers.yaml")).filter(|list| settings != Some(list.as_path()))
}

/// The folder for settings of this user.
pub fn user_config_dir(world: &Environment) -> Option<PathBuf> {
    config_home(world).map(|home| home.join("octoprox"))
}

fn config_home(world: &Environment) -> Option<PathBuf> {
    xdg_dir(world, "XDG_CONFIG_HOME", ".config")
}

/// The folder for the hub's own data.
pub fn state_dir(world: &Environment) -> Option<PathBuf> {
    xdg_dir(world, "XDG_STATE_HOME", ".local/state").map(|home| home.join("octoprox"))
}

/// As the XDG specification says: the variable when it holds a whole path, else a folder of the home.
fn xdg_dir(world: &Environment, variable: &str, otherwise: &str) -> Option<PathBuf> {
    let told = world.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    told.or_else(|| Some(PathBuf::from(world.variable("HOME")?).join(otherwise)))
}
