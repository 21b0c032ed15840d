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
    ALL.into_iter().chain([RUNS_PROGRAMS, "**/.git/**"]).map(str::to_owned).collect()
}

/// Set of the files that make an editor, an agent, a shell, git or CI run programs or obey instructions, without a command
/// that names them. Files with which a project is built are ordinary work.
const RUNS_PROGRAMS: &str = "@runs-programs";

/// Named pattern sets.
const PATTERN_SETS: [(&str, &[&str]); 2] =
    [("@generated", &GENERATED), (RUNS_PROGRAMS, &RUNS_PROGRAMS_PATTERNS)];

const RUNS_PROGRAMS_PATTERNS: [&str; 87] = [
    // Editors.
    "**/.vscode/**",
    "**/*.code-workspace",
    "**/.cursor/**",
    "**/.windsurf/**",
    "**/.zed/**",
    "**/.idea/**",
    "**/.fleet/**",
    "**/.vs/**",
    "**/.exrc",
    "**/.nvimrc",
    "**/.nvim.lua",
    "**/.vimrc",
    "**/.lvimrc",
    "**/.vim/**",
    "**/.dir-locals.el",
    "**/.devcontainer/**",
    "**/.devcontainer.json",
    // Agents: settings, servers, hooks and instructions.
    "**/.mcp.json",
    "**/.claude/**",
    "**/CLAUDE.md",
    "**/CLAUDE.local.md",
    "**/AGENTS.md",
    "**/AGENT.md",
    "**/AGENTS.override.md",
    "**/.agents/**",
    "**/.codex/**",
    "**/.gemini/**",
    "**/GEMINI.md",
    "**/.qwen/**",
    "**/QWEN.md",
    "**/opencode.json",
    "**/opencode.jsonc",
    "**/.opencode/**",
    "**/crush.json",
    "**/.crush.json",
    "**/.cursorrules",
    "**/.windsurfrules",
    "**/.clinerules/**",
    "**/.cline/**",
    "**/.roo/**",
    "**/.roomodes",
    "**/.kiro/**",
    "**/.kilocode/**",
    "**/.amazonq/**",
    "**/.continue/**",
    "**/.junie/**",
    "**/.trae/**",
    "**/.augment/**",
    "**/.factory/**",
    "**/.goosehints",
    "**/.aider.conf.yml",
    "**/.agent/rules/**",
    "**/.rules",
    "**/WARP.md",
    "**/.openhands/**",
    "**/.tabnine/**",
    "**/.github/copilot-instructions.md",
    "**/.github/{instructions,prompts,chatmodes,agents,hooks}/**",
    // Shells, tools that run code of their settings, hooks of repositories and CI.
    "**/.envrc",
    ".bashrc",
    ".zshrc",
    ".profile",
    "**/.mise.toml",
    "**/mise.toml",
    "**/.yarnrc.yml",
    "**/.pnpmfile.cjs",
    "**/.cargo/config.toml",
    "**/.cargo/config",
    "**/.gdbinit",
    "**/.hg/**",
    "**/.simple-git-hooks.json",
    "**/.husky/**",
    "**/.githooks/**",
    "**/lefthook{.yml,.yaml,.toml,.json,-local.yml,-local.yaml,-local.toml,-local.json}",
    "**/.lefthook{.yml,.yaml,.toml,.json,-local.yml,-local.yaml,-local.toml,-local.json}",
    "**/.pre-commit-config.yaml",
    "**/.pre-commit-hooks.yaml",
    "**/.overcommit.yml",
    "**/.github/workflows/**",
    "**/.github/actions/**",
    "**/.circleci/**",
    "**/.buildkite/**",
    "**/.forgejo/workflows/**",
    "**/.gitea/workflows/**",
    "**/.travis.yml",
    "**/.woodpecker.yml",
    "**/.woodpecker/**",
];

const GENERATED: [&str; 13] = [
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
];

/// One pattern of a list.
struct ProtectedPattern {
    glob: String,
    is_exception: bool,
    /// Whether it is part of [`RUNS_PROGRAMS`].
    runs_programs: bool,
}

