//! `git_status`.

use crate::git_defaults;
use crate::program::git_command::GitCommand;
use crate::program::git_output::status_output::{self, StatusEntry};
use crate::program::run_git::GitRepo;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Exec, Fs, ModelText, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows the branch, its distance from its upstream, and the staged, unstaged and untracked files; a folder without a
/// repository is an error. Prefer git_changes to include the diffs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The branch that is checked out, or (detached).
    pub branch: String,
    /// Commits that the upstream lacks.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// What the next commit will contain.
    pub staged: Vec<StatusEntry>,
    /// Changes of tracked files that are not staged.
    pub unstaged: Vec<StatusEntry>,
    /// Untracked files; a folder ends with a slash.
    pub untracked: Vec<String>,
    /// Files with conflicts to resolve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub conflicts: Vec<StatusEntry>,
    /// The branch's upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The commit that is checked out; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Unfinished operation: merge, rebase, cherry-pick, revert or bisect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// Number of stashes.
    pub stashes: u64,
    /// True if there is nothing to commit and nothing untracked.
    pub clean: bool,
}

pub struct Status;

impl Tool for Status {
    const NAME: &'static str = "git_status";
    const TITLE: &'static str = "Git status";
    const KEYWORDS: &'static str = "modified changed files branch working tree state";
    const REQUESTS: &'static [&'static str] = &[
        "is my checkout clean",
        "which branch am i on",
        "any untracked files in the repo",
        "am i ahead of or behind the upstream",
        "are there merge conflicts or an unfinished rebase",
        "names of modified and staged files, without their content",
        "before switching branches, see if there is anything pending",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = (Fs<Read>, Exec);

    fn examples() -> Vec<Example> {
        vec![Example::new("What has changed since the last commit", json!({}))]
    }

    fn text(output: &Output) -> Option<String> {
        write_status(ModelText::new(), output).finish()
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let git = GitRepo::open(&fs, &exec, cx, &input.repo_path).await?;
        read_status(&git).await
    }
}

/// The branch in one line, then the files as in git's short format.
pub fn write_status(text: ModelText, status: &Output) -> ModelText {
    let entries = |letters: fn(char) -> String, entries: &[StatusEntry]| -> Vec<String> {
        entries.iter().map(|entry| entry_line(entry, letters)).collect()
    };
    text.line(branch_line(status))
        .field_if("in progress", status.in_progress.as_ref())
        .line_if(status.stashes > 0, format_args!("stashes: {}", status.stashes))
        .line_if(status.clean, "nothing to commit, nothing untracked")
        .lines(entries(|_| "UU".to_owned(), &status.conflicts))
        .lines(entries(|letter| format!("{letter} "), &status.staged))
        .lines(entries(|letter| format!(" {letter}"), &status.unstaged))
        .lines(status.untracked.iter().map(|path| format!("?? {path}")))
}

fn branch_line(status: &Output) -> String {
    let mut line = format!("branch {}", status.branch);
    let head = status.head.as_deref().map(|head| head.get(..12).unwrap_or(head));
    line.push_str(&head.map_or(" without commits".to_owned(), |head| format!(" at {head}")));
    if let Some(upstream) = &status.upstream {
        line.push_str(&format!(", upstream {upstream}, ahead {}, behind {}", status.ahead, status.behind));
    }
    line
}

fn entry_line(entry: &StatusEntry, letters: fn(char) -> String) -> String {
    let letters = letters(entry.status.letter());
    match &entry.old_path {
        Some(old) => format!("{letters} {old} -> {}", entry.path),
        None => format!("{letters} {}", entry.path),
    }
}

/// The command whose output [`status_output::parse`] reads.
pub fn command() -> GitCommand {
    GitCommand::read("status").flags(&[
        "--porcelain=v2",
        "--branch",
        "--show-stash",
        "-z",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
    ])
}

pub async fn read_status(git: &GitRepo) -> Result<Output, ToolError> {
    if git.repo.bare {
        return Err(ToolError::invalid("This repository is bare: it has no work tree.")
            .hint("Use git_log_structured, git_show or git_branches here."));
    }
    let status = status_output::parse(&git.run(command()).await?.stdout);
    let clean = status.staged.is_empty()
        && status.unstaged.is_empty()
        && status.untracked.is_empty()
        && status.conflicts.is_empty();
    Ok(Output {
        branch: status.branch.unwrap_or_else(|| "(detached)".to_owned()),
        ahead: status.ahead,
        behind: status.behind,
        staged: status.staged,
        unstaged: status.unstaged,
        untracked: status.untracked,
        conflicts: status.conflicts,
        upstream: status.upstream,
        head: status.head,
        in_progress: in_progress(git).await?,
        stashes: status.stashes,
        clean,
    })
}

/// git leaves a file for every operation that waits to be continued.
async fn in_progress(git: &GitRepo) -> Result<Option<String>, ToolError> {
    const STATE_FILES: [(&str, &str); 6] = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    let folder = git.repo.git_dir.clone();
    git.fs
        .run(move |fs| {
            let place = fs.place(&WorkPath::from(folder.to_string_lossy().as_ref()))?;
            let mark = STATE_FILES.iter().find(|(name, _)| fs.link_stat(&place.join(name)).is_ok());
            Ok(mark.map(|(_, what)| (*what).to_owned()))
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::git_output::status_output::FileChange;

    #[test]
    fn the_text_is_the_short_format() {
        let entry = |path: &str, status, old_path: Option<&str>| StatusEntry {
            path: path.to_owned(),
            status,
            old_path: old_path.map(str::to_owned),
        };
        let clean = Output {
            branch: "main".to_owned(),
            ahead: 0,
            behind: 0,
            staged: Vec::new(),
            unstaged: Vec::new(),
            untracked: Vec::new(),
            conflicts: Vec::new(),
            upstream: None,
            head: None,
            in_progress: None,
            stashes: 0,
            clean: true,
        };
        assert_eq!(
            Status::text(&clean).as_deref(),
            Some("branch main without commits\nnothing to commit, nothing untracked")
        );
        let changed = Output {
            ahead: 1,
            staged: vec![entry("b", FileChange::Renamed, Some("a"))],
            unstaged: vec![entry("c", FileChange::Modified, None)],
            untracked: vec!["d/".to_owned()],
            conflicts: vec![entry("e", FileChange::Unmerged, None)],
            upstream: Some("origin/main".to_owned()),
            head: Some("0123456789abcdef0123".to_owned()),
            in_progress: Some("merge".to_owned()),
            stashes: 2,
            clean: false,
            ..clean
        };
        assert_eq!(
            Status::text(&changed).as_deref(),
            Some(
                "branch main at 0123456789ab, upstream origin/main, ahead 1, behind 0\nin progress: merge\nstashes: 2\nUU e\nR  a -> b\n M c\n?? d/"
            )
        );
    }
}
