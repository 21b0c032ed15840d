//! `git_commit`.

use crate::command::Command;
use crate::parse::{self, status};
use crate::run::Git;
use crate::value::{self, Pathspec};
use crate::{Settings, fault, given};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const OFF: &str = "Nothing was committed: commits are off. The setting git.allow_commit (OCTOPROX_GIT_ALLOW_COMMIT) turns them on.";
const HOOKS: &str = "The repository has hooks; they were not run.";

/// Commits exactly the named files, all tracked changes, or what is staged, and gives the new commit; where commits are
/// off, tells what it would commit. Prefer naming files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The message: a first line, and after an empty line the rest.
    message: String,
    /// Files and folders to commit, new ones too, relative to repo_path; nothing else is committed.
    #[serde(default)]
    files: Option<Vec<WorkPath>>,
    /// Commit all changes of tracked files.
    #[serde(default)]
    all: bool,
    /// The repository, or a folder in it.
    #[serde(default = "given::here")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Id of the new commit; absent when nothing was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The branch it is on, or (detached).
    branch: String,
    /// How many files it holds.
    files_changed: usize,
    /// The files.
    files: Vec<String>,
    /// The message.
    message: String,
    /// True when this is only what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
    /// Why nothing was committed, or what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct Commit(pub Settings);

impl Tool for Commit {
    const NAME: &'static str = "git_commit";
    const TITLE: &'static str = "Commit";
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
        let message = value::message(&input.message)?;
        let files = input.files.unwrap_or_default();
        if input.all && !files.is_empty() {
            return Err(ToolError::invalid("Give files or all, not both."));
        }
        let git = if self.0.allow_commit {
            Git::open_to_write(&fs, &exec, cx, &input.repo_path, &self.0.identity()).await?
        } else {
            Git::open(&fs, &exec, cx, &input.repo_path).await?
        };
        let paths = git.repo.pathspecs(&fs, &files)?;
        let branch = git.branch().await?.unwrap_or_else(|| "(detached)".to_owned());
        if !self.0.allow_commit {
            let files = would_hold(&git, paths, input.all).await?;
            let note = Some(OFF.to_owned());
            let files_changed = files.len();
            return Ok(Output { commit: None, branch, files_changed, files, message, dry_run: true, note });
        }
        let (commit, files) = make(&git, paths, input.all, &message).await?;
        let note = git.repo.hooks.then(|| HOOKS.to_owned());
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
    ToolError::invalid("There is nothing to commit.")
        .hint("Give files, or all: true for tracked changes; git_status shows what has changed.")
}

/// The files that a commit would hold.
async fn would_hold(git: &Git, paths: Vec<Pathspec>, all: bool) -> Result<Vec<String>, ToolError> {
    let named = !paths.is_empty();
    let command = Command::read("status")
        .flags(&["--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty"])
        .paths(paths);
    let status = status::parse(&git.run(command).await?.out);
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
    git: &Git,
    paths: Vec<Pathspec>,
    all: bool,
    message: &str,
) -> Result<(String, Vec<String>), ToolError> {
    let mut command = Command::write("commit")
        .flags(&["--quiet", "--no-verify", "--no-gpg-sign", "--file=-"])
        .stdin(message.to_owned());
    if all {
        command = command.flag("--all");
    }
    if !paths.is_empty() {
        git.run(Command::write("add").flag("--all").paths(paths.clone())).await?;
        command = command.flag("--only").paths(paths);
    }
    let ran = git.try_run(command).await?;
    if ran.code != 0 {
        let told = ran.text();
        let empty = ["nothing to commit", "no changes added", "nothing added to commit"];
        return Err(if empty.iter().any(|words| told.contains(words)) { nothing() } else { fault::of(&ran) });
    }
    let commit = git.run(Command::read("rev-parse").without_end().flags(&["--verify", "HEAD"])).await?.line();
    let listed = Command::read("diff-tree").flags(&[
        "--root",
        "--no-commit-id",
        "--name-only",
        "-r",
        "-z",
        "-m",
        "HEAD",
    ]);
    let mut files = parse::names(&git.run(listed.flags(&["--ignore-submodules=dirty"])).await?.out);
    files.sort();
    files.dedup();
    Ok((commit, files))
}