/// Returns the pattern, or the patterns of the set that it names. `!` makes exceptions of all of them.
fn expand_set(pattern: &str) -> Result<Vec<ProtectedPattern>, ToolError> {
    let (named, is_exception) = pattern.strip_prefix('!').map_or((pattern, false), |named| (named, true));
    let expand = |globs: &[&str]| -> Vec<ProtectedPattern> {
        let runs_programs = named == RUNS_PROGRAMS;
        let one = |glob: &&str| ProtectedPattern { glob: (*glob).to_owned(), is_exception, runs_programs };
        globs.iter().map(one).collect()
    };
    if !named.starts_with('@') {
        return Ok(expand(&[named]));
    }
    let set = PATTERN_SETS.iter().find(|(name, _)| *name == named);
    set.map(|(_, globs)| expand(globs)).ok_or_else(|| {
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
    /// The patterns, with two globs each: the entry itself and everything beneath it.
    patterns: Vec<ProtectedPattern>,
    hub_data: Option<PathBuf>,
    /// Settings of the hub, which no setting can unprotect: files, and directories with everything beneath them.
    settings: Vec<PathBuf>,
}

/// Who decides the content of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOrigin {
    /// The caller of a tool.
    Caller,
    /// Commits: git brings what others have written, also files of [`RUNS_PROGRAMS`].
    Commits,
}

/// What protects a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Protection {
    /// It belongs to the hub itself.
    Hub,
    /// It belongs to the settings of the hub.
    Settings,
    Pattern {
        glob: String,
        runs_programs: bool,
    },
}

