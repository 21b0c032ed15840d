//! Protected paths: globs over real paths, so that links cannot bypass them.

use super::root::Root;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use octo_model::{Remedy, ToolError};
use std::path::{Path, PathBuf};

/// Default protected patterns. Exceptions come before patterns that must not be excepted.
pub fn default_protected() -> Vec<String> {
    const ALL: [&str; 30] = [
        "**/.env",
        "**/.env.*",
        "!**/.env.example",
        "!**/.env.sample",
        "!**/.env.template",
        "**/*.pem",
        "**/*.key",
        "**/id_rsa*",
        "**/id_ed25519*",
        "**/id_ecdsa*",
        "!**/id_*.pub",
        "**/.netrc",
        "**/.npmrc",
        "**/.pypirc",
        "**/.git-credentials",
        "**/.docker/config.json",
        "**/.kube/config",
        "**/secrets.yaml",
        "**/secrets.yml",
        "**/credentials.json",
        "target/**",
        "dist/**",
        "build/**",
        "**/node_modules/**",
        "**/.venv/**",
        "**/venv/**",
        "**/__pycache__/**",
        "**/.ssh/**",
        "**/.aws/**",
        "**/.gnupg/**",
    ];
    ALL.into_iter().chain(["**/.git/**"]).map(str::to_owned).collect()
}

/// Named pattern sets: generated files, and files of editors.
const PATTERN_SETS: [(&str, &[&str]); 1] = [(
    "@generated",
    &[
        "**/site-packages/**",
        "**/dist/**",
        "**/build/**",
        "**/.next/**",
        "**/target/**",
        "**/*.pyc",
        "**/*.pyo",
        "**/*.so",
        "**/*.dylib",
        "**/*.class",
        "**/.idea/**",
        "**/.vscode/**",
        "**/*.swp",
    ],
)];

/// Returns the pattern, or the patterns of the set that it names.
fn expand_set(pattern: &str) -> Result<Vec<String>, ToolError> {
    if !pattern.starts_with('@') {
        return Ok(vec![pattern.to_owned()]);
    }
    let set = PATTERN_SETS.iter().find(|(name, _)| *name == pattern);
    let set = set.map(|(_, patterns)| patterns.iter().map(|&pattern| pattern.to_owned()).collect());
    set.ok_or_else(|| {
        let names: Vec<&str> = PATTERN_SETS.iter().map(|(name, _)| *name).collect();
        ToolError::invalid(format!("Unknown set of protected patterns: `{pattern}`."))
            .hint(format!("The sets are {}.", names.join(", ")))
    })
}

/// Decides which paths are protected. The last matching pattern wins. A pattern that matches a directory includes
/// everything beneath it. A list that starts with an exception extends the default. Matching ignores case, because
/// some file systems do.
pub(super) struct ProtectedPaths {
    set: GlobSet,
    /// The patterns as given, with two globs each: the entry itself and everything beneath it.
    patterns: Vec<String>,
    hub_data: Option<PathBuf>,
    /// Settings of the hub, which no setting can unprotect: files, and directories with everything beneath them.
    settings: Vec<PathBuf>,
}

/// Rule name for the settings of the hub, in place of a pattern.
pub(super) const SETTINGS_RULE: &str = "the hub's settings";

impl ProtectedPaths {
    pub fn new(patterns: &[String]) -> Result<Self, ToolError> {
        // An exception needs a base.
        let mut all = match patterns.first() {
            Some(first) if first.starts_with('!') => default_protected(),
            _ => Vec::new(),
        };
        for pattern in patterns {
            all.extend(expand_set(pattern)?);
        }
        let mut set = GlobSetBuilder::new();
        for pattern in &all {
            let glob = pattern.strip_prefix('!').unwrap_or(pattern);
            let glob = glob.strip_suffix("/**").unwrap_or(glob).trim_end_matches('/');
            for glob in [glob.to_owned(), format!("{glob}/**")] {
                set.add(
                    GlobBuilder::new(&glob).literal_separator(true).case_insensitive(true).build().map_err(
                        |error| {
                            ToolError::invalid(format!(
                                "`{pattern}` in `files.protected` is not a valid glob: {error}."
                            ))
                            .hint("Fix the pattern in the settings.")
                        },
                    )?,
                );
            }
        }
        let set = set.build().map_err(ToolError::internal)?;
        Ok(Self { set, patterns: all, hub_data: None, settings: Vec::new() })
    }

    /// Settings of the hub by canonical path, including those that do not exist yet.
    pub fn set_settings(&mut self, paths: Vec<PathBuf>) {
        self.settings = paths;
    }

    pub fn settings(&self) -> &[PathBuf] {
        &self.settings
    }

    /// A directory of the hub itself, which no setting can unprotect.
    pub fn set_hub_data(&mut self, folder: PathBuf) {
        self.hub_data = Some(folder);
    }

    /// Whether a path beneath a root belongs to the state directory, which tools cannot even read.
    pub fn is_hub_data(&self, root: &Root, real: &Path) -> bool {
        self.hub_data.as_ref().is_some_and(|never| root.path.join(real).starts_with(never))
    }

