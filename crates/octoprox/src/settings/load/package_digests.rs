//! Digests of packages, from the lock file beside the file that defines the server.

use crate::packages::ServersLock;
use crate::settings::approval::settings_choice::{self, Chooser};
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_layers::Layers;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads lock files under the same rules as the settings: they decide which programs run.
pub struct PackageDigests<'a> {
    trust: &'a TrustStore,
    chooser: Chooser,
    /// Lock files that were read.
    pub read: Vec<SettingsFile>,
    /// Messages about lock files that are ignored until they are approved.
    pub unapproved: Vec<String>,
    pub problems: Vec<SettingsProblem>,
}

impl<'a> PackageDigests<'a> {
    /// Fills in `digest` of every server with a package. A server whose package is not locked stays without, and does not
    /// start.
    pub fn fill(layers: &mut Layers, trust: &'a TrustStore, chooser: Chooser) -> Self {
        let mut this =
            Self { trust, chooser, read: Vec::new(), unapproved: Vec::new(), problems: Vec::new() };
        let mut locks: BTreeMap<PathBuf, ServersLock> = BTreeMap::new();
        for (name, package) in unlocked_packages(layers) {
            let SettingOrigin::File(file) = layers.origin(&format!("servers.{name}.package")) else {
                continue;
            };
            let path = ServersLock::path_beside(&file);
            if !locks.contains_key(&path) {
                let lock = this.read_lock(&path).unwrap_or_else(|problem| {
                    this.problems.push(problem);
                    ServersLock::default()
                });
                locks.insert(path.clone(), lock);
            }
            let locked = locks.get(&path).and_then(|lock| lock.servers.get(&name));
            if let Some(locked) = locked.filter(|locked| locked.package == package) {
                let digest = Value::from(locked.digest.as_str());
                layers.set(&format!("servers.{name}.digest"), digest, &SettingOrigin::File(path));
            }
        }
        this
    }

    fn read_lock(&mut self, path: &Path) -> Result<ServersLock, SettingsProblem> {
        if !path.exists() {
            return Ok(ServersLock::default());
        }
        let file = SettingsFile::open_lock(path)?;
        match (self.chooser, self.trust.approval(&file)) {
            (Chooser::Person, Approval::Changed) => {
                let why = "the file has changed since it was approved";
                return Err(settings_choice::refused_file(&file, why));
            }
            (Chooser::Approval, approval @ (Approval::Changed | Approval::Unknown)) => {
                self.unapproved.push(settings_choice::ignored_notice("servers.lock here", approval));
                return Ok(ServersLock::default());
            }
            (_, Approval::Approved | Approval::Unknown) => {}
        }
        let lock = ServersLock::parse(path, file.text()).map_err(|error| {
            SettingsProblem::new(SettingOrigin::File(path.to_owned()), "", error.message, error.hint)
        })?;
        self.read.push(file);
        Ok(lock)
    }
}

/// Servers with a package and no digest in the settings.
fn unlocked_packages(layers: &Layers) -> Vec<(String, String)> {
    let servers = layers.get("servers").and_then(Value::as_object).into_iter().flatten();
    let unlocked = servers.filter(|(_, server)| server.get("digest").is_none());
    unlocked
        .filter_map(|(name, server)| Some((name.clone(), server.get("package")?.as_str()?.to_owned())))
        .collect()
}
