//! `git_apply_patch`.

use crate::git_defaults;
use crate::identity::Identity;
use crate::program::git_command::GitCommand;
use crate::program::run_git::{GitOutput, GitRepo};
use crate::program::{git_error, git_output};
use bytes::Bytes;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const MAX_PATCH_BYTES: usize = 4 << 20;

/// Checks whether a unified diff applies and, with check set to false, applies it atomically. Nothing is staged or
/// committed. Prefer the file tools for an edit of one place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The diff, with a/ and b/ before paths, as printed by git diff.
    patch: String,
    /// Only check; false applies.
    #[serde(default = "git_defaults::enabled")]
    check: bool,
    /// The repository; paths in the diff are relative to its top.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Revert the diff instead of applying it.
    #[serde(default)]
    reverse: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// True if the files were changed; false if it was only checked.
    applied: bool,
    /// Files that the diff changes.
    files: Vec<String>,
    /// What was adjusted to make it apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct ApplyPatch;

impl Tool for ApplyPatch {
    const NAME: &'static str = "git_apply_patch";
    const TITLE: &'static str = "Apply a patch";
    const KEYWORDS: &'static str = "apply diff hunk";
    const REQUESTS: &'static [&'static str] = &[
        "will this diff apply cleanly to the repository",
        "apply the output of a colleague's diff to my checkout",
        "test whether a .patch with a/ and b/ paths fits the repo",
        "take a diff's changes back out of the checkout in reverse",
        "bring in a contributed .patch without committing it",
        "check the patch against the work tree before using it",
    ];
    const EFFECT: Effect = Effect::destroys();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        let patch = "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # Demo\n \n-A small project.\n+A tiny project.\n";
        vec![
            Example::new("Whether a patch would apply", json!({"patch": patch}))
                .with_output(json!({"applied": false, "files": ["README.md"]})),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let patch = patch(input.patch)?;
        let git = if input.check {
            GitRepo::open(&fs, &exec, cx, &input.repo_path).await?
        } else {
            GitRepo::open_to_write(&fs, &exec, cx, &input.repo_path, &Identity::default()).await?
        };
        let apply = |flags: &[&'static str]| {
            let command = if input.check { GitCommand::read("apply") } else { GitCommand::write("apply") };
            let command = command.flags(&["--whitespace=nowarn"]).flags(flags).stdin(patch.clone());
            if input.reverse { command.flag("--reverse") } else { command }
        };
        let named = git.try_run(apply(&["--numstat", "-z", "--recount"])).await?;
        if named.exit_code != 0 {
            return Err(misfit(&named));
        }
        let files = files(&named);
        // A rename has another name on the other side.
        let other = git
            .try_run(apply(&[
                "--numstat",
                "-z",
                "--recount",
                if input.reverse { "--no-reverse" } else { "--reverse" },
            ]))
            .await?;
        if other.exit_code != 0 {
            return Err(misfit(&other));
        }
        for file in self::files(&other) {
            fs.check_changeable(&git.repo.top.join(file))?;
        }
        for file in &files {
            fs.check_changeable(&git.repo.top.join(file))?;
        }
        // Models often get the counts in headers wrong; the lines themselves must still match.
        let exact = git.try_run(apply(&["--check"])).await?;
        let recount = exact.exit_code != 0;
        if recount && git.try_run(apply(&["--check", "--recount"])).await?.exit_code != 0 {
            return Err(misfit(&exact));
        }
        if !input.check {
            let ran = git.try_run(apply(if recount { &["--recount"] } else { &[] })).await?;
            if ran.exit_code != 0 {
                return Err(misfit(&ran));
            }
        }
        let note =
            recount.then(|| "The line counts in the hunk headers were wrong and were ignored.".to_owned());
        Ok(Output { applied: !input.check, files, note })
    }
}

fn patch(text: String) -> Result<Bytes, ToolError> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err(ToolError::invalid("The patch is empty or contains a NUL.").hint("Use a unified diff."));
    }
    if text.len() > MAX_PATCH_BYTES {
        return Err(
            ToolError::new(Kind::TooLarge, "The patch is larger than 4 MiB.").hint("Apply it in parts.")
        );
    }
    // git rejects a patch as corrupt if its last line is not terminated.
    Ok(if text.ends_with('\n') { text } else { text + "\n" }.into())
}

/// Records `added\tdeleted\tpath`, each path once.
fn files(ran: &GitOutput) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in git_output::split_nul(&ran.stdout) {
        if let Some(path) = line.splitn(3, '\t').nth(2).filter(|path| !path.is_empty())
            && !files.iter().any(|known| known == path)
        {
            files.push(path.to_owned());
        }
    }
    files
}

fn misfit(ran: &GitOutput) -> ToolError {
    let error = git_error::to_tool_error(ran);
    if error.kind == Kind::Denied {
        return error;
    }
    ToolError {
        kind: if ran.stderr.contains("does not apply") { Kind::Conflict } else { Kind::Invalid },
        ..error
    }
    .hint("Nothing was changed. Read the files again and create the diff from their current content.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_once() {
        let out = b"1\t1\ta b\0-\t-\tbin\x002\t0\ta b\0".to_vec();
        assert_eq!(
            files(&GitOutput { exit_code: 0, stdout: out, truncated: false, stderr: String::new() }),
            ["a b", "bin"]
        );
    }

    #[test]
    fn patches_end_with_a_line_break() {
        assert_eq!(patch("x".to_owned()).unwrap(), "x\n");
        assert!(patch(" \n".to_owned()).is_err());
        assert_eq!(patch("x".repeat(MAX_PATCH_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
    }
}
