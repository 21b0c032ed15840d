//! `git_log_structured`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_error;
use crate::program::git_output::log_output::{self, Commit};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{Number, Rev, Text};
use octo_toolkit::fs::Read;
use octo_toolkit::reply_budget::count_fitting;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists commits, newest first, with author, date, message and counts; `next` is set if there are more. Prefer
/// git_show for one commit's diff, git_blame for who wrote a line.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Maximum number of commits, 1 to 1,000.
    #[serde(default = "default_max_count")]
    max_count: u64,
    /// Only commits after this date: 2027-01-31, ISO 8601, or words such as 2 weeks ago.
    #[serde(default)]
    since: Option<String>,
    /// Only commits whose author's name or mail address contains this text.
    #[serde(default)]
    author: Option<String>,
    /// Only commits that changed this file or folder, relative to repo_path.
    #[serde(default)]
    path: Option<WorkPath>,
    /// Commit, branch or range (main..topic) to start at.
    #[serde(default = "git_defaults::head_ref")]
    r#ref: String,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Only commits whose message contains this text.
    #[serde(default)]
    message: Option<String>,
    /// Number of commits to skip: `next` of the previous reply.
    #[serde(default)]
    skip: u64,
}

const fn default_max_count() -> u64 {
    20
}

/// Maximum bytes of the reply besides the commits.
const REPLY_OVERHEAD_BYTES: usize = 60;

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The commits.
    commits: Vec<Commit>,
    /// There are more: pass as skip to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct Log;

impl Tool for Log {
    const NAME: &'static str = "git_log_structured";
    const TITLE: &'static str = "Git log as data";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The last commit", json!({"max_count": 1})),
            Example::new("Who changed a file this year", json!({"path": "notes.txt", "since": "1 year ago"})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        if !(1..=1_000).contains(&input.max_count) {
            return Err(ToolError::invalid("max_count must be 1 to 1,000.").hint("Use skip to continue."));
        }
        let command = command(&input)?;
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        let path = input.path.iter().map(|path| git.repo.pathspec(&fs, path.as_str()));
        let ran = git.try_run(command.paths(path.collect::<Result<_, _>>()?)).await?;
        if ran.exit_code != 0 {
            let unborn = input.r#ref == "HEAD" && git.has_no_commits().await?;
            return if unborn {
                Ok(Output { commits: Vec::new(), next: None })
            } else {
                Err(git_error::to_tool_error(&ran))
            };
        }
        let mut commits = log_output::parse(&ran.stdout);
        let wanted = usize::try_from(input.max_count).unwrap_or(usize::MAX);
        let fit = count_fitting(&commits, cx.reply.remaining_after(REPLY_OVERHEAD_BYTES))?.max(1);
        let more = commits.len() > wanted.min(fit) || ran.truncated;
        commits.truncate(wanted.min(fit));
        let next = more.then(|| input.skip.saturating_add(u64::try_from(commits.len()).unwrap_or(0)));
        Ok(Output { commits, next })
    }
}

/// Requests one more commit than needed, to detect whether there are more.
fn command(input: &Input) -> Result<GitCommand, ToolError> {
    let mut command = GitCommand::read("log")
        .flags(&["--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--decorate=short"])
        .flags(&["--shortstat", "--ignore-submodules=dirty", "--fixed-strings", "--regexp-ignore-case"])
        .flag(log_output::FORMAT)
        .set("--max-count", &Number::from_u64(input.max_count + 1))
        .set("--skip", &Number::from_u64(input.skip));
    if let Some(since) = &input.since {
        command = command.set("--since", &Text::value("date", since)?);
    }
    if let Some(author) = &input.author {
        command = command.set("--author", &Text::value("author", author)?);
    }
    if let Some(message) = &input.message {
        command = command.set("--grep", &Text::value("message", message)?);
    }
    Ok(command.positional(&Rev::new(&input.r#ref)?))
}
