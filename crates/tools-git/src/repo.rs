//! Location of a repository. Everything that git would follow out of the workspace is refused before git runs.

use crate::git_config::{self, ConfigEntry};
use crate::program::safe_arg::Pathspec;
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{Fs, Kind, RootedPath, ToolError, WorkPath};
use std::path::{Component, Path, PathBuf};

/// A repository beneath a root, passed to git by absolute paths, so that git does no discovery.
#[derive(Debug, Clone)]
pub struct Repo {
    /// Top of the work tree, or the repository itself if it is bare.
    pub top: RootedPath,
    pub git_dir: PathBuf,
    /// Directory of settings, objects and branches: a different one if this is one of several work trees.
    pub common_dir: PathBuf,
    pub config: Vec<ConfigEntry>,
    /// Entries of the common directory.
    pub common_entries: Vec<String>,
    pub bare: bool,
    /// The directory that the caller named, relative to the top.
    pub prefix: PathBuf,
    /// Whether there are hooks, which never run.
    pub has_hooks: bool,
}

/// Maximum bytes of small files in `.git`.
const MAX_GIT_FILE_BYTES: u64 = 65_536;
/// Maximum bytes of a configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Entries of a git directory that git follows if they are links.
const FOLLOWED_LINKS: [&str; 14] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "index",
    "info",
    "logs",
    "objects",
    "objects/info",
    "objects/pack",
    "packed-refs",
    "refs",
    "refs/heads",
    "shallow",
];

pub fn real_path(place: &RootedPath) -> PathBuf {
    place.root().path.join(place.relative())
}

impl Repo {
    /// Looks for a repository in a directory and its parents, up to the root and never beyond.
    pub fn find(fs: &Fs<Read>, path: &WorkPath) -> Result<Self, ToolError> {
        let named = fs.place(path)?;
        let start = fs.open_folder(&named)?.real;
        if start.relative().components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
            return Err(ToolError::invalid("This directory is inside .git.")
                .hint("Use the directory that contains .git."));
        }
        let mut here = PathBuf::from(start.relative());
        let mut prefix = PathBuf::new();
        loop {
            let folder = at_root(fs, &start, &here)?;
            if let Some(found) = git_folder(fs, &folder)? {
                let bare = found.relative() == folder.relative() && found.root().path == folder.root().path;
                let common = check(fs, &found, 0)?;
                let hooks = has_hooks(fs, &common);
                let entries = fs
                    .open_folder(&common)
                    .and_then(|folder| folder.entries())
                    .map_err(outside_workspace_error)?;
                return Ok(Self {
                    git_dir: real_path(&found),
                    common_dir: real_path(&common),
                    config: settings(fs, &found, &common)?,
                    common_entries: entries
                        .iter()
                        .map(|entry| entry.name.to_string_lossy().into_owned())
                        .collect(),
                    top: folder,
                    bare,
                    prefix,
                    has_hooks: hooks,
                });
            }
            let Some(name) = here.file_name().map(PathBuf::from) else {
                return Err(no_repository(path));
            };
            prefix = if prefix.as_os_str().is_empty() { name } else { name.join(prefix) };
            here.pop();
        }
    }

    /// Path of a file for git: literal, relative to the top, inside the repository.
    pub fn pathspec(&self, fs: &Fs<Read>, text: &str) -> Result<Pathspec, ToolError> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(ToolError::invalid("A path is empty or contains a control character."));
        }
        let inside = if text.starts_with('/') {
            let place = fs.place(&WorkPath::from(text))?;
            real_path(&place)
                .strip_prefix(real_path(&self.top))
                .map(Path::to_owned)
                .map_err(|_| outside(text))?
        } else {
            self.prefix.join(text)
        };
        let inside = normalize(&inside).ok_or_else(|| outside(text))?;
        let mut parts = inside.components();
        if parts.any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
            return Err(ToolError::denied("Files in .git cannot be used with git commands."));
        }
        let told = inside.to_string_lossy().into_owned();
        Ok(Pathspec::checked(if told.is_empty() { ".".to_owned() } else { told }))
    }

    pub fn pathspecs(&self, fs: &Fs<Read>, texts: &[impl AsRef<str>]) -> Result<Vec<Pathspec>, ToolError> {
        texts.iter().map(|text| self.pathspec(fs, text.as_ref())).collect()
    }

    /// Refuses changes in a read-only root.
    pub fn check_writable(&self) -> Result<(), ToolError> {
        if self.top.root().writable {
            return Ok(());
        }
        Err(ToolError::denied("This repository is in a read-only root.").hint("Only read access works here."))
    }
}