    /// Path of the state directory beneath a root, if it is there.
    pub fn hub_data_within(&self, root: &Root) -> Option<&Path> {
        self.hub_data.as_ref()?.strip_prefix(&root.path).ok()
    }

    /// Pattern that protects a path beneath a root.
    pub fn protecting_pattern(&self, root: &Root, real: &Path) -> Option<&str> {
        if self.is_hub_data(root, real) {
            return Some("the hub itself");
        }
        let whole = root.path.join(real);
        if self.settings.iter().any(|kept| whole.starts_with(kept)) {
            return Some(SETTINGS_RULE);
        }
        let last = self.set.matches(real).into_iter().max()?;
        self.patterns.get(last / 2).map(String::as_str).filter(|pattern| !pattern.starts_with('!'))
    }
}

pub(super) fn protected_error(told: &str, pattern: &str) -> ToolError {
    if pattern == SETTINGS_RULE {
        return ToolError::denied(format!(
            "`{told}` belongs to the settings of this hub; tools may not change it."
        ))
        .hint("Ask the operator to change it.")
        .remedy(Remedy::ApproveSettings);
    }
    ToolError::denied(format!("`{told}` is protected by `{pattern}`."))
        .hint("Use another path, or ask the operator to change the setting `files.protected`.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Workspace;
    use crate::fs::{RootSpec, WorkspaceSpec};

    fn is_protected(patterns: &[&str], path: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let root =
            RootSpec { name: "w".into(), path: folder.path().into(), alias_path: None, writable: true };
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let workspace =
            Workspace::open(WorkspaceSpec { roots: vec![root], protected: patterns, ..Default::default() })
                .unwrap();
        workspace.protected().protecting_pattern(&workspace.roots()[0], Path::new(path)).is_some()
    }

    #[test]
    fn the_default_protects_these_and_not_those() {
        let all = default_protected();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        for path in [
            ".git",
            ".git/config",
            "a/.git/hooks/x",
            ".GIT/config",
            "node_modules",
            "a/node_modules/b/c.js",
            ".venv/bin/python",
            "a/venv/x",
            "a/__pycache__/b.pyc",
            "target",
            "target/debug/x",
            "dist/a.js",
            "build/x",
            ".env",
            ".env.local",
            "a/.env.production",
            "a/server.pem",
            "x.key",
            ".ssh/config",
            "id_rsa",
            "id_rsa.old",
            "a/id_ed25519",
            "id_ecdsa_sk",
            ".aws/credentials",
            ".gnupg",
            ".netrc",
            "a/.npmrc",
            ".pypirc",
            ".git-credentials",
            ".docker/config.json",
            ".kube/config",
            "secrets.yaml",
            "a/credentials.json",
            ".git/.env.example",
            ".ssh/id_rsa.pub",
        ] {
            assert!(is_protected(&all, path), "{path} should be protected");
        }
        for path in [
            ".",
            "a.txt",
            "src/main.rs",
            ".gitignore",
            ".github/workflows/ci.yml",
            "src/target/x",
            "src/build/x",
            "a/dist/x",
            ".env.example",
            "a/.env.sample",
            ".env.template",
            "id_rsa.pub",
            "a/id_ed25519.pub",
            "keys.txt",
            ".docker/daemon.json",
            "environment",
            "my.env",
            ".environment",
            "gitx",
        ] {
            assert!(!is_protected(&all, path), "{path} should be free");
        }
    }

    #[test]
    fn the_last_match_wins_and_a_folder_counts_for_what_is_in_it() {
        for (patterns, path, expected) in [
            (vec!["secrets"], "secrets/a/b", true),
            (vec!["secrets/"], "secrets", true),
            (vec!["secrets", "!secrets/open"], "secrets/open/x", false),
            (vec!["!secrets/open", "secrets"], "secrets/open/x", true),
            (vec!["*.lock"], "a/x.lock", false),
            (vec!["**/*.lock"], "a/x.lock", true),
            (vec![], ".git/config", false),
            (vec!["!build"], "build/x", false),
            (vec!["!build"], ".git/config", true),
            (vec!["!build", "secrets"], ".env", true),
            (vec!["!**"], ".git/config", false),
            (vec!["secrets", "!build"], ".git/config", false),
            (vec!["@generated"], "a/b/dist/x.js", true),
            (vec!["@generated"], "lib/python3/site-packages/x.py", true),
            (vec!["@generated"], "a/x.so", true),
            (vec!["@generated"], "a/.vscode/settings.json", true),
            (vec!["@generated", "!**/dist/**"], "a/dist/x", false),
            (vec!["@generated"], "src/main.rs", false),
        ] {
            assert_eq!(is_protected(&patterns, path), expected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn a_broken_pattern_is_an_error_that_names_the_setting() {
        let error = ProtectedPaths::new(&["a{".to_owned()]).err().unwrap();
        assert!(error.message.contains("files.protected"), "{error}");
        let error = ProtectedPaths::new(&["@genrated".to_owned()]).err().unwrap();
        assert!(error.text().contains("@generated"), "{error}");
    }
}
