//! npm packages: resolved to a lock file without install scripts, and installed from it.

use super::installed_package::InstallOptions;
use super::package_id::PackageId;
use super::package_manager::{NPM, PackageError};
use super::servers_lock::LockedPackage;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Options of every command.
const QUIET: [&str; 3] = ["--no-audit", "--no-fund", "--loglevel=error"];

pub fn newest_version(name: &str, scratch: &Path) -> Result<String, PackageError> {
    std::fs::write(scratch.join("package.json"), json!({"private": true}).to_string())?;
    let version = NPM.run(scratch, &["view", "--", name, "version"], None)?;
    let version = version.trim().to_owned();
    if version.is_empty() {
        return Err(PackageError::new(format!("npm has no package {name}."), "Check the name."));
    }
    Ok(version)
}

/// Resolves all dependencies in an empty directory.
pub fn resolve(id: &PackageId, scratch: &Path) -> Result<LockedPackage, PackageError> {
    std::fs::write(scratch.join("package.json"), manifest(id).to_string())?;
    let args = ["install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"];
    NPM.run(scratch, &[&args[..], &QUIET].concat(), None)?;
    let text = std::fs::read_to_string(scratch.join("package-lock.json"))?;
    let lock: Value = serde_json::from_str(&text).map_err(std::io::Error::other)?;
    let packages = lock.get("packages").and_then(Value::as_object).cloned().unwrap_or_default();
    let own = packages.get(&format!("node_modules/{}", id.name)).and_then(integrity);
    let own =
        own.ok_or_else(|| PackageError::new(format!("npm did not resolve {id}."), "Check the name."))?;
    Ok(LockedPackage::new(id, own, Value::Object(packages)))
}

/// Refuses a lock with anything but packages of the registry: a lock file can come from somebody else.
pub fn check_lock(id: &PackageId, locked: &LockedPackage) -> Result<(), PackageError> {
    let packages = locked.lock.as_object().cloned().unwrap_or_default();
    let text = |package: &Value, member: &str| package.get(member).and_then(Value::as_str).map(str::to_owned);
    if let Some((path, _)) = packages.iter().find(|(_, package)| !has_registry_dependencies(package)) {
        return Err(PackageError::new(
            format!(
                "{} needs a package that is not in a registry.",
                if path.is_empty() { "The lock" } else { path }
            ),
            "Install it yourself and add it with `octoprox servers add`.",
        ));
    }
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        let is_path = path.starts_with("node_modules/") && !path.split('/').any(|part| part == "..");
        let has_source = package.get("resolved").is_some() || package.get("link").is_some();
        if !is_path || has_source || (!is_bundled(package) && integrity(package).is_none()) {
            let name = path.rsplit("node_modules/").next().unwrap_or(path);
            return Err(PackageError::new(
                format!("{id} depends on {name}, which is not in a registry or has no integrity."),
                "Install it yourself and add it with `octoprox servers add`.",
            ));
        }
    }
    let own = packages.get(&format!("node_modules/{}", id.name)).cloned().unwrap_or_default();
    let is_alias = text(&own, "name").is_some_and(|name| name != id.name);
    let is_version = text(&own, "version").as_deref() == Some(&id.version);
    if is_alias || !is_version || integrity(&own).as_ref() != Some(&locked.integrity) {
        return Err(super::not_locked(id));
    }
    Ok(())
}

/// Whether all dependencies are versions in a registry, not repositories, URLs or directories.
fn has_registry_dependencies(package: &Value) -> bool {
    let is_version = |value: &Value| {
        value.as_str().is_some_and(|value| value.starts_with("npm:") || !value.contains([':', '/']))
    };
    ["dependencies", "optionalDependencies", "peerDependencies", "devDependencies"].iter().all(|member| {
        match package.get(member) {
            None => true,
            Some(Value::Object(dependencies)) => dependencies.values().all(is_version),
            Some(_) => false,
        }
    })
}

/// Whether a package is part of the one that contains it.
fn is_bundled(package: &Value) -> bool {
    package.get("inBundle") == Some(&Value::Bool(true))
}

fn integrity(package: &Value) -> Option<String> {
    package.get("integrity").and_then(Value::as_str).map(str::to_owned)
}

fn manifest(id: &PackageId) -> Value {
    json!({"private": true, "dependencies": {&id.name: id.version}})
}

