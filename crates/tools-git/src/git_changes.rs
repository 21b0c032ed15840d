//! `git_changes`.

use crate::program::run_git::GitRepo;
use crate::structured_diff::{self, DiffOutput, DiffRequest};
use crate::{git_defaults, git_status};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Json, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows everything that is not committed: status, staged diff and unstaged diff; a clean repository returns empty
/// lists. Prefer git_status if the lines do not matter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Branch and lists of files.
    status: git_status::Output,
    /// What the next commit will contain.
    staged_diff: DiffOutput,
    /// Changes of tracked files that are not staged.
    unstaged_diff: DiffOutput,
}

pub struct Changes;

impl Tool for Changes {
    const NAME: &'static str = "git_changes";
    const TITLE: &'static str = "All uncommitted changes";
    const KEYWORDS: &'static str = "uncommitted modified work in progress review pending edits";
    const REQUESTS: &'static [&'static str] = &[
        "everything i have modified and not committed, with the lines",
        "show staged and unstaged edits together",
        "before committing, review all my pending work",
        "complete picture of the uncommitted work with diffs",
        "what exactly did i alter in the checkout so far",
        "full review of the dirty working copy",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![Example::new("Everything that is not committed", json!({}))]
    }

    fn text(output: &Output) -> Option<String> {
        let parts = [("staged", &output.staged_diff), ("unstaged", &output.unstaged_diff)];
        let parts = parts.into_iter().filter(|(_, diff)| diff.truncated || !diff.files.is_empty());
        let text = git_status::write_status(ModelText::new(), &output.status);
        parts
            .fold(text, |text, (name, diff)| {
                structured_diff::write_diff(text.line("").line(format_args!("# {name}")), diff)
            })
            .finish()
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        let status = git_status::read_status(&git).await?;
        let room = cx.reply.remaining_beside(&status)?;
        let staged_diff = structured_diff::find(
            &git,
            DiffRequest { staged: true, reply_budget: room / 2, ..DiffRequest::default() },
        )
        .await?;
        let room = room.saturating_sub(Json::of(&staged_diff).bytes().len());
        let unstaged_diff =
            structured_diff::find(&git, DiffRequest { reply_budget: room, ..DiffRequest::default() }).await?;
        Ok(Output { status, staged_diff, unstaged_diff })
    }
}
