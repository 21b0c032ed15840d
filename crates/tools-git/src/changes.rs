//! `git_changes`.

use crate::hunks::{self, Ask, Found};
use crate::run::Git;
use crate::{given, status};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Json, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows everything that is not committed in one answer: status, staged diff and unstaged diff; a clean repository gives
/// empty lists. Prefer git_status when the lines do not matter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The repository, or a folder in it.
    #[serde(default = "given::here")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Branch and lists of files.
    status: status::Output,
    /// What the next commit will hold.
    staged_diff: Found,
    /// Changes of tracked files that are not staged.
    unstaged_diff: Found,
}

pub struct Changes;

impl Tool for Changes {
    const NAME: &'static str = "git_changes";
    const TITLE: &'static str = "All uncommitted changes";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![Example::new("Everything that is not committed", json!({}))]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let git = Git::open(&fs, &exec, cx, &input.repo_path).await?;
        let status = status::of(&git).await?;
        let room = cx.reply.remaining_beside(&status)?;
        let staged_diff = hunks::find(&git, Ask { staged: true, room: room / 2, ..Ask::default() }).await?;
        let room = room.saturating_sub(Json::of(&staged_diff).bytes().len());
        let unstaged_diff = hunks::find(&git, Ask { room, ..Ask::default() }).await?;
        Ok(Output { status, staged_diff, unstaged_diff })
    }
}
