//! Where the settings file is.

use super::World;
use std::path::PathBuf;

/// The file that was named, or the first that is there. A named one must be there; reading it says so.
pub fn find(world: &World, named: Option<&PathBuf>) -> Option<PathBuf> {
    let named = named.cloned().or_else(|| world.variable("OCTOPROX_CONFIG").map(PathBuf::from));
    if let Some(named) = named {
        return Some(world.folder.join(named));
    }
    let here = world.folder.join("octoprox.yaml");
    let own = config_home(world).map(|home| home.join("octoprox/octoprox.yaml"));
    [Some(here), own].into_iter().flatten().find(|path| path.is_file())
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
