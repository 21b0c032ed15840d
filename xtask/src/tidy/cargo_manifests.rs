//! Reads the Cargo.toml of each crate.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A member of the workspace.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// All dependencies of all kinds and platforms, by package name.
    pub dependencies: BTreeSet<String>,
    pub has_features: bool,
    /// Inherits its lints from the workspace.
    pub inherits_lints: bool,
}

const DEPENDENCY_SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

pub fn read_all(root: &Path) -> Result<Vec<Package>> {
    members(root)?.iter().map(|dir| read(&dir.join("Cargo.toml"))).collect()
}

/// Directories of the workspace members, with a trailing `*` expanded.
fn members(root: &Path) -> Result<Vec<PathBuf>> {
    let workspace: Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let listed = workspace.get("workspace").and_then(|table| table.get("members")).and_then(Value::as_array);
    let mut found = Vec::new();
    for member in listed.context("Cargo.toml lists no members")?.iter().filter_map(Value::as_str) {
        match member.strip_suffix("/*") {
            None => found.push(root.join(member)),
            Some(parent) => found.extend(crates_in(&root.join(parent))?),
        }
    }
    found.sort();
    Ok(found)
}

fn crates_in(parent: &Path) -> Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let dir = entry?.path();
        if dir.join("Cargo.toml").is_file() {
            dirs.push(dir);
        }
    }
    Ok(dirs)
}

fn read(manifest: &Path) -> Result<Package> {
    let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    parse(&text).with_context(|| manifest.display().to_string())
}

pub fn parse(text: &str) -> Result<Package> {
    let table: Table = text.parse()?;
    let name = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let platforms = table.get("target").and_then(Value::as_table).into_iter().flatten();
    let sections = platforms.filter_map(|(_, section)| section.as_table()).chain([&table]);
    Ok(Package {
        name: name.context("package has no name")?.to_owned(),
        dependencies: sections.flat_map(section_dependencies).collect(),
        has_features: table.contains_key("features"),
        inherits_lints: table.get("lints").and_then(|lints| lints.get("workspace"))
            == Some(&Value::Boolean(true)),
    })
}

fn section_dependencies(section: &Table) -> BTreeSet<String> {
    let kinds = DEPENDENCY_SECTIONS
        .iter()
        .filter_map(|kind| section.get(*kind))
        .filter_map(Value::as_table)
        .flatten();
    kinds.map(|(key, value)| package_name(value).unwrap_or(key).to_owned()).collect()
}

fn package_name(dependency: &Value) -> Option<&str> {
    dependency.get("package").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn every_kind_of_dependency_counts() {
        let text = r#"
            [package]
            name = "tools-x"
            [lints]
            workspace = true
            [dependencies]
            octo-model.workspace = true
            other = { package = "rmcp", version = "3" }
            [dev-dependencies]
            octo-hub = { path = "../octo-hub" }
            [target.'cfg(unix)'.dependencies]
            rustix = "1"
        "#;
        let package = parse(text).unwrap();
        assert_eq!(Vec::from_iter(&package.dependencies), ["octo-hub", "octo-model", "rmcp", "rustix"]);
        assert!(package.inherits_lints && !package.has_features);
    }
}