/// Installs exactly what is locked. npm checks the integrity of every package that is in the lock; what it installed is
/// compared with the lock afterwards, because it also installs optional packages that are not.
pub fn install(
    id: &PackageId,
    lock: &Value,
    folder: &Path,
    options: InstallOptions,
) -> Result<(), PackageError> {
    let file = json!({"lockfileVersion": 3, "requires": true, "packages": lock});
    std::fs::write(folder.join("package.json"), manifest(id).to_string())?;
    std::fs::write(folder.join("package-lock.json"), file.to_string())?;
    let args = ["install", "--omit=dev", "--no-save", "--ignore-scripts"];
    let install = |more: &[&str]| NPM.run(folder, &[&args[..], more, &QUIET].concat(), None);
    // A cache that is older than a locked version does not know it.
    if !options.use_cache || install(&["--prefer-offline"]).is_err() {
        install(&[])?;
    }
    let text = std::fs::read_to_string(folder.join("node_modules/.package-lock.json"))?;
    let installed: Value = serde_json::from_str(&text).map_err(std::io::Error::other)?;
    for (path, package) in installed.get("packages").and_then(Value::as_object).into_iter().flatten() {
        let locked = lock.get(path).and_then(integrity);
        if integrity(package) != locked || (locked.is_none() && !is_bundled(package)) {
            return Err(PackageError::new(
                format!("npm installed {path} of {id}, which is not what is locked."),
                "Nothing was installed. Add the server again with --update.",
            ));
        }
    }
    if options.scripts {
        NPM.run(folder, &[&["rebuild"][..], &QUIET].concat(), None)?;
    }
    Ok(())
}

/// Programs of the installed package, by name.
pub fn programs(id: &PackageId, folder: &Path) -> Result<Vec<(String, PathBuf)>, PackageError> {
    let package = folder.join("node_modules").join(&id.name);
    let text = std::fs::read_to_string(package.join("package.json"))?;
    let manifest: Map<String, Value> = serde_json::from_str(&text).map_err(std::io::Error::other)?;
    let bare = id.name.rsplit('/').next().unwrap_or(&id.name).to_owned();
    let names: Vec<String> = match manifest.get("bin") {
        Some(Value::String(_)) => vec![bare],
        Some(Value::Object(programs)) => programs.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let is_plain = |name: &String| !name.contains('/') && !name.starts_with('.');
    let path = |name: String| (name.clone(), folder.join("node_modules/.bin").join(name));
    Ok(names.into_iter().filter(is_plain).map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_packages_of_the_registry_only() {
        let id = PackageId::parse("npm:@a/tides@1.0.0").unwrap();
        let good = json!({"version": "1.0.0", "integrity": "sha512-x"});
        let with = |own: Value, path: &str, other: Value| {
            let lock = json!({"": {}, "node_modules/@a/tides": own, (path): other});
            check_lock(&id, &LockedPackage::new(&id, "sha512-x".to_owned(), lock))
        };
        let other = || json!({"version": "2.0.0", "integrity": "sha512-y"});
        assert!(with(good.clone(), "node_modules/b", other()).is_ok());
        assert!(with(good.clone(), "node_modules/b", json!({"version": "1.0.0", "inBundle": true})).is_ok());
        for (path, package) in [
            ("node_modules/b", json!({"version": "2.0.0"})),
            ("node_modules/b", json!({"integrity": "sha512-y", "resolved": "https://x.test/b.tgz"})),
            ("node_modules/b", json!({"integrity": "sha512-y", "link": true})),
            (
                "node_modules/b",
                json!({"integrity": "sha512-y", "dependencies": {"c": "git+https://x.test/c"}}),
            ),
            ("node_modules/b", json!({"integrity": "sha512-y", "optionalDependencies": {"c": "user/c"}})),
            ("node_modules/../../b", other()),
            ("elsewhere", other()),
        ] {
            assert!(with(good.clone(), path, package.clone()).is_err(), "{path}: {package}");
        }
        for own in [
            json!({"version": "1.0.1", "integrity": "sha512-x"}),
            json!({"version": "1.0.0", "integrity": "sha512-z"}),
            json!({"version": "1.0.0", "integrity": "sha512-x", "name": "other"}),
        ] {
            assert!(with(own.clone(), "node_modules/b", other()).is_err(), "{own}");
        }
    }
}