impl ProtectedPaths {
    pub fn new(patterns: &[String]) -> Result<Self, ToolError> {
        // An exception needs a base.
        let base = match patterns.first() {
            Some(first) if first.starts_with('!') => default_protected(),
            _ => Vec::new(),
        };
        let mut all = Vec::new();
        for pattern in base.iter().chain(patterns) {
            all.extend(expand_set(pattern)?);
        }
        let mut set = GlobSetBuilder::new();
        for ProtectedPattern { glob: pattern, .. } in &all {
            let glob = pattern.strip_suffix("/**").unwrap_or(pattern).trim_end_matches('/');
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

    /// What protects a path beneath a root from a change.
    pub fn protection(&self, root: &Root, real: &Path, origin: ChangeOrigin) -> Option<Protection> {
        if self.is_hub_data(root, real) {
            return Some(Protection::Hub);
        }
        let whole = root.path.join(real);
        if self.settings.iter().any(|kept| whole.starts_with(kept)) {
            return Some(Protection::Settings);
        }
        let matching =
            self.set.matches(real).into_iter().filter_map(|at| Some((at, self.patterns.get(at / 2)?)));
        let binding = matching.filter(|(_, pattern)| {
            origin == ChangeOrigin::Caller || !pattern.runs_programs || pattern.is_exception
        });
        let (_, last) = binding.max_by_key(|(at, _)| *at)?;
        let ProtectedPattern { glob, is_exception, runs_programs } = last;
        (!is_exception).then(|| Protection::Pattern { glob: glob.clone(), runs_programs: *runs_programs })
    }
}

pub(super) fn protected_error(told: &str, protection: &Protection) -> ToolError {
    let refused = |by: &str| ToolError::denied(format!("`{told}` is protected by `{by}`."));
    match protection {
        Protection::Settings => ToolError::denied(format!(
            "`{told}` belongs to the settings of this hub; tools may not change it."
        ))
        .hint("Ask the operator to change it.")
        .remedy(Remedy::ApproveSettings),
        Protection::Hub => refused("the hub itself").hint("Use another path."),
        Protection::Pattern { glob, runs_programs: true } => refused(RUNS_PROGRAMS).hint(format!(
            "This file can make an editor, an agent, git or CI run programs. Show the change to the user, or ask the operator \
             to allow it with `files: {{protected: [\"!{glob}\"]}}` in the settings."
        )),
        Protection::Pattern { glob, runs_programs: false } => refused(glob)
            .hint("Use another path, or ask the operator to change the setting `files.protected`."),
    }
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
        let protection =
            |origin| workspace.protected().protection(&workspace.roots()[0], Path::new(path), origin);
        if protection(ChangeOrigin::Caller).is_none() {
            assert_eq!(protection(ChangeOrigin::Commits), None, "{path}: commits are free to do more");
        }
        protection(ChangeOrigin::Caller).is_some()
    }

    #[test]
    fn the_default_protects_files_that_run_programs() {
        let all = default_protected();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        for path in [
            ".vscode/tasks.json",
            ".VSCode/settings.json",
            "a/b.code-workspace",
            ".cursor/mcp.json",
            ".claude/settings.json",
            ".mcp.json",
            ".gemini/settings.json",
            ".codex/config.toml",
            "opencode.json",
            ".envrc",
            ".husky/pre-commit",
            ".devcontainer/devcontainer.json",
            ".idea/workspace.xml",
            ".github/workflows/ci.yml",
            ".GitHub/Workflows/ci.yml",
            ".github/actions/x/action.yml",
            ".github/prompts/x.prompt.md",
            "AGENTS.md",
            "a/agents.md",
            "CLAUDE.md",
            ".zed/tasks.json",
            ".windsurf/rules/x.md",
            ".roo/mcp.json",
            ".kiro/hooks/x",
            "lefthook.yml",
            ".lefthook-local.toml",
            ".pre-commit-config.yaml",
            ".circleci/config.yml",
            ".forgejo/workflows/ci.yml",
            ".gitea/workflows/ci.yml",
            ".travis.yml",
            ".woodpecker.yml",
            ".woodpecker/ci.yml",
            ".agent/rules/x.md",
            ".rules",
            "WARP.md",
            ".openhands/setup.sh",
            ".tabnine/x",
            ".lvimrc",
            ".exrc",
            ".vim/plugin/x.vim",
            ".mise.toml",
            "a/mise.toml",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".cargo/config.toml",
            "a/.cargo/config",
            ".hg/hgrc",
            ".simple-git-hooks.json",
            ".gdbinit",
            ".bashrc",
            ".zshrc",
            ".profile",
        ] {
            assert!(is_protected(&all, path), "{path} should be protected");
        }
        for path in [
            ".github/CODEOWNERS",
            ".github/dependabot.yml",
            ".gitlab-ci.yml",
            "package.json",
            "Makefile",
            "Cargo.toml",
            "README.md",
            "docs/agents.txt",
            "claude/settings.json",
            "a/.profile",
            ".gitea/template.md",
            ".cargo/audit.toml",
        ] {
            assert!(!is_protected(&all, path), "{path} should be free");
        }
    }

    /// Commits bring files that run programs, and nothing else that is protected.
    #[test]
    fn commits_bring_files_that_run_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root =
            RootSpec { name: "w".into(), path: folder.path().into(), alias_path: None, writable: true };
        let protection = |patterns: &[&str], path: &str| {
            let protected = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let spec = WorkspaceSpec { roots: vec![root.clone()], protected, ..Default::default() };
            let workspace = Workspace::open(spec).unwrap();
            workspace.protected().protection(&workspace.roots()[0], Path::new(path), ChangeOrigin::Commits)
        };
        for path in [".github/workflows/ci.yml", ".vscode/tasks.json", "AGENTS.md"] {
            assert_eq!(protection(&["!none"], path), None, "{path}");
            assert!(
                protection(&["@runs-programs", "**/.github/**", ".vscode", "*.md"], path).is_some(),
                "{path}"
            );
        }
        for path in [".env", ".npmrc", ".git/config", ".husky/.env", ".vscode/id_rsa"] {
            assert!(protection(&["!none"], path).is_some(), "{path}");
        }
    }

    #[test]
    fn an_error_of_a_file_that_runs_programs_says_how_to_allow_it() {
        let allowed = ["!**/.vscode/**"];
        assert!(!is_protected(&allowed, ".vscode/tasks.json") && is_protected(&allowed, ".cursor/mcp.json"));
        assert!(!is_protected(&["!@runs-programs"], "a/CLAUDE.md"));
        let protection = Protection::Pattern { glob: "**/.vscode/**".to_owned(), runs_programs: true };
        let error = protected_error(".vscode/tasks.json", &protection).text();
        assert!(error.contains("`@runs-programs`") && error.contains("[\"!**/.vscode/**\"]"), "{error}");
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
            (vec!["@generated"], ".cursor/mcp.json", false),
            (vec!["@runs-programs"], ".env", false),
            (vec!["@runs-programs", "!@runs-programs"], "AGENTS.md", false),
            (vec![".git"], "AGENTS.md", false),
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
