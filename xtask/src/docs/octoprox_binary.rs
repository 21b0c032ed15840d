//! Runs the built `octoprox`, isolated from the user's settings.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Binary {
    path: PathBuf,
    /// An empty directory without settings or data.
    empty_home: PathBuf,
}

impl Binary {
    /// The binary that `OCTOPROX_BIN` names, or a fresh build beside this program.
    pub fn find(root: &Path) -> Result<Self> {
        let path = match std::env::var_os("OCTOPROX_BIN") {
            Some(path) => path.into(),
            None => build(root)?,
        };
        let empty_home = std::env::temp_dir().join(format!("xtask-nowhere-{}", std::process::id()));
        std::fs::create_dir_all(&empty_home)?;
        Ok(Self { path, empty_home })
    }

    pub fn json(&self, words: &[&str]) -> Result<Value> {
        let text = self.output(words)?;
        serde_json::from_str(&text)
            .with_context(|| format!("octoprox {} did not print JSON", words.join(" ")))
    }

    pub fn text(&self, words: &[&str]) -> Result<String> {
        self.output(words)
    }

    pub fn help(&self, words: &[&str]) -> Result<String> {
        let words: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        self.output(&words)
    }

    /// Standard output. The width is fixed, so that help is wrapped the same everywhere.
    fn output(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.path);
        command.args(words).current_dir(&self.empty_home).env_clear();
        command.env("HOME", &self.empty_home).env("COLUMNS", "100").env("NO_COLOR", "1");
        let output = command.output().with_context(|| self.path.display().to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("octoprox {} failed: {}", words.join(" "), said.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // A leftover in the temporary directory is harmless.
        let _ = std::fs::remove_dir_all(&self.empty_home);
    }
}

fn build(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(["build", "--quiet", "-p", "octoprox"]).current_dir(root).status()?;
    if !status.success() {
        bail!("building octoprox failed");
    }
    let folder = std::env::current_exe()?;
    Ok(folder.with_file_name("octoprox"))
}
