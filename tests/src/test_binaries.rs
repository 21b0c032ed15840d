//! Paths of the programs under test: beside the tests, built by `cargo build --workspace`.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// Path of a workspace binary.
pub fn binary_path(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder =
        test.parent().and_then(|deps| deps.parent()).context("the test is not in a target folder")?;
    let path = folder.join(name);
    ensure!(path.exists(), "{} is missing: run `cargo build --workspace` first", path.display());
    Ok(path)
}

/// Path of an example binary.
pub fn example_path(name: &str) -> Result<PathBuf> {
    binary_path(&format!("examples/{name}"))
}

/// A variable that `scripts/services env` prints.
pub fn service_variable(name: &str) -> Result<String> {
    std::env::var(name)
        .with_context(|| format!("{name} is not set: run eval \"$(scripts/services env)\" first"))
}
