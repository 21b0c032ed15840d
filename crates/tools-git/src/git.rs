//! `git`.

mod affected_files;
mod command_builder;
mod init_clone;
mod pull;
mod remote_commands;

use crate::program::git_command::GitCommand;
use crate::program::git_error;
use crate::program::run_git::{GitOutput, GitRepo, RemoteRoute};
use crate::subcommands::{self, CommandKind, ParsedCommand};
use crate::{GitSettings, RemoteGrants, git_commit, git_defaults};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Net, SshKey, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Runs a git subcommand with validated arguments and returns its output; a refusal lists what is allowed. Prefer
/// git_status, git_diff_structured, git_log_structured and git_commit where they fit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The subcommand, such as add, log, fetch or stash list.
    command: String,
    /// Options and arguments, one each; paths relative to repo_path, best after --.
    #[serde(default)]
    args: Option<Vec<String>>,
    /// The repository or a folder in it; for init and clone the folder to work in.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Maximum bytes of output, up to 1,000,000.
    #[serde(default = "max_bytes")]
    max_bytes: usize,
}

const fn max_bytes() -> usize {
    60_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// 0 on success.
    exit_code: i32,
    /// Standard output of git.
    stdout: String,
    /// Standard error of git.
    stderr: String,
    /// True if the end of stdout is missing.
    truncated: bool,
    /// True if nothing was done and this is what would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
    /// Why nothing was done, or what was omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Possible data loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct GitTool(pub GitSettings);

impl Tool for GitTool {
    const NAME: &'static str = "git";
    const TITLE: &'static str = "Run git";
    const KEYWORDS: &'static str = "version control fetch pull merge rebase stash checkout clone tag reset";
    const REQUESTS: &'static [&'static str] = &[
        "stash my changes for later",
        "create a new branch and check it out",
        "pull the newest changes from origin",
        "rebase the feature onto main",
        "put a version tag on the release",
        "clone a repository from its address",
        "stage the file with add, or unstage it with reset",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = RemoteGrants;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "The commits in one line each",
                json!({"command": "log", "args": ["--oneline", "-n", "5"]}),
            ),
            Example::new("Stage a file", json!({"command": "add", "args": ["--", "notes.txt"]})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec, (ssh, net)): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let asked = subcommands::parse(&input.command, &input.args.unwrap_or_default())?;
        let keep = input.max_bytes.clamp(1, 1_000_000);
        let at = GitCall { settings: &self.0, fs: &fs, exec: &exec, ssh: &ssh, net: &net, cx, keep };
        let mut output = at.run(&asked, &input.repo_path).await?;
        let warnings = asked.warnings();
        if !output.dry_run && !warnings.is_empty() {
            output.warning = Some(warnings.join(" "));
        }
        Ok(output)
    }
}

/// Context of a call.
struct GitCall<'a> {
    settings: &'a GitSettings,
    fs: &'a Fs<Read>,
    exec: &'a Exec,
    ssh: &'a SshKey,
    net: &'a Net,
    cx: &'a CallContext,
    keep: usize,
}

impl GitCall<'_> {
    async fn run(&self, asked: &ParsedCommand, path: &WorkPath) -> Result<Output, ToolError> {
        match asked.kind() {
            CommandKind::Commit
                if asked.subcommand.name == "rebase"
                    && asked.positionals.len() == 2
                    && self.settings.allow_commit =>
            {
                // git mistakes the current branch for one that is checked out in another work tree.
                let git = GitRepo::open(self.fs, self.exec, self.cx, path).await?;
                let mut asked = asked.clone();
                if git.branch().await?.as_ref() == asked.positionals.last() {
                    asked.positionals.pop();
                }
                self.commit(&asked, path).await
            }
            CommandKind::Init => self.init(asked, path).await,
            CommandKind::Clone => self.clone_into(asked, path).await,
            CommandKind::Read => {
                let git = GitRepo::open(self.fs, self.exec, self.cx, path).await?;
                self.finish(&git, command_builder::local(&git, asked)?, &RemoteRoute::NoRemote).await
            }
            CommandKind::Write => {
                let git = self.open_to_write(path).await?;
                let command = command_builder::local(&git, asked)?;
                affected_files::check_protected(&git, asked).await?;
                self.finish(&git, command, &RemoteRoute::NoRemote).await
            }
            CommandKind::Commit if self.settings.allow_commit => self.commit(asked, path).await,
            CommandKind::Commit => self.would_commit(asked, path).await,
            CommandKind::Pull if !self.settings.allow_commit => self.would_commit(asked, path).await,
            CommandKind::Push if !self.settings.allow_push => self.dry_run_push(asked, path).await,
            CommandKind::Fetch | CommandKind::Pull | CommandKind::Push => self.run_remote(asked, path).await,
        }
    }

    async fn commit(&self, asked: &ParsedCommand, path: &WorkPath) -> Result<Output, ToolError> {
        let git = self.open_to_write(path).await?;
        let command = command_builder::local(&git, asked)?;
        affected_files::check_protected(&git, asked).await?;
        let mut output = self.finish(&git, command, &RemoteRoute::NoRemote).await?;
        output.note = git.repo.has_hooks.then(|| "The repository has hooks; they were not run.".to_owned());
        Ok(output)
    }

    async fn open_to_write(&self, path: &WorkPath) -> Result<GitRepo, ToolError> {
        GitRepo::open_to_write(self.fs, self.exec, self.cx, path, &self.settings.identity()).await
    }

    async fn finish(
        &self,
        git: &GitRepo,
        command: GitCommand,
        route: &RemoteRoute,
    ) -> Result<Output, ToolError> {
        Ok(self.to_output(git.run_with_route(command.max_output(self.keep), route).await?))
    }

    /// git's output without passwords and without the path of the key.
    fn to_output(&self, ran: GitOutput) -> Output {
        let clean = |text: &str| {
            git_error::redact_credentials(text).replace(&*self.ssh.folder().to_string_lossy(), "…")
        };
        Output {
            exit_code: ran.exit_code,
            stdout: clean(&ran.text()),
            stderr: clean(&ran.stderr).chars().take(20_000).collect(),
            truncated: ran.truncated,
            dry_run: false,
            note: None,
            warning: None,
        }
    }

    /// Rehearses a commit; for the rest, only reports that nothing was done.
    async fn would_commit(&self, asked: &ParsedCommand, path: &WorkPath) -> Result<Output, ToolError> {
        let rehearsed = asked.subcommand.name == "commit";
        let git = if rehearsed {
            self.open_to_write(path).await?
        } else {
            GitRepo::open(self.fs, self.exec, self.cx, path).await?
        };
        let mut output = if rehearsed {
            let command = command_builder::local(&git, asked)?.flags(&["--dry-run", "--short"]);
            self.finish(&git, command, &RemoteRoute::NoRemote).await?
        } else {
            command_builder::check(&git, asked)?;
            self.to_output(GitOutput {
                exit_code: 0,
                stdout: Vec::new(),
                truncated: false,
                stderr: String::new(),
            })
        };
        output.dry_run = true;
        output.note = Some(self.cx.append_remedy(git_commit::COMMITS_DISABLED, &git_commit::commit_remedy()));
        Ok(output)
    }
}
