//! `git_diff_structured`.

use crate::git_defaults;
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::Rev;
use crate::structured_diff::{self, DiffOutput, DiffRequest};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Compares the work tree, the staged changes or a commit, and returns files with counts and hunks; excess hunks are
/// only counted. Prefer git_changes for staged and unstaged together, git_show for one commit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Commit, branch or range (main..topic) to compare with; by default the index.
    #[serde(default)]
    r#ref: Option<String>,
    /// Compare what is staged instead of the work tree.
    #[serde(default)]
    staged: bool,
    /// Only these files or folders, relative to repo_path.
    #[serde(default)]
    paths: Option<Vec<WorkPath>>,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Unchanged lines around each change, at most 100.
    #[serde(default = "context")]
    context: u64,
    /// Maximum number of hunks; 0 returns only the list of files.
    #[serde(default = "max_hunks")]
    max_hunks: u64,
}

const fn context() -> u64 {
    structured_diff::DEFAULT_CONTEXT
}

const fn max_hunks() -> u64 {
    structured_diff::DEFAULT_MAX_HUNKS
}

pub struct Diff;

impl Tool for Diff {
    const NAME: &'static str = "git_diff_structured";
    const TITLE: &'static str = "Git diff as data";
    const KEYWORDS: &'static str = "compare changes difference modified lines between versions";
    const REQUESTS: &'static [&'static str] = &[
        "what differs between main and my feature branch",
        "compare the file with the version in HEAD",
        "which lines are staged for the next commit",
        "changes between two releases v1.2..v1.3",
        "how many lines were added and removed since that commit",
        "only names of files that differ from the main branch",
        "my unstaged edits in the src folder",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = DiffOutput;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Changes that are not staged", json!({})),
            Example::new("One file against the last commit", json!({"ref": "HEAD", "paths": ["notes.txt"]})),
            Example::new("Which files differ, without hunks", json!({"ref": "HEAD", "max_hunks": 0})),
        ]
    }

    fn text(output: &DiffOutput) -> Option<String> {
        structured_diff::write_diff(ModelText::new(), output).finish()
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<DiffOutput, ToolError> {
        let rev = input.r#ref.as_deref().map(Rev::new).transpose()?;
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        let paths = git.repo.pathspecs(&fs, &input.paths.unwrap_or_default())?;
        let ask = DiffRequest {
            rev,
            staged: input.staged,
            paths,
            context: input.context,
            max_hunks: input.max_hunks,
            reply_budget: cx.reply.remaining_after(0),
        };
        structured_diff::find(&git, ask).await
    }
}
