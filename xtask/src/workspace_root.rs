//! Finds the workspace, whatever directory the command was started in.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// The nearest directory upwards whose Cargo.toml is a workspace. Asked at run time and not at compile time,
/// because builds may be kept for several clones.
pub fn find_workspace() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let top = here.ancestors().find(|dir| is_workspace(&dir.join("Cargo.toml")));
    top.map(Into::into).context("no workspace here: run this inside the clone")
}

fn is_workspace(manifest: &std::path::Path) -> bool {
    std::fs::read_to_string(manifest).is_ok_and(|text| text.lines().any(|line| line == "[workspace]"))
}
