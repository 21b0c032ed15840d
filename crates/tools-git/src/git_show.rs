//! `git_show`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::Rev;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows a commit with its diff, a tag, or a file as it was (HEAD~1:src/main.rs), as text; long text is truncated.
/// Prefer git_diff_structured to compare two commits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Commit, tag or branch; with a colon and a path from the repository's top, that file in it.
    r#ref: String,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Only these files or folders of a commit, relative to repo_path.
    #[serde(default)]
    paths: Option<Vec<WorkPath>>,
    /// Maximum bytes of text, up to 1,000,000.
    #[serde(default = "max_bytes")]
    max_bytes: usize,
}

const fn max_bytes() -> usize {
    60_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The requested ref.
    r#ref: String,
    /// Its content.
    content: String,
    /// True if the end is missing; use paths or a larger max_bytes.
    truncated: bool,
}

pub struct Show;

impl Tool for Show {
    const NAME: &'static str = "git_show";
    const TITLE: &'static str = "Show a commit or file version";
    const KEYWORDS: &'static str = "view revision old version of a file commit details";
    const REQUESTS: &'static [&'static str] = &[
        "what did commit abc123 change",
        "display the file as it was two commits ago",
        "show the latest commit with its patch",
        "old version of main.rs from the release tag",
        "details of the tag v2.0",
        "get readme.md as it is on another branch without checking it out",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The last commit with its diff", json!({"ref": "HEAD"})),
            Example::new("A file as it was committed", json!({"ref": "HEAD:README.md"})).with_output(
                json!({"ref": "HEAD:README.md", "content": "# Demo\n\nA small project.\n", "truncated": false}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        let cut =
            if output.truncated { " (the end is missing; use paths or a larger max_bytes)" } else { "" };
        ModelText::new().line(format_args!("{}{cut}:", output.r#ref)).rest(&output.content).finish()
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let rev = Rev::new(&input.r#ref)?;
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        let mut command = GitCommand::read("show")
            .flags(&["--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature"])
            .flags(&["--submodule=short", "--ignore-submodules=dirty", "--no-relative"])
            .positional(&rev)
            .max_output(input.max_bytes.clamp(1, 1_000_000));
        if let Some(paths) = &input.paths {
            command = command.paths(git.repo.pathspecs(&fs, paths)?);
        }
        let ran = git.run(command).await?;
        if ran.stdout.contains(&0) {
            return Err(ToolError::invalid(format!("{} is not text.", input.r#ref))
                .hint("Read the file in the work tree with a tool for binary files."));
        }
        Ok(Output { r#ref: input.r#ref, content: ran.text(), truncated: ran.truncated })
    }
}
