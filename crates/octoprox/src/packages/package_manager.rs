//! Runs the package managers.

use crate::process::local_programs::which;
use octo_model::abbreviate;
use std::fmt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// Characters of a program's output in an error.
const MAX_OUTPUT_CHARS: usize = 1_500;
/// Far above the metadata of a package.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// Time to download the largest packages over a slow network.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

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
pub(super) struct PackageManager {
    name: &'static str,
    install_hint: &'static str,
    /// Environment of its children, too: it starts itself for some dependencies.
    env: &'static [(&'static str, &'static str)],
}

/// Dependencies come from a registry only. A git repository could bring its own settings, which name programs to run; old
/// versions know only the first of these settings.
const REGISTRY_ONLY: [(&str, &str); 5] = [
    ("npm_config_git", "/bin/false"),
    ("npm_config_allow_git", "none"),
    ("npm_config_allow_remote", "none"),
    ("npm_config_allow_file", "none"),
    ("npm_config_allow_directory", "none"),
];

pub(super) const NPM: PackageManager = PackageManager {
    name: "npm",
    install_hint: "Install Node.js with npm, and try again.",
    env: &REGISTRY_ONLY,
};
pub(super) const UV: PackageManager = PackageManager {
    name: "uv",
    install_hint: "Install uv (https://docs.astral.sh/uv/), and try again.",
    env: &[],
};

impl PackageManager {
    /// Runs it in a directory that only the user can write, with the environment of the user, and returns its output. It
    /// reads settings and more from its directory.
    pub fn run(&self, folder: &Path, args: &[&str], input: Option<&str>) -> Result<String, PackageError> {
        let Self { name, install_hint, env } = *self;
        let path = std::env::var("PATH").ok();
        let program = which(name, path.as_deref(), folder)
            .ok_or_else(|| PackageError::new(format!("{name} is not installed."), install_hint))?;
        let mut command = Command::new(program);
        command.args(args).envs(env.iter().copied()).current_dir(folder).kill_on_drop(true);
        let words: Vec<&str> = args.iter().copied().take_while(|arg| !arg.starts_with('-')).collect();
        let failed = |why: &str| {
            let message = format!("`{name} {}` failed:\n{why}\n", words.join(" "));
            PackageError::new(message, "Nothing was installed.")
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run =
            async { tokio::time::timeout(TIMEOUT, run_to_end(command, input.unwrap_or_default())).await };
        let output = runtime.block_on(run);
        runtime.shutdown_background();
        let output =
            output.map_err(|_| failed(&format!("No result after {} minutes.", TIMEOUT.as_secs() / 60)))??;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(failed(&abbreviate(String::from_utf8_lossy(&output.stderr).trim(), MAX_OUTPUT_CHARS)))
    }
}

async fn run_to_end(mut command: Command, input: &str) -> std::io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that fails at once reads nothing, and its message says why.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) =
        tokio::try_join!(read_limited(stdout), read_limited(stderr), child.wait())?;
    Ok(Output { status, stdout, stderr })
}

/// Reads up to the limit. A program that writes more fails, because nothing reads it.
async fn read_limited(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(stream) = stream {
        stream.take(MAX_OUTPUT_BYTES).read_to_end(&mut read).await?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_limited() {
        let program = |script: &'static str| {
            PackageManager { name: "sh", install_hint: "", env: &[] }.run(
                Path::new("/"),
                &["-c", script],
                Some("in"),
            )
        };
        assert_eq!(program("cat").unwrap(), "in");
        let error = program("echo no >&2; exit 1").unwrap_err();
        assert_eq!(error.message, "`sh ` failed:\nno\n");
        let error = program("exec cat /dev/zero").unwrap_err();
        assert!(error.message.contains("failed"), "{error}");
    }
}
