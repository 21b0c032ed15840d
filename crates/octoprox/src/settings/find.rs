//! Where the settings file is.

use super::World;
use std::path::{Path, PathBuf};

/// The file that was named with `--config` or `OCTOPROX_CONFIG`. It must be there; reading it says so.
pub fn named(world: &World, flag: Option<&PathBuf>) -> Option<PathBuf> {
    let named = flag.cloned().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from))?;
    Some(world.folder.join(named))
}

/// The file of the folder one stands in, which counts only when a person has approved it.
pub fn project(world: &World) -> Option<PathBuf> {
    let path = world.folder.join("octoprox.yaml");
    let is_own = own(world).is_some_and(|own| own.canonicalize().ok() == path.canonicalize().ok());
    (path.symlink_metadata().is_ok() && !is_own).then_some(path)
}

/// The file in the folder for settings.
pub fn own(world: &World) -> Option<PathBuf> {
    own_folder(world).map(|folder| folder.join("octoprox.yaml")).filter(|path| path.is_file())
}

/// The list of servers that may lie beside the settings file, or in the folder for settings where there is none. A file
/// of that name in whatever folder one happens to stand in starts nothing.
pub fn servers(world: &World, settings: Option<&Path>) -> Option<PathBuf> {
    let folder = match settings {
        Some(file) => file.parent().map(Path::to_owned),
        None => own_folder(world),
    };
    folder.map(|folder| folder.join("servers.yaml")).filter(|list| settings != Some(list.as_path()))
}

/// The folder for settings of this user.
pub fn own_folder(world: &World) -> Option<PathBuf> {
    config_home(world).map(|home| home.join("octoprox"))
}

fn config_home(world: &World) -> Option<PathBuf> {
    home_folder(world, "XDG_CONFIG_HOME", ".config")
}

/// The folder for the hub's own data.
pub fn state_dir(world: &World) -> Option<PathBuf> {
    home_folder(world, "XDG_STATE_HOME", ".local/state").map(|home| home.join("octoprox"))
}

/// As the XDG specification says: the variable when it holds a whole path, else a folder of the home.
fn home_folder(world: &World, variable: &str, otherwise: &str) -> Option<PathBuf> {
    let told = world.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    told.or_else(|| Some(PathBuf::from(world.variable("HOME")?).join(otherwise)))
}
