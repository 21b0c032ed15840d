//! Installations in the state directory, one per digest.

use super::package_id::{PackageId, PackageKind};
use super::package_manager::PackageError;
use super::servers_lock::LockedPackage;
use super::{bundle_package, npm_package, python_package};
use crate::terminal::console;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PACKAGES_DIR: &str = "packages";
/// Written last, so that a directory without it is incomplete.
const RECORD_FILE: &str = "installed.json";

/// How to install.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstallOptions {
    /// Run install scripts, and build from source.
    pub scripts: bool,
    /// Use cached metadata of registries, because the package was resolved just now.
    pub use_cache: bool,
}

/// A complete installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Programs of the package, by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// Directories that its programs read.
    pub readable: Vec<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct InstallRecord {
    package: String,
    programs: BTreeMap<String, PathBuf>,
    readable: Vec<PathBuf>,
}

impl InstalledPackage {
    /// Finds the installation of a package by the digest of its lock.
    pub fn find(state: &Path, digest: &str, package: &str) -> Option<Self> {
        let folder = state.join(PACKAGES_DIR).join(digest.trim_start_matches("sha256:"));
        let record = std::fs::read(folder.join(RECORD_FILE)).ok()?;
        let record: InstallRecord = serde_json::from_slice(&record).ok()?;
        let InstallRecord { programs, readable, .. } =
            Some(record).filter(|record| record.package == package)?;
        Some(Self { programs, readable })
    }

    /// The program of this name; without one, the only program or the one named like the package.
    pub fn program(&self, id: &PackageId, command: Option<&str>) -> Result<&Path, PackageError> {
        let bare = id.name.rsplit('/').next().unwrap_or(&id.name);
        let found = match (command, self.programs.len()) {
            (Some(command), _) => self.programs.get(command),
            (None, 1) => self.programs.values().next(),
            (None, _) => self.programs.get(bare),
        };
        found.map(PathBuf::as_path).ok_or_else(|| {
            let names: Vec<&str> = self.programs.keys().map(String::as_str).collect();
            let hint = match names.as_slice() {
                [] => "It is a library, not a server.".to_owned(),
                names => format!("Choose one with --command: {}.", names.join(", ")),
            };
            let what = command
                .map_or("no program of its own name".to_owned(), |name| format!("no program `{name}`"));
            PackageError::new(format!("{id} has {what}."), hint)
        })
    }
}

/// Installs a package, unless it is there already. `lock_folder` is the directory of the lock file.
pub fn install(
    state: &Path,
    locked: &LockedPackage,
    lock_folder: &Path,
    options: InstallOptions,
) -> Result<InstalledPackage, PackageError> {
    let id = PackageId::parse(&locked.package)
        .map_err(|error| PackageError::new(error, "Add the server again."))?;
    super::check_lock(&id, locked)?;
    if let Some(installed) = InstalledPackage::find(state, &locked.digest, &locked.package) {
        return Ok(installed);
    }
    let packages = state.join(PACKAGES_DIR);
    std::fs::create_dir_all(&packages)?;
    let held = std::fs::File::create(packages.join(".lock"))?;
    if flock(&held, FlockOperation::NonBlockingLockExclusive).is_err() {
        console::print_err("Waiting for another installation to finish…");
        flock(&held, FlockOperation::LockExclusive).map_err(std::io::Error::from)?;
    }
    if let Some(installed) = InstalledPackage::find(state, &locked.digest, &locked.package) {
        return Ok(installed);
    }
    let folder = packages.join(locked.folder_name());
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir(&folder)?;
    let installed = install_into(&id, locked, (lock_folder, &folder), options);
    if installed.is_err() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    installed
}

fn install_into(
    id: &PackageId,
    locked: &LockedPackage,
    (lock_folder, folder): (&Path, &Path),
    options: InstallOptions,
) -> Result<InstalledPackage, PackageError> {
    let mut readable = vec![folder.to_owned()];
    let programs = match id.kind {
        PackageKind::Npm => {
            npm_package::install(id, &locked.lock, folder, options)?;
            npm_package::programs(id, folder)?
        }
        PackageKind::Pypi => {
            python_package::install(&locked.lock, folder, options)?;
            readable.extend(python_package::interpreter_folders(folder));
            python_package::programs(id, folder)?
        }
        PackageKind::Mcpb => {
            bundle_package::install(id, locked, lock_folder, folder)?;
            bundle_package::programs(folder)
        }
    };
    let programs: BTreeMap<String, PathBuf> = programs.into_iter().collect();
    let record = InstallRecord { package: id.to_string(), programs, readable };
    std::fs::write(folder.join(RECORD_FILE), serde_json::to_vec(&record).map_err(std::io::Error::other)?)?;
    let InstallRecord { programs, readable, .. } = record;
    Ok(InstalledPackage { programs, readable })
}
