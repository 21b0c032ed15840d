//! `git_commit`.

use crate::program::git_command::GitCommand;
use crate::program::git_error;
use crate::program::git_output::{self, status_output};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{self, Pathspec};
use crate::{GitSettings, git_defaults};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Remedy, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const COMMITS_DISABLED: &str =
    "Nothing was committed: commits are disabled. Enable them with the setting git.allow_commit.";
pub fn commit_remedy() -> Remedy {
    Remedy::settings(&["git.allow_commit"])
}
const HOOKS_SKIPPED: &str = "The repository has hooks; they were not run.";

/// Commits exactly the named files, all tracked changes, or what is staged, and returns the new commit; if disabled,
/// returns what it would commit. Prefer naming files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The message: subject line, empty line, body.
    message: String,
    /// Files and folders to commit, new ones too, relative to repo_path; nothing else is committed.
    #[serde(default)]
    files: Option<Vec<WorkPath>>,
    /// Commit all changes of tracked files.
    #[serde(default)]
    all: bool,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Id of the new commit; absent if nothing was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The branch it is on, or (detached).
    branch: String,
    /// Number of files in it.
    files_changed: usize,
    /// The files.
    files: Vec<String>,
    /// The message.
    message: String,
    /// True if this is only what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
    /// Why nothing was committed, or what was omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct Commit(pub GitSettings);

impl Tool for Commit {
    const NAME: &'static str = "git_commit";
    const TITLE: &'static str = "Commit";
    const KEYWORDS: &'static str = "save check in record snapshot changes";
    const REQUESTS: &'static [&'static str] = &[
        "save my work to the repository with a message",
        "record the fix in readme.md under a short description",
        "check in the two changed files",
        "make a snapshot of all tracked changes in version control",
        "finish the task by committing the new module",
        "put what is staged into the history",
    ];
    const EFFECT: Effect = Effect::writes();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "Commit one file",
            json!({"message": "Say more in the notes", "files": ["notes.txt"]}),
        )]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let message = safe_arg::check_message(&input.message)?;
        let files = input.files.unwrap_or_default();
        if input.all && !files.is_empty() {
            return Err(ToolError::invalid("Use files or all, not both."));
        }
        let git = if self.0.allow_commit {
            GitRepo::open_to_write(&fs, &exec, cx, &input.repo_path, &self.0.identity()).await?
        } else {
            GitRepo::open(&fs, &exec, cx, &input.repo_path).await?
        };
        let paths = git.repo.pathspecs(&fs, &files)?;
        let branch = git.branch().await?.unwrap_or_else(|| "(detached)".to_owned());
        if !self.0.allow_commit {
            let files = files_to_commit(&git, paths, input.all).await?;
            let note = Some(cx.append_remedy(COMMITS_DISABLED, &commit_remedy()));
            let files_changed = files.len();
            return Ok(Output { commit: None, branch, files_changed, files, message, dry_run: true, note });
        }
        let (commit, files) = make(&git, paths, input.all, &message).await?;
        let note = git.repo.has_hooks.then(|| HOOKS_SKIPPED.to_owned());
        Ok(Output {
            commit: Some(commit),
            branch,
            files_changed: files.len(),
            files,
            message,
            dry_run: false,
            note,
        })
    }
}

fn nothing() -> ToolError {
    ToolError::invalid("Nothing to commit.")
        .hint("Use files, or all: true for tracked changes; git_status shows what has changed.")
}

/// Files that a commit would contain.
async fn files_to_commit(git: &GitRepo, paths: Vec<Pathspec>, all: bool) -> Result<Vec<String>, ToolError> {
    let named = !paths.is_empty();
    let command = GitCommand::read("status")
        .flags(&["--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty"])
        .paths(paths);
    let status = status_output::parse(&git.run(command).await?.stdout);
    let mut files: Vec<String> = status.staged.into_iter().map(|entry| entry.path).collect();
    if all || named {
        files.extend(status.unstaged.into_iter().map(|entry| entry.path));
    }
    if named {
        files.extend(status.untracked);
    }
    files.sort();
    files.dedup();
    if files.is_empty() { Err(nothing()) } else { Ok(files) }
}

async fn make(
    git: &GitRepo,
    paths: Vec<Pathspec>,
    all: bool,
    message: &str,
) -> Result<(String, Vec<String>), ToolError> {
    let mut command = GitCommand::write("commit")
        .flags(&["--quiet", "--no-verify", "--no-gpg-sign", "--file=-"])
        .stdin(message.to_owned());
    if all {
        command = command.flag("--all");
    }
    if !paths.is_empty() {
        git.run(GitCommand::write("add").flag("--all").paths(paths.clone())).await?;
        command = command.flag("--only").paths(paths);
    }
    let ran = git.try_run(command).await?;
    if ran.exit_code != 0 {
        let told = ran.text();
        let empty = ["nothing to commit", "no changes added", "nothing added to commit"];
        return Err(if empty.iter().any(|words| told.contains(words)) {
            nothing()
        } else {
            git_error::to_tool_error(&ran)
        });
    }
    let commit = git
        .run(GitCommand::read("rev-parse").without_end_of_options().flags(&["--verify", "HEAD"]))
        .await?
        .trimmed();
    let listed = GitCommand::read("diff-tree").flags(&[
        "--root",
        "--no-commit-id",
        "--name-only",
        "-r",
        "-z",
        "-m",
        "HEAD",
    ]);
    let mut files =
        git_output::split_nul(&git.run(listed.flags(&["--ignore-submodules=dirty"])).await?.stdout);
    files.sort();
    files.dedup();
    Ok((commit, files))
}
