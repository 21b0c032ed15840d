//! `git_status`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_output::status_output::{self, StatusEntry};
use crate::program::run_git::GitRepo;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows the branch, its distance from its upstream, and the staged, unstaged and untracked files; a folder without a
/// repository is an error. Prefer git_changes to include the diffs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The branch that is checked out, or (detached).
    pub branch: String,
    /// Commits that the upstream lacks.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// What the next commit will contain.
    pub staged: Vec<StatusEntry>,
    /// Changes of tracked files that are not staged.
    pub unstaged: Vec<StatusEntry>,
    /// Untracked files; a folder ends with a slash.
    pub untracked: Vec<String>,
    /// Files with conflicts to resolve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub conflicts: Vec<StatusEntry>,
    /// The branch's upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The commit that is checked out; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Unfinished operation: merge, rebase, cherry-pick, revert or bisect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// Number of stashes.
    pub stashes: u64,
    /// True if there is nothing to commit and nothing untracked.
    pub clean: bool,
}

pub struct Status;

impl Tool for Status {
    const NAME: &'static str = "git_status";
    const TITLE: &'static str = "Git status";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![Example::new("What has changed since the last commit", json!({}))]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        read_status(&git).await
    }
}

/// The command whose output [`status_output::parse`] reads.
pub fn command() -> GitCommand {
    GitCommand::read("status").flags(&[
        "--porcelain=v2",
        "--branch",
        "--show-stash",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
    ])
}

pub async fn read_status(git: &GitRepo) -> Result<Output, ToolError> {
    if git.repo.bare {
        return Err(ToolError::invalid("This repository is bare: it has no work tree.")
            .hint("Use git_log_structured, git_show or git_branches here."));
    }
    let status = status_output::parse(&git.run(command()).await?.stdout);
    let clean = status.staged.is_empty()
        && status.unstaged.is_empty()
        && status.untracked.is_empty()
        && status.conflicts.is_empty();
    Ok(Output {
        branch: status.branch.unwrap_or_else(|| "(detached)".to_owned()),
        ahead: status.ahead,
        behind: status.behind,
        staged: status.staged,
        unstaged: status.unstaged,
        untracked: status.untracked,
        conflicts: status.conflicts,
        upstream: status.upstream,
        head: status.head,
        in_progress: in_progress(git).await?,
        stashes: status.stashes,
        clean,
    })
}

/// git leaves a file for every operation that waits to be continued.
async fn in_progress(git: &GitRepo) -> Result<Option<String>, ToolError> {
    const STATE_FILES: [(&str, &str); 6] = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    let folder = git.repo.git_dir.clone();
    git.fs
        .run(move |fs| {
            let place = fs.place(&WorkPath::from(folder.to_string_lossy().as_ref()))?;
            let mark = STATE_FILES.iter().find(|(name, _)| fs.link_stat(&place.join(name)).is_ok());
            Ok(mark.map(|(_, what)| (*what).to_owned()))
        })
        .await
}
