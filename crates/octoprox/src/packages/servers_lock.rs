//! `servers.lock`: exact packages of the servers in the file beside it.

use super::package_id::{PackageId, is_digest};
use super::package_manager::PackageError;
use super::regular_file::open_regular;
use octo_model::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "servers.lock";
/// Far above the size of a few hundred packages with thousands of dependencies each.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// One package with all its dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// Exact name of the package.
    pub package: String,
    /// Integrity of the package itself, as its registry reports it.
    pub integrity: String,
    /// SHA-256 of `lock`.
    pub digest: String,
    /// What the package manager installs, with the integrity of every part.
    pub lock: Value,
}

impl LockedPackage {
    pub fn new(package: &PackageId, integrity: String, lock: Value) -> Self {
        Self { package: package.to_string(), integrity, digest: lock_digest(&lock), lock }
    }

    /// Number of packages, with all dependencies.
    pub fn package_count(&self) -> usize {
        match &self.lock {
            // A bundle is a file with everything.
            Value::Object(bundle) if bundle.contains_key("sha256") => 1,
            // The first is the directory of the installation itself.
            Value::Object(packages) => packages.len().saturating_sub(1),
            Value::Array(lines) => {
                lines.iter().filter(|line| line.as_str().is_some_and(|line| line.contains("=="))).count()
            }
            _ => 0,
        }
    }

    /// Directory name of the installation.
    pub fn folder_name(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }
}

fn lock_error(path: &Path, what: &str) -> PackageError {
    let hint = "Restore it from your version control, or remove it and add the servers again.";
    PackageError::new(format!("{}: {what}.", path.display()), hint)
}

fn lock_digest(lock: &Value) -> String {
    format!("sha256:{}", sha256_hex(lock.to_string().as_bytes()))
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersLock {
    version: u32,
    pub servers: BTreeMap<String, LockedPackage>,
}

impl ServersLock {
    const VERSION: u32 = 1;

    /// Path of the lock of a file with servers.
    pub fn path_beside(servers_file: &Path) -> PathBuf {
        servers_file.with_file_name(FILE_NAME)
    }

    /// Reads the file; a missing one is empty.
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        Self::read_text(path)?.map_or_else(|| Ok(Self::empty()), |text| Self::parse(path, &text))
    }

    fn empty() -> Self {
        Self { version: Self::VERSION, servers: BTreeMap::new() }
    }

    fn read_text(path: &Path) -> Result<Option<String>, PackageError> {
        let mut text = String::new();
        match open_regular(path, MAX_FILE_BYTES) {
            Ok(file) => file.take(MAX_FILE_BYTES).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(lock_error(path, &format!("cannot read file: {error}"))),
        };
        Ok(Some(text))
    }

    /// Parses the text of the file and checks every digest.
    pub fn parse(path: &Path, text: &str) -> Result<Self, PackageError> {
        let lock: Self = serde_json::from_str(text).map_err(|error| lock_error(path, &error.to_string()))?;
        if lock.version != Self::VERSION {
            return Err(lock_error(path, &format!("version {} of the file is not supported", lock.version)));
        }
        for (name, locked) in &lock.servers {
            if !is_digest(&locked.digest) || lock_digest(&locked.lock) != locked.digest {
                return Err(lock_error(
                    path,
                    &format!("`{name}` was changed by hand: its digest does not match"),
                ));
            }
        }
        Ok(lock)
    }

    /// The text of the file before and after setting the package of a server, or removing it.
    pub fn edit(
        path: &Path,
        server: &str,
        package: Option<&LockedPackage>,
    ) -> Result<(Option<String>, String), PackageError> {
        let before = Self::read_text(path)?;
        let mut lock = before.as_ref().map_or_else(|| Ok(Self::empty()), |text| Self::parse(path, text))?;
        match package {
            Some(package) => drop(lock.servers.insert(server.to_owned(), package.clone())),
            None => drop(lock.servers.remove(server)),
        }
        Ok((before, lock.to_text()))
    }

    fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_lock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = ServersLock::path_beside(&folder.path().join("servers.yaml"));
        let id = PackageId::parse("npm:left-pad@1.0.0").unwrap();
        assert!(ServersLock::read(&path).unwrap().servers.is_empty());
        let lines = json!({"": {}, "node_modules/left-pad": {"version": "1.0.0", "integrity": "sha512-x"}});
        let locked = LockedPackage::new(&id, "sha512-x".to_owned(), lines);
        assert_eq!(locked.package_count(), 1);
        let (before, after) = ServersLock::edit(&path, "pad", Some(&locked)).unwrap();
        assert_eq!(before, None);
        std::fs::write(&path, after).unwrap();
        let lock = ServersLock::read(&path).unwrap();
        assert_eq!(lock.servers["pad"], locked);
        for (from, to) in
            [("sha512-x\"\n", "sha512-y\"\n"), ("\"version\": 1,", "\"version\": 2,"), ("{", "[")]
        {
            std::fs::write(&path, lock.to_text().replace(from, to)).unwrap();
            assert!(ServersLock::read(&path).is_err(), "{from}");
        }
        std::fs::write(&path, lock.to_text()).unwrap();
        let (before, after) = ServersLock::edit(&path, "pad", None).unwrap();
        assert_eq!(before, Some(lock.to_text()));
        assert!(ServersLock::parse(&path, &after).unwrap().servers.is_empty());
    }
}
