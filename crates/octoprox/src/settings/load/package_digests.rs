//! Digests of packages, from the lock file beside the file that defines the server.

use crate::packages::ServersLock;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_layers::Layers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Fills in `digest` of every server with a package. A server whose package is not locked stays without, and does not
/// start.
pub fn fill_digests(layers: &mut Layers) -> Vec<SettingsProblem> {
    let servers = layers.get("servers").and_then(Value::as_object).into_iter().flatten();
    let packages: Vec<(String, String)> = servers
        .filter(|(_, server)| server.get("digest").is_none())
        .filter_map(|(name, server)| Some((name.clone(), server.get("package")?.as_str()?.to_owned())))
        .collect();
    let mut locks: BTreeMap<PathBuf, ServersLock> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, package) in packages {
        let setting = format!("servers.{name}.package");
        let SettingOrigin::File(file) = layers.origin(&setting) else { continue };
        let path = ServersLock::path_beside(&file);
        if !locks.contains_key(&path) {
            let read = ServersLock::read(&path).unwrap_or_else(|error| {
                let origin = SettingOrigin::File(path.clone());
                problems.push(SettingsProblem::new(origin, "", error.message, error.hint));
                ServersLock::default()
            });
            locks.insert(path.clone(), read);
        }
        let locked = locks.get(&path).and_then(|lock| lock.servers.get(&name));
        if let Some(locked) = locked.filter(|locked| locked.package == package) {
            let digest = Value::from(locked.digest.as_str());
            layers.set(&format!("servers.{name}.digest"), digest, &SettingOrigin::File(path));
        }
    }
    problems
}
