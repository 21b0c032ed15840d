//! `git`.

mod far;
mod fill;
mod fresh;
mod pull;
mod touched;

use crate::allow::{self, Asked, Does};
use crate::command::Command;
use crate::run::{Git, Ran, Route};
use crate::{Far, Settings, commit, fault, given};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Net, SshKey, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Runs a git subcommand with arguments that are checked one by one, and gives its output; what is not allowed is refused
/// with what is. Prefer git_status, git_diff_structured, git_log_structured and git_commit where they fit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The subcommand, such as add, log, fetch or stash list.
    command: String,
    /// Its options and arguments, one each; paths relative to repo_path, best after --.
    #[serde(default)]
    args: Option<Vec<String>>,
    /// The repository or a folder in it; for init and clone the folder to work in.
    #[serde(default = "given::here")]
    repo_path: WorkPath,
    /// Bytes of output in the answer, at most 1,000,000.
    #[serde(default = "max_bytes")]
    max_bytes: usize,
}

const fn max_bytes() -> usize {
    60_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// 0 when git was content.
    exit_code: i32,
    /// What git printed.
    stdout: String,
    /// What git said beside it.
    stderr: String,
    /// True when the end of stdout is missing.
    truncated: bool,
    /// True when nothing was done and this is what would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
    /// Why nothing was done, or what was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// What this command may have lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct Any(pub Settings);

impl Tool for Any {
    const NAME: &'static str = "git";
    const TITLE: &'static str = "Run git";
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Far;

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
        let asked = allow::parse(&input.command, &input.args.unwrap_or_default())?;
        let keep = input.max_bytes.clamp(1, 1_000_000);
        let at = Call { settings: &self.0, fs: &fs, exec: &exec, ssh: &ssh, net: &net, cx, keep };
        let mut output = at.run(&asked, &input.repo_path).await?;
        let warnings = asked.warnings();
        if !output.dry_run && !warnings.is_empty() {
            output.warning = Some(warnings.join(" "));
        }
        Ok(output)
    }
}

/// What a call has at hand.
struct Call<'a> {
    settings: &'a Settings,
    fs: &'a Fs<Read>,
    exec: &'a Exec,
    ssh: &'a SshKey,
    net: &'a Net,
    cx: &'a CallContext,
    keep: usize,
}

impl Call<'_> {
    async fn run(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        match asked.does() {
            Does::Commits
                if asked.row.name == "rebase" && asked.words.len() == 2 && self.settings.allow_commit =>
            {
                // git takes the present branch for one of another work tree.
                let git = Git::open(self.fs, self.exec, self.cx, path).await?;
                let mut asked = asked.clone();
                if git.branch().await?.as_ref() == asked.words.last() {
                    asked.words.pop();
                }
                self.commit(&asked, path).await
            }
            Does::Inits => self.init(asked, path).await,
            Does::Clones => self.clone_into(asked, path).await,
            Does::Reads => {
                let git = Git::open(self.fs, self.exec, self.cx, path).await?;
                self.finish(&git, fill::local(&git, asked)?, &Route::Nowhere).await
            }
            Does::Writes => {
                let git = self.open_to_write(path).await?;
                let command = fill::local(&git, asked)?;
                touched::check(&git, asked).await?;
                self.finish(&git, command, &Route::Nowhere).await
            }
            Does::Commits if self.settings.allow_commit => self.commit(asked, path).await,
            Does::Commits => self.would_commit(asked, path).await,
            Does::Pulls if !self.settings.allow_commit => self.would_commit(asked, path).await,
            Does::Pushes if !self.settings.allow_push => self.would_push(asked, path).await,
            Does::Fetches | Does::Pulls | Does::Pushes => self.reach(asked, path).await,
        }
    }

    async fn commit(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let git = self.open_to_write(path).await?;
        let command = fill::local(&git, asked)?;
        touched::check(&git, asked).await?;
        let mut output = self.finish(&git, command, &Route::Nowhere).await?;
        output.note = git.repo.hooks.then(|| "The repository has hooks; they were not run.".to_owned());
        Ok(output)
    }

    async fn open_to_write(&self, path: &WorkPath) -> Result<Git, ToolError> {
        Git::open_to_write(self.fs, self.exec, self.cx, path, &self.settings.identity()).await
    }

    async fn finish(&self, git: &Git, command: Command, route: &Route) -> Result<Output, ToolError> {
        Ok(self.told(git.run_by(command.keep(self.keep), route).await?))
    }

    /// git's answer without passwords and without the place of the key.
    fn told(&self, ran: Ran) -> Output {
        let clean = |text: &str| fault::scrub(text).replace(&*self.ssh.folder().to_string_lossy(), "…");
        Output {
            exit_code: ran.code,
            stdout: clean(&ran.text()),
            stderr: clean(&ran.err).chars().take(20_000).collect(),
            truncated: ran.cut,
            dry_run: false,
            note: None,
            warning: None,
        }
    }

    /// A commit is rehearsed; of the rest it is only told that nothing was done.
    async fn would_commit(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let rehearsed = asked.row.name == "commit";
        let git = if rehearsed {
            self.open_to_write(path).await?
        } else {
            Git::open(self.fs, self.exec, self.cx, path).await?
        };
        let mut output = if rehearsed {
            let command = fill::local(&git, asked)?.flags(&["--dry-run", "--short"]);
            self.finish(&git, command, &Route::Nowhere).await?
        } else {
            fill::check(&git, asked)?;
            self.told(Ran { code: 0, out: Vec::new(), cut: false, err: String::new() })
        };
        output.dry_run = true;
        output.note = Some(commit::OFF.to_owned());
        Ok(output)
    }
}
