//! Finds the workspace from the current directory.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// The nearest parent directory whose Cargo.toml is a workspace. Determined at run time and not at compile time,
/// because builds may be shared by several clones.
pub fn find_workspace() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let top = here.ancestors().find(|dir| is_workspace(&dir.join("Cargo.toml")));
    top.map(Into::into).context("no workspace found: run this inside the repository")
}

fn is_workspace(manifest: &std::path::Path) -> bool {
    std::fs::read_to_string(manifest).is_ok_and(|text| text.lines().any(|line| line == "[workspace]"))
}
