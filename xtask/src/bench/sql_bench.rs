//! `db_query` against the bare driver.

use anyhow::{Context, Result};
use std::path::Path;

pub fn run(root: &Path) -> Result<()> {
    std::env::var("POSTGRES").context("POSTGRES is not set: run eval \"$(scripts/services env)\" first")?;
    super::cargo(
        root,
        &["run", "--profile", "measured", "-p", "tools-sql", "--example", "measure", "--locked"],
    )
}
