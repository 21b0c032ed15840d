//! Lookup and output of local programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds a program in the search path, or by its path.
pub fn which(program: &str, path: Option<&str>, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(folder.join(program)).filter(|file| is_runnable(file));
    }
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|file| is_runnable(file))
}

fn is_runnable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Runs a program and returns the first line of its output if it succeeds.
pub fn first_line(program: &Path, args: &[&str]) -> Option<String> {
    first_line_with(program, args, Stdio::null())
}

/// Like `first_line`, with the given standard input.
pub fn first_line_with(program: &Path, args: &[&str], input: Stdio) -> Option<String> {
    // A program may read settings of the directory in which it starts, and this one may be a workspace.
    let mut command = Command::new(program);
    command.args(args).current_dir(octo_grants::NEUTRAL_DIR).stdin(input).stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned();
    output.status.success().then_some(text)
}

/// Path of this program for client configurations: the one in `PATH`, which stays valid after an upgrade, if it is
/// the same file.
pub fn own_program(path: Option<&str>) -> std::io::Result<PathBuf> {
    let real = std::env::current_exe()?;
    let same =
        |found: &PathBuf| found.canonicalize().is_ok_and(|found| Some(found) == real.canonicalize().ok());
    let named = which("octoprox", path, Path::new("/")).filter(same);
    Ok(named.unwrap_or(real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = format!("relative:/none:{}", folder.path().display());
        assert_eq!(which("tool", Some(&path), folder.path()), None, "it cannot be run");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(which("tool", Some(&path), Path::new("/")), Some(file.clone()));
        assert_eq!(which("./tool", None, folder.path()), Some(folder.path().join("./tool")));
        assert_eq!(which("tool", None, folder.path()), None);
    }
}
