//! From file, environment and flags to checked settings.

use super::layers::Layers;
use super::missing::Missing;
use super::problem::{Origin, Problem, Problems};
use super::{Settings, World, check, explain, file, find, interpolate, keys, paths, servers_file, variables};
use serde_json::{Map, Value};
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
    /// Every file that servers are read from, also one that is not there yet.
    pub server_files: Vec<PathBuf>,
    /// Servers that are left out because a variable is not set.
    pub missing: Missing,
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
    let beside = find::servers(world, file.as_deref());
    if let Some(path) = beside.as_deref().filter(|path| path.is_file()) {
        notes.extend(servers_file::lay_own(&mut layers, path)?);
    }
    let named = flags.servers.as_ref().map(|path| world.folder.join(path));
    if let Some(path) = &named {
        notes.extend(servers_file::lay(&mut layers, path)?);
    }
    let mut filled = interpolate::fill(&mut layers, world);
    filled.secrets.extend(keys::give(&mut layers, world, &mut filled.missing));
    notes.extend(filled.missing.leave_out(&mut layers));
    let mut problems = filled.problems;
    problems.extend(variables::lay(&mut layers, world));
    lay_flags(&mut layers, flags);
    paths::settle(&mut layers, world);
    let mut secrets = filled.secrets;
    secrets.extend(variables::secrets(world));
    let settings = typed(&layers, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => {
            let server_files = file.clone().into_iter().chain(beside).chain(named).collect();
            let missing = filled.missing;
            Ok(Loaded { settings, layers, file, server_files, missing, secrets, notes })
        }
        _ => Err(Problems(problems)),
    }
}

/// Whether one server would hold together, before it is written anywhere. What variables it needs is another matter.
pub fn check_one(name: &str, server: &Map<String, Value>) -> Result<(), Problems> {
    let mut server = server.clone();
    if Value::Object(server.clone()).to_string().contains("${") {
        server.insert("enabled".to_owned(), Value::Bool(false));
    }
    let mut layers = Layers::default();
    let list = Map::from_iter([(name.to_owned(), Value::Object(server))]);
    layers.lay(Map::from_iter([("servers".to_owned(), Value::Object(list))]), &Origin::Default);
    let mut problems = Vec::new();
    typed(&layers, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
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
