//! Packages of upstream servers: resolved to exact versions and digests, installed in the state directory, and started
//! from there. `npm` and `uv` do the work, with the registries and proxies of the user.

mod bundle_manifest;
mod bundle_package;
mod installed_package;
mod npm_package;
mod package_choice;
mod package_id;
mod package_lookup;
mod package_manager;
mod pinned_package;
mod python_package;
mod regular_file;
mod scratch_folder;
mod servers_lock;

use octo_catalogue::{Catalogue, Package, PackageRegistry};

pub use bundle_manifest::{BundleManifest, BundleVariable, is_variable_name};
pub use bundle_package::{Bundle, bundle_publisher};
pub use installed_package::{InstallOptions, InstalledPackage, install};
pub use package_choice::choose_version;
pub use package_id::{PackageId, PackageKind, is_digest};
pub use package_lookup::package_lookup;
pub use package_manager::PackageError;
pub use pinned_package::{PackagePin, approve_package, check_pin};
pub use scratch_folder::ScratchFolder;
pub use servers_lock::{LockedPackage, ServersLock};

/// Resolves a package with all its dependencies, in an empty directory that only the user can write.
pub fn resolve(
    id: &PackageId,
    options: InstallOptions,
    scratch: &std::path::Path,
) -> Result<LockedPackage, PackageError> {
    // The name may come from a registry. Package managers take some texts for options, files or URLs.
    if PackageId::parse(&id.to_string()).as_ref() != Ok(id) {
        return Err(PackageError::new(format!("`{id}` is not a package with a version."), "Check its name."));
    }
    let known = known_package(id).map(|known| known.integrity.as_str());
    let locked = match id.kind {
        PackageKind::Npm => npm_package::resolve(id, scratch)?,
        PackageKind::Pypi => python_package::resolve(id, options, known, scratch)?,
        PackageKind::Mcpb => return Err(not_locked(id)),
    };
    check_lock(id, &locked)?;
    Ok(locked)
}

/// Returns the newest version of a package, looked up in such a directory.
pub fn newest_version(
    kind: PackageKind,
    name: &str,
    scratch: &std::path::Path,
) -> Result<String, PackageError> {
    match kind {
        PackageKind::Npm => npm_package::newest_version(name, scratch),
        PackageKind::Pypi => python_package::newest_version(name, scratch),
        PackageKind::Mcpb => Err(PackageError::new("A bundle is a file.", "Name the file.")),
    }
}

/// Refuses a lock that is not one of this package in this version, or that differs from the catalogue.
fn check_lock(id: &PackageId, locked: &LockedPackage) -> Result<(), PackageError> {
    match id.kind {
        PackageKind::Npm => npm_package::check_lock(id, locked)?,
        PackageKind::Pypi => python_package::check_lock(id, locked)?,
        PackageKind::Mcpb => bundle_package::check_lock(id, locked)?,
    }
    package_choice::check_integrity(id, locked, known_package(id))
}

/// The package in this version, as the catalogue knows it.
fn known_package(id: &PackageId) -> Option<&'static Package> {
    let registry = match id.kind {
        PackageKind::Npm => PackageRegistry::Npm,
        PackageKind::Pypi => PackageRegistry::Pypi,
        PackageKind::Mcpb => return None,
    };
    let (_, entry) = Catalogue::shipped().ok()?.find_package(registry, &id.name)?;
    entry.package.as_ref().filter(|known| known.version == id.version)
}

fn not_locked(id: &PackageId) -> PackageError {
    let hint = "Add the server again with an exact version: `octoprox add … --update`.";
    PackageError::new(format!("The lock is not one of {id}."), hint)
}
