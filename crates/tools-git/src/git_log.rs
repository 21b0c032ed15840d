//! `git_log_structured`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_error;
use crate::program::git_output::log_output::{self, Commit};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{Number, Rev, Text};
use octo_toolkit::fs::Read;
use octo_toolkit::reply_budget::count_fitting;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, ModelText, Tool, ToolError, WorkPath, counted};
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
    const KEYWORDS: &'static str = "history past commits changelog who changed when";
    const REQUESTS: &'static [&'static str] = &[
        "what was committed last week",
        "history of config.yaml",
        "recent commits by Anna",
        "find the commit whose message mentions login",
        "what happened in the project since the last release",
        "last five entries of the version history",
        "which commits are on the branch but not in main",
    ];
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

    fn text(output: &Output) -> Option<String> {
        let text =
            ModelText::new().line_if(output.commits.is_empty(), "no commits").field_if("next", output.next);
        output.commits.iter().fold(text, write_commit).finish()
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

/// A line with id, date, author and message, then the rest of the message.
fn write_commit(text: ModelText, commit: &Commit) -> ModelText {
    let refs = if commit.refs.is_empty() { String::new() } else { format!(" ({})", commit.refs.join(", ")) };
    let merged: Vec<&str> =
        commit.parents.iter().map(|id| id.get(..commit.short_hash.len()).unwrap_or(id)).collect();
    let change = match merged.as_slice() {
        [_, _, ..] => format!("merge of {}", merged.join(", ")),
        _ => {
            let files = counted(commit.files_changed, "file", "files");
            format!("{files}, +{} -{}", commit.insertions, commit.deletions)
        }
    };
    let Commit { short_hash, date, author, email, message, .. } = commit;
    let text = text.line(format_args!("{short_hash}{refs} {date} {author} <{email}> [{change}]: {message}"));
    if commit.body.is_empty() { text } else { text.item("    ", &commit.body) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_a_line_and_its_message() {
        let commit = Commit {
            hash: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            short_hash: "0123456".to_owned(),
            author: "Ada".to_owned(),
            email: "a@b.c".to_owned(),
            date: "2030-01-02T03:04:05+00:00".to_owned(),
            message: "Fix".to_owned(),
            body: "Why\n\nHow".to_owned(),
            parents: vec!["1".repeat(40)],
            refs: vec!["HEAD -> main".to_owned()],
            files_changed: 1,
            insertions: 2,
            deletions: 3,
        };
        let merge = Commit {
            body: String::new(),
            parents: vec!["1".repeat(40), "2".repeat(40)],
            refs: Vec::new(),
            ..commit.clone()
        };
        let about = "2030-01-02T03:04:05+00:00 Ada <a@b.c>";
        let wanted = format!(
            "next: 7\n0123456 (HEAD -> main) {about} [1 file, +2 -3]: Fix\n    Why\n    \n    How\n0123456 {about} [merge of 1111111, 2222222]: Fix"
        );
        assert_eq!(Log::text(&Output { commits: vec![commit, merge], next: Some(7) }), Some(wanted));
        assert_eq!(Log::text(&Output { commits: Vec::new(), next: None }).as_deref(), Some("no commits"));
    }
}
