//! Runs the package managers.

use crate::process::local_programs::which;
use octo_model::abbreviate;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Characters of a program's output in an error.
const MAX_OUTPUT_CHARS: usize = 1_500;

/// Why a package cannot be resolved or installed, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageError {
    pub message: String,
    pub hint: String,
}

impl PackageError {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.message, self.hint)
    }
}

impl std::error::Error for PackageError {}

impl From<std::io::Error> for PackageError {
    fn from(error: std::io::Error) -> Self {
        Self::new(
            format!("The package cannot be installed: {error}."),
            "Check the state directory and its disk.",
        )
    }
}

impl From<PackageError> for crate::app_error::AppError {
    fn from(error: PackageError) -> Self {
        Self::new(error.to_string())
    }
}

/// A package manager.
pub(super) struct PackageProgram {
    name: &'static str,
    install_hint: &'static str,
}

pub(super) const NPM: PackageProgram =
    PackageProgram { name: "npm", install_hint: "Install Node.js with npm, and try again." };
pub(super) const UV: PackageProgram =
    PackageProgram { name: "uv", install_hint: "Install uv (https://docs.astral.sh/uv/), and try again." };

impl PackageProgram {
    /// Runs it in a directory with the environment of the user, and returns its output.
    pub fn run(&self, folder: &Path, args: &[&str], input: Option<&str>) -> Result<String, PackageError> {
        let Self { name, install_hint } = *self;
        let path = std::env::var("PATH").ok();
        let program = which(name, path.as_deref(), folder)
            .ok_or_else(|| PackageError::new(format!("{name} is not installed."), install_hint))?;
        let mut child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = abbreviate(said.trim(), MAX_OUTPUT_CHARS);
        let command: Vec<&str> = args.iter().copied().take_while(|arg| !arg.starts_with('-')).collect();
        let command = command.join(" ");
        Err(PackageError::new(format!("`{name} {command}` failed:\n{said}\n"), "Nothing was installed."))
    }
}
