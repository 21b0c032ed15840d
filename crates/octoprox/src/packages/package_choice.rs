//! Version of a package, and whether it is the one that the catalogue knows.

use super::package_id::{PackageId, PackageKind};
use super::package_manager::PackageError;
use super::servers_lock::LockedPackage;
use octo_catalogue::{Package, PackageReference};
use std::path::Path;

/// Chooses the version: the given one, that of the catalogue, or the newest.
pub fn choose_version(
    kind: PackageKind,
    reference: &PackageReference,
    known: Option<&Package>,
    scratch: &Path,
) -> Result<PackageId, PackageError> {
    let version = match (&reference.version, known) {
        (Some(version), _) => version.clone(),
        (None, Some(known)) => known.version.clone(),
        (None, None) => super::newest_version(kind, &reference.name, scratch)?,
    };
    Ok(PackageId { kind, name: reference.name.clone(), version })
}

/// Refuses a package that differs from what the catalogue recorded for this version. Registries record nothing.
pub fn check_integrity(
    id: &PackageId,
    locked: &LockedPackage,
    known: Option<&Package>,
) -> Result<(), PackageError> {
    let Some(known) = known.filter(|known| known.version == id.version && !known.integrity.is_empty()) else {
        return Ok(());
    };
    if locked.integrity == known.integrity {
        return Ok(());
    }
    Err(PackageError::new(
        format!(
            "{id} is not the package that was checked: the registry reports {}, and the catalogue has {}.",
            locked.integrity, known.integrity
        ),
        "Do not install it. Report it to the publisher and to the operator of your registry.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_catalogue::{Catalogue, PackageRegistry};
    use serde_json::Value;

    #[test]
    fn a_package_with_another_digest_is_refused() {
        let catalogue = Catalogue::shipped().unwrap();
        let (_, entry) = catalogue.find("time").unwrap();
        let known = entry.package.as_ref();
        let reference = PackageReference {
            registry: PackageRegistry::Pypi,
            name: "mcp-server-time".into(),
            version: None,
        };
        let id = choose_version(PackageKind::Pypi, &reference, known, Path::new("/")).unwrap();
        let good = known.unwrap().integrity.clone();
        let locked = |integrity: String| LockedPackage::new(&id, integrity, Value::Null);
        assert!(check_integrity(&id, &locked(good.clone()), known).is_ok());
        assert!(check_integrity(&id, &locked(format!("sha256:00 {good}")), known).is_err(), "a second file");
        let error = check_integrity(&id, &locked("sha256:00".to_owned()), known).unwrap_err();
        assert!(error.to_string().contains("Do not install it"), "{error}");
        let other = PackageId { version: "1.0.0".into(), ..id.clone() };
        assert!(check_integrity(&other, &locked("sha256:00".to_owned()), known).is_ok());
    }
}
