//! `git_blame`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_output::blame_output::{self, BlameLine, CommitShare};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{Rev, TrustedArg};
use octo_toolkit::fs::Read;
use octo_toolkit::{
    CallContext, Effect, Example, Exec, Fs, Json, ModelText, Tool, ToolError, WorkPath, counted,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum lines per reply.
const MAX_LINES: u64 = 1_000;

/// Returns for each line of a file the commit, author and date, and sums the lines up by commit; long files are
/// returned in parts. Prefer git_log_structured with path for a file's history.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to repo_path.
    path: WorkPath,
    /// First line, from 1.
    #[serde(default)]
    start_line: Option<u64>,
    /// Last line, inclusive.
    #[serde(default)]
    end_line: Option<u64>,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// The commit whose version of the file is used; by default the current file.
    #[serde(default)]
    r#ref: Option<String>,
}

/// Maximum bytes of the reply besides lines and commits.
const REPLY_OVERHEAD_BYTES: usize = 60;

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The lines.
    lines: Vec<BlameLine>,
    /// The commits of these lines, most lines first.
    commits: Vec<CommitShare>,
    /// There are more lines: pass as start_line to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct Blame;

impl Tool for Blame {
    const NAME: &'static str = "git_blame";
    const TITLE: &'static str = "Git blame";
    const KEYWORDS: &'static str = "who wrote changed line author annotate responsible";
    const REQUESTS: &'static [&'static str] = &[
        "who wrote this line",
        "which commit last touched lines 10 to 20 of main.rs",
        "find out who to ask about this odd condition in the code",
        "when was this line of the config introduced",
        "annotate a file with the author of each row",
        "whose code is the function in parser.py",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Who wrote each line", json!({"path": "README.md"})),
            Example::new("Who wrote two lines", json!({"path": "notes.txt", "start_line": 1, "end_line": 2})),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let shares = output.commits.iter().map(|share| {
            let CommitShare { commit, author, date, summary, lines } = share;
            format!("{commit} {date} {author}, {}: {summary}", counted(*lines, "line", "lines"))
        });
        let lines =
            output.lines.iter().map(|line| format!("{} {}\t{}", line.line_number, line.commit, line.content));
        ModelText::new()
            .line_if(output.lines.is_empty(), "no lines")
            .field_if("next", output.next)
            .lines(shares)
            .line_if(!output.lines.is_empty(), "")
            .lines(lines)
            .finish()
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let start = input.start_line.unwrap_or(1);
        let end = input.end_line.unwrap_or(u64::MAX);
        if start == 0 || end < start {
            return Err(ToolError::invalid(
                "Lines count from 1, and end_line must not be before start_line.",
            ));
        }
        let rev = input.r#ref.as_deref().map(Rev::new).transpose()?;
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        // One more than fits, to detect whether there are more.
        let last = end.min(start.saturating_add(MAX_LINES));
        let mut command =
            GitCommand::read("blame").without_end_of_options().flags(&["--porcelain", "--no-textconv"]);
        command = command.pair("-L", &TrustedArg::new(format!("{start},{last}")));
        if let Some(rev) = &rev {
            command = command.positional(rev);
        }
        let ran = git.run(command.paths(vec![git.repo.pathspec(&fs, input.path.as_str())?])).await;
        let ran = match ran {
            Err(error) if start == 1 && error.message.contains("has only 0 lines") => {
                return Ok(Output { lines: Vec::new(), commits: Vec::new(), next: None })
                    .inspect(|_| drop(error));
            }
            other => other?,
        };
        let (mut lines, commits) = blame_output::parse(&ran.stdout);
        let most = usize::try_from(MAX_LINES).unwrap_or(usize::MAX);
        let all = lines.len();
        lines.truncate(most);
        let commits = fit(&mut lines, commits, cx.reply.remaining_after(REPLY_OVERHEAD_BYTES));
        let next = (lines.len() < all).then(|| start + lines.len() as u64);
        Ok(Output { lines, commits, next })
    }
}

/// Drops lines until they fit; returns the commits of the remaining ones.
fn fit(lines: &mut Vec<BlameLine>, mut commits: Vec<CommitShare>, room: usize) -> Vec<CommitShare> {
    loop {
        let size = Json::of(&(&*lines, &commits)).bytes().len();
        if size <= room || lines.len() <= 1 {
            return commits;
        }
        lines.truncate((lines.len().saturating_mul(room) / size).clamp(1, lines.len() - 1));
        for share in &mut commits {
            share.lines = lines.iter().filter(|line| line.commit == share.commit).count() as u64;
        }
        commits.retain(|share| share.lines > 0);
        commits.sort_by_key(|share| std::cmp::Reverse(share.lines));
    }
}
