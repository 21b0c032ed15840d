//! From file, environment and flags to checked settings.

use super::layers::Layers;
use super::problem::{Origin, Problem, Problems};
use super::{Settings, World, check, explain, file, find, interpolate, paths, servers_file, variables};
use serde_json::Value;
use std::path::PathBuf;

/// What the command line says about settings.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub servers: Option<PathBuf>,
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// Settings that hold together, and what is to be known about them.
pub struct Loaded {
    pub settings: Settings,
    pub layers: Layers,
    /// The file, when there is one.
    pub file: Option<PathBuf>,
    /// Values that came from variables with secret names, wherever they ended up.
    pub secrets: Vec<String>,
    /// What is no error and yet worth knowing.
    pub notes: Vec<String>,
}

/// Reads everything and says everything that is wrong at once.
pub fn load(world: &World, flags: &Flags) -> Result<Loaded, Problems> {
    let mut layers = Layers::default();
    let file = find::find(world, flags.config.as_ref());
    if let Some(path) = &file {
        layers.lay(file::read(path)?, &Origin::File(path.clone()));
    }
    let mut notes = variables::unknown(world);
    if let Some(path) = &flags.servers {
        notes.extend(servers_file::lay(&mut layers, &world.folder.join(path))?);
    }
    let filled = interpolate::fill(&mut layers, world);
    let mut problems = filled.problems;
    problems.extend(variables::lay(&mut layers, world));
    lay_flags(&mut layers, flags);
    paths::settle(&mut layers, world);
    let mut secrets = filled.secrets;
    secrets.extend(variables::secrets(world));
    let settings = typed(&layers, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => Ok(Loaded { settings, layers, file, secrets, notes }),
        _ => Err(Problems(problems)),
    }
}

fn lay_flags(layers: &mut Layers, flags: &Flags) {
    if let Some(host) = &flags.host {
        layers.set("listen.host", Value::from(host.as_str()), &Origin::Flag("--host"));
    }
    if let Some(port) = flags.port {
        layers.set("listen.port", Value::from(port), &Origin::Flag("--port"));
    }
}

/// The types know what fits; only when something does not is the schema asked for every place at once.
fn typed(layers: &Layers, problems: &mut Vec<Problem>) -> Option<Settings> {
    match serde_json::from_value::<Settings>(layers.tree()) {
        Ok(settings) => {
            problems.extend(check::check(&settings, layers));
            Some(settings)
        }
        Err(error) => {
            let explained = explain::explain(layers);
            if explained.is_empty() {
                problems.push(Problem::new(
                    layers.origin(""),
                    "",
                    format!("the settings do not fit: {error}."),
                    "Mend that.",
                ));
            }
            problems.extend(explained);
            None
        }
    }
}

#[cfg(test)]
mod tests;
