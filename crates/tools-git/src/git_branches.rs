//! `git_branches`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_output::refs_output::{self, Branch};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::TrustedArg;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists branches, the latest first, with commit, upstream and distance from it; a repository without commits has none.
/// Prefer git_status if only the current branch matters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Also the branches of remotes, as last fetched.
    #[serde(default)]
    all: bool,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The branch that is checked out, or (detached).
    current: String,
    /// The branches.
    branches: Vec<Branch>,
}

pub struct Branches;

impl Tool for Branches {
    const NAME: &'static str = "git_branches";
    const TITLE: &'static str = "List branches";
    const KEYWORDS: &'static str = "branch list switch current";
    const REQUESTS: &'static [&'static str] = &[
        "which branches exist in the repo",
        "is there a branch for the payment feature",
        "what remote branches were there at the last fetch",
        "find stale branches whose upstream is gone",
        "which branch was worked on most recently",
        "how far is each branch ahead of or behind its upstream",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The branches here", json!({})),
            Example::new("Those of remotes as well", json!({"all": true})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        let mut command =
            GitCommand::read("for-each-ref").flags(&["--sort=-committerdate", refs_output::FORMAT]);
        command = command.positional(&TrustedArg::new("refs/heads"));
        if input.all {
            command = command.positional(&TrustedArg::new("refs/remotes"));
        }
        let branches = refs_output::parse(&git.run(command).await?.stdout);
        let current = git.branch().await?.unwrap_or_else(|| "(detached)".to_owned());
        Ok(Output { current, branches })
    }
}