/// Resolves `.` and `..`; `None` if the path leaves its base.
pub fn normalize(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

fn outside(text: &str) -> ToolError {
    ToolError::denied(format!("{text} is not in this repository."))
        .hint("Use paths relative to repo_path, without leaving the repository.")
}

fn no_repository(path: &WorkPath) -> ToolError {
    ToolError::not_found(format!("Git repository not found at `{path}`."))
        .hint("Use the repository's directory as repo_path, or create one with `git`, command init.")
}

fn at_root(fs: &Fs<Read>, start: &RootedPath, inside: &Path) -> Result<RootedPath, ToolError> {
    let path = start.root().path.join(inside);
    fs.place(&WorkPath::from(path.to_string_lossy().as_ref()))
}

/// The git directory that belongs to this directory, if any: `.git`, the target of a `.git` file, or the directory
/// itself.
fn git_folder(fs: &Fs<Read>, folder: &RootedPath) -> Result<Option<RootedPath>, ToolError> {
    let dot = folder.join(".git");
    match kind(fs, &dot)? {
        Some(EntryKind::Folder | EntryKind::Symlink) => {
            Ok(Some(fs.open_folder(&dot).map_err(outside_workspace_error)?.real))
        }
        Some(EntryKind::File) => {
            let text = read(fs, &dot)?.unwrap_or_default();
            let target = text.strip_prefix("gitdir: ").map(str::trim_end).ok_or_else(|| {
                ToolError::invalid("The .git file does not point to a repository.").hint("Fix or remove it.")
            })?;
            follow(fs, folder, target).map(Some)
        }
        Some(EntryKind::Other) => Err(ToolError::invalid("The .git here is neither a directory nor a file.")),
        None if is_bare(fs, folder)? => Ok(Some(folder.clone())),
        None => Ok(None),
    }
}

fn is_bare(fs: &Fs<Read>, folder: &RootedPath) -> Result<bool, ToolError> {
    let holds = |name, wanted| kind(fs, &folder.join(name)).map(|found| found == Some(wanted));
    Ok(holds("HEAD", EntryKind::File)?
        && holds("objects", EntryKind::Folder)?
        && holds("refs", EntryKind::Folder)?)
}

/// The repository's settings, read once. Included files are not read.
fn settings(fs: &Fs<Read>, git: &RootedPath, common: &RootedPath) -> Result<Vec<ConfigEntry>, ToolError> {
    let of = |place: &RootedPath| match fs.read(place, MAX_CONFIG_BYTES) {
        Ok((bytes, _)) => git_config::parse(&String::from_utf8_lossy(&bytes)),
        Err(error) if error.kind == Kind::NotFound => Ok(Vec::new()),
        Err(error) => Err(outside_workspace_error(error)),
    };
    let mut all = of(&common.join("config"))?;
    let on = |entry: &ConfigEntry| entry.key == "extensions.worktreeconfig" && entry.value != "false";
    if all.iter().any(on) {
        all.extend(of(&git.join("config.worktree"))?);
    }
    Ok(all)
}

/// Common directory of a git directory; refuses one with parts outside the roots.
fn check(fs: &Fs<Read>, git: &RootedPath, depth: usize) -> Result<RootedPath, ToolError> {
    for name in FOLLOWED_LINKS {
        let place = git.join(name);
        if kind(fs, &place)? == Some(EntryKind::Symlink) {
            match fs.stat(&place) {
                Err(error) if error.kind != Kind::NotFound => return Err(outside_workspace_error(error)),
                _ => {}
            }
        }
    }
    alternates(fs, &git.join("objects"), depth)?;
    match read(fs, &git.join("commondir"))? {
        Some(text) if depth < 3 => check(fs, &follow(fs, git, text.trim_end())?, depth + 1),
        Some(_) => Err(outside_workspace_error(ToolError::invalid("too deep"))),
        None => Ok(git.clone()),
    }
}

/// Objects borrowed from other repositories, and what those borrow.
fn alternates(fs: &Fs<Read>, objects: &RootedPath, depth: usize) -> Result<(), ToolError> {
    let Some(text) = read(fs, &objects.join("info/alternates"))? else {
        return Ok(());
    };
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('"') || depth >= 3 {
            return Err(outside_workspace_error(ToolError::invalid("unsupported alternates")));
        }
        alternates(fs, &follow(fs, objects, line)?, depth + 1)?;
    }
    Ok(())
}

/// The directory that a file in a git directory points to, beneath a root.
fn follow(fs: &Fs<Read>, from: &RootedPath, target: &str) -> Result<RootedPath, ToolError> {
    let place =
        if target.starts_with('/') { fs.place(&WorkPath::from(target)) } else { Ok(from.join(target)) };
    place.and_then(|place| fs.open_folder(&place)).map(|folder| folder.real).map_err(outside_workspace_error)
}

fn outside_workspace_error(error: ToolError) -> ToolError {
    ToolError::denied("The repository has parts outside the workspace.")
        .hint("Use a repository whose .git directory, objects and work tree are all beneath a root.")
        .detail(error)
}

fn has_hooks(fs: &Fs<Read>, git: &RootedPath) -> bool {
    let entries = fs.open_folder(&git.join("hooks")).and_then(|folder| folder.entries()).unwrap_or_default();
    entries.iter().any(|entry| !entry.name.to_string_lossy().ends_with(".sample"))
}

fn kind(fs: &Fs<Read>, place: &RootedPath) -> Result<Option<EntryKind>, ToolError> {
    match fs.link_stat(place) {
        Ok(stat) => Ok(Some(stat.kind)),
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => Err(outside_workspace_error(error)),
    }
}

fn read(fs: &Fs<Read>, place: &RootedPath) -> Result<Option<String>, ToolError> {
    match fs.read(place, MAX_GIT_FILE_BYTES) {
        Ok((bytes, _)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => Err(outside_workspace_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::normalize;
    use std::path::{Path, PathBuf};

    #[test]
    fn paths_stay_inside() {
        for (path, inside) in [("a/./b", "a/b"), ("a/../b", "b"), (".", ""), ("a/..", ""), ("-x", "-x")] {
            assert_eq!(normalize(Path::new(path)), Some(PathBuf::from(inside)), "{path}");
        }
        for path in ["..", "a/../../b", "/etc", "../repo/a"] {
            assert_eq!(normalize(Path::new(path)), None, "{path}");
        }
    }
}
