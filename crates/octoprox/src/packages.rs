//! Packages of upstream servers: resolved to exact versions and digests, installed in the state directory, and started
//! from there. `npm` and `uv` do the work, with the registries and proxies of the user.

mod installed_package;
mod npm_package;
mod package_choice;
mod package_id;
mod package_program;
mod pinned_package;
mod python_package;
mod servers_lock;

use octo_catalogue::{Catalogue, PackageRegistry};

pub use installed_package::{InstallOptions, InstalledPackage, install};
pub use package_choice::choose_version;
pub use package_id::{PackageId, PackageKind, is_digest};
pub use package_program::PackageError;
pub use pinned_package::{PackagePin, approve_package, start_check};
pub use servers_lock::{LockedPackage, ServersLock};

/// Resolves a package with all its dependencies, in an empty directory.
pub fn resolve(
    id: &PackageId,
    options: InstallOptions,
    scratch: &std::path::Path,
) -> Result<LockedPackage, PackageError> {
    match id.kind {
        PackageKind::Npm => npm_package::resolve(id, scratch),
        PackageKind::Pypi => python_package::resolve(id, options),
    }
    .and_then(|locked| check_lock(id, &locked).map(|()| locked))
}

/// Returns the newest version of a package.
pub fn newest_version(kind: PackageKind, name: &str) -> Result<String, PackageError> {
    match kind {
        PackageKind::Npm => npm_package::newest_version(name),
        PackageKind::Pypi => python_package::newest_version(name),
    }
}

/// Refuses a lock that is not one of this package in this version, or that differs from the catalogue.
fn check_lock(id: &PackageId, locked: &LockedPackage) -> Result<(), PackageError> {
    let registry = match id.kind {
        PackageKind::Npm => {
            npm_package::check_lock(id, locked)?;
            PackageRegistry::Npm
        }
        PackageKind::Pypi => {
            python_package::check_lock(id, locked)?;
            PackageRegistry::Pypi
        }
    };
    let known = Catalogue::shipped().ok().and_then(|catalogue| catalogue.find_package(registry, &id.name));
    package_choice::check_integrity(id, locked, known.and_then(|(_, entry)| entry.package.as_ref()))
}

fn not_locked(id: &PackageId) -> PackageError {
    let hint = "Add the server again with an exact version: `octoprox add … --update`.";
    PackageError::new(format!("The lock is not one of {id}."), hint)
}
