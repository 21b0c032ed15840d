//! Packages of upstream servers: resolved to exact versions and digests, installed in the state directory, and started
//! from there. `npm` and `uv` do the work, with the registries and proxies of the user.

mod installed_package;
mod npm_package;
mod package_id;
mod package_program;
mod pinned_package;
mod python_package;
mod servers_lock;

pub use installed_package::{InstallOptions, InstalledPackage, install};
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
}

/// Returns the newest version of a package.
pub fn newest_version(kind: PackageKind, name: &str) -> Result<String, PackageError> {
    match kind {
        PackageKind::Npm => npm_package::newest_version(name),
        PackageKind::Pypi => python_package::newest_version(name),
    }
}
