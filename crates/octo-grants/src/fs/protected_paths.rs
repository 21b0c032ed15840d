//! What is never written: globs over real paths, so that a link is no way around them.

use super::resolve::TargetEntry;
use super::workspace::{Root, Workspace};
use super::{Fs, RootedPath};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use octo_model::ToolError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is never written unless the settings say otherwise. Exceptions stand before what must not be excepted.
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

/// Sets of patterns that have a name: what tools generate, and what editors keep.
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

/// A pattern, or the patterns of the set that it names.
fn expand_set(pattern: &str) -> Result<Vec<String>, ToolError> {
    if !pattern.starts_with('@') {
        return Ok(vec![pattern.to_owned()]);
    }
    let set = PATTERN_SETS.iter().find(|(name, _)| *name == pattern);
    let set = set.map(|(_, patterns)| patterns.iter().map(|&pattern| pattern.to_owned()).collect());
    set.ok_or_else(|| {
        let names: Vec<&str> = PATTERN_SETS.iter().map(|(name, _)| *name).collect();
        ToolError::invalid(format!("`{pattern}` is no set of protected patterns."))
            .hint(format!("The sets are {}.", names.join(", ")))
    })
}

/// Which paths are protected. The last pattern that matches decides. A pattern that matches a folder counts for the
/// folder and everything in it. A list that begins with an exception goes on from the default. Letters match in either
/// case, since some file systems do not tell them apart.
pub(super) struct ProtectedPaths {
    set: GlobSet,
    /// The patterns as given, two globs each: the thing itself and what is in it.
    patterns: Vec<String>,
    hub_data: Option<PathBuf>,
    /// Settings of the hub, which no setting opens: files, and folders with all that is in them.
    settings: Vec<PathBuf>,
}

/// What protects the settings of the hub, in place of a pattern.
pub(super) const SETTINGS_RULE: &str = "the hub's settings";

impl ProtectedPaths {
    pub fn new(patterns: &[String]) -> Result<Self, ToolError> {
        // An exception needs something that it is an exception from.
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
                                "`{pattern}` in `files.protected` is not a glob: {error}."
                            ))
                            .hint("Correct the pattern in the settings.")
                        },
                    )?,
                );
            }
        }
        let set = set.build().map_err(ToolError::internal)?;
        Ok(Self { set, patterns: all, hub_data: None, settings: Vec::new() })
    }

    /// Settings of the hub, by their canonical paths, also those that are not there yet.
    pub fn set_settings(&mut self, paths: Vec<PathBuf>) {
        self.settings = paths;
    }

    pub fn settings(&self) -> &[PathBuf] {
        &self.settings
    }

    /// A folder of the hub itself that no setting opens.
    pub fn set_hub_data(&mut self, folder: PathBuf) {
        self.hub_data = Some(folder);
    }

    /// Whether a path beneath a root is the hub's own data, which is not even read.
    pub fn is_hub_data(&self, root: &Root, real: &Path) -> bool {
        self.hub_data.as_ref().is_some_and(|never| root.path.join(real).starts_with(never))
    }

    /// Where the hub's own data lie beneath a root, if they do.
    pub fn hub_data_within(&self, root: &Root) -> Option<&Path> {
        self.hub_data.as_ref()?.strip_prefix(&root.path).ok()
    }

    /// The pattern that protects a path beneath a root.
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

impl Workspace {
    /// Refuses a change of what is protected or of a root that is read-only.
    pub(super) fn check_writable(&self, spot: &TargetEntry) -> Result<(), ToolError> {
        let root = spot.place.root();
        let whole = root.path.join(&spot.real_path);
        // A root that lies within this one decides for itself, and does not go away with a folder around it.
        let within = |other: &&Arc<Root>| {
            other.path != root.path
                && other.path.starts_with(&root.path)
                && (whole.starts_with(&other.path) || other.path.starts_with(&whole))
        };
        let fixed = (!root.writable).then_some(root);
        let fixed = fixed.or_else(|| {
            self.roots().iter().filter(within).map(|other| &**other).find(|other| !other.writable)
        });
        if let Some(fixed) = fixed {
            return Err(ToolError::denied(format!("The root `{}` is read-only.", fixed.name))
                .hint("Write to another root, or ask the operator to make this one writable."));
        }
        self.check_path(root, &spot.real_path, &spot.place.display())
    }

    /// The pattern that protects a path beneath a root, for everybody or at the profile of this call.
    pub(super) fn protecting_pattern(&self, root: &Root, real: &Path) -> Option<&str> {
        self.protected()
            .protecting_pattern(root, real)
            .or_else(|| self.profile_protected()?.protecting_pattern(root, real))
    }

    /// Refuses to look into the hub's own data, should it lie beneath a root.
    pub(super) fn check_readable(&self, real: &RootedPath, told: &str) -> Result<(), ToolError> {
        if !self.protected().is_hub_data(real.root(), real.relative()) {
            return Ok(());
        }
        Err(ToolError::denied(format!("`{told}` belongs to the hub itself."))
            .hint("Use another folder; the hub's own data is not open to tools."))
    }

    fn check_path(&self, root: &Root, real: &Path, told: &str) -> Result<(), ToolError> {
        match self.protecting_pattern(root, real) {
            None => Ok(()),
            Some(pattern) => Err(protected_error(told, pattern)),
        }
    }
}

impl<M: 'static> Fs<M> {
    /// Refuses a path that is never written, whether anything is there or not: for programs that write by themselves.
    pub fn check_changeable(&self, place: &RootedPath) -> Result<(), ToolError> {
        self.workspace().check_path(&place.root, &place.relative, &place.display())
    }
}

pub(super) fn protected_error(told: &str, pattern: &str) -> ToolError {
    if pattern == SETTINGS_RULE {
        return ToolError::denied(format!(
            "`{told}` belongs to the settings of this hub, so tools may not change it."
        ))
        .hint("Ask the operator to change it. A changed file is used after `octoprox trust`.");
    }
    ToolError::denied(format!("`{told}` is protected by `{pattern}`."))
        .hint("Leave it alone, or ask the operator to change the setting `files.protected`.")
}

#[cfg(test)]
mod tests {
    use super::*;
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
