//! `git_push`.

use crate::program::git_command::GitCommand;
use crate::program::git_error;
use crate::program::git_output::log_output::{self, Commit};
use crate::program::run_git::{GitOutput, GitRepo};
use crate::program::safe_arg::{BranchName, Number, RemoteName, Rev, SafeArg, TrustedArg};
use crate::remote_access::{Direction, RemoteResolver, remote_urls};
use crate::{GitSettings, RemoteGrants, git_defaults, remote_url};
use octo_toolkit::{CallContext, Effect, Example, Remedy, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const PUSH_DISABLED: &str =
    "Nothing was pushed: pushes are disabled. Enable them with the setting git.allow_push.";
pub fn push_remedy() -> Remedy {
    Remedy::settings(&["git.allow_push"])
}
const MAX_COMMITS: u64 = 50;

/// Pushes a branch to the remote's branch of the same name, never by force, and returns whether it changed; if
/// pushing is disabled, returns the commits to push. Prefer git_status first for ahead and behind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the remote.
    #[serde(default = "git_defaults::origin_remote")]
    remote: String,
    /// The branch; by default the one that is checked out.
    #[serde(default)]
    branch: Option<String>,
    /// The repository, or a folder in it.
    #[serde(default = "git_defaults::current_dir")]
    repo_path: WorkPath,
    /// Set the remote's branch as upstream.
    #[serde(default)]
    set_upstream: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The remote.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// True if the remote's branch has changed.
    pub updated: bool,
    /// What the remote reported about the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Commits to push, newest first, at most 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<Vec<Commit>>,
    /// True if this is only what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub dry_run: bool,
    /// Why nothing was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub struct Push(pub GitSettings);

impl Tool for Push {
    const NAME: &'static str = "git_push";
    const TITLE: &'static str = "Push a branch";
    const KEYWORDS: &'static str = "publish upload remote origin send commits";
    const REQUESTS: &'static [&'static str] = &[
        "upload my commits to the remote",
        "publish the branch to origin",
        "send local work to the server so that others see it",
        "get the finished commit onto the forge",
        "share the new branch and set its upstream",
        "which commits have not been sent to the remote yet",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = RemoteGrants;

    fn examples() -> Vec<Example> {
        vec![Example::new("Push the branch that is checked out", json!({}))]
    }

    async fn run(
        &self,
        input: Input,
        (fs, exec, (ssh, net)): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        let remote = RemoteName::new(&input.remote)?;
        let named = input.branch.as_deref().map(BranchName::new).transpose()?;
        let git = if self.0.allow_push {
            GitRepo::open_to_write(&fs, &exec, cx, &input.repo_path, &self.0.identity()).await?
        } else {
            GitRepo::open(&fs, &exec, cx, &input.repo_path).await?
        };
        let branch = branch(&git, named).await?;
        if !self.0.allow_push {
            return dry_run(&git, &remote, &branch, cx).await;
        }
        let way =
            RemoteResolver::for_repo(&git, (&ssh, &net)).to_remote(&git, &remote, Direction::Push).await?;
        let full = Rev::branch(&branch);
        let mut command = GitCommand::write("push")
            .flags(&["--porcelain", "--no-verify", "--no-signed", "--no-recurse-submodules"])
            .set("--receive-pack", &way.receive_pack)
            .positional(&remote)
            .positional(&TrustedArg::new(format!("{0}:{0}", full.as_str())))
            .with_access(way.access);
        if input.set_upstream {
            command = command.flag("--set-upstream");
        }
        cx.progress(1, None, "pushing");
        let ran = git.run_with_route(command, &way.route).await?;
        let (flag, summary) = outcome(&ran).ok_or_else(|| git_error::to_tool_error(&ran))?;
        if ran.exit_code != 0 {
            return Err(git_error::to_tool_error(&ran).detail(summary));
        }
        Ok(Output {
            remote: input.remote,
            branch: branch.as_str().to_owned(),
            updated: flag != '=',
            summary: Some(git_error::redact_credentials(&summary)),
            commits: None,
            dry_run: false,
            note: None,
        })
    }
}

async fn branch(git: &GitRepo, named: Option<BranchName>) -> Result<BranchName, ToolError> {
    if let Some(named) = named {
        return Ok(named);
    }
    let current = git.branch().await?.ok_or_else(|| {
        ToolError::invalid("No branch is checked out.")
            .hint("Specify the branch to push; git_branches lists them.")
    })?;
    BranchName::new(&current)
}

/// What a push would send, as far as known without contacting the remote.
pub async fn dry_run(
    git: &GitRepo,
    remote: &RemoteName,
    branch: &BranchName,
    cx: &CallContext,
) -> Result<Output, ToolError> {
    let addresses = remote_urls(git, remote, Direction::Push).unwrap_or_default();
    for address in &addresses {
        remote_url::parse(address)?;
    }
    let mut note = cx.append_remedy(PUSH_DISABLED, &push_remedy());
    if addresses.is_empty() {
        note.push_str(&format!(" The remote {} is not configured yet.", remote.as_str()));
    }
    let command = GitCommand::read("log")
        .flags(&[
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--shortstat",
            "--decorate=short",
            log_output::FORMAT,
        ])
        .set("--max-count", &Number::from_u64(MAX_COMMITS))
        .flag("--not")
        .set("--remotes", remote)
        .flag("--not")
        .positional(&Rev::branch(branch))
        .paths(Vec::new());
    let commits = log_output::parse(&git.run(command).await?.stdout);
    Ok(Output {
        remote: remote.as_str().to_owned(),
        branch: branch.as_str().to_owned(),
        updated: false,
        summary: None,
        commits: Some(commits),
        dry_run: true,
        note: Some(note),
    })
}

/// `flag\tfrom:to\tsummary` of `git push --porcelain`.
fn outcome(ran: &GitOutput) -> Option<(char, String)> {
    ran.text().lines().find_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
        refs.contains(':').then(|| (flag.chars().next().unwrap_or(' '), summary.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remotes_answer_is_read() {
        let ran = |out: &str| GitOutput {
            exit_code: 0,
            stdout: out.as_bytes().to_vec(),
            truncated: false,
            stderr: String::new(),
        };
        let rows = [
            ("To x\n*\trefs/heads/main:refs/heads/main\t[new branch]\nDone\n", Some(('*', "[new branch]"))),
            ("To x\n \trefs/heads/a:refs/heads/a\t1..2\nDone\n", Some((' ', "1..2"))),
            ("To x\n=\trefs/heads/a:refs/heads/a\t[up to date]\nDone\n", Some(('=', "[up to date]"))),
            ("Done\n", None),
        ];
        for (out, told) in rows {
            assert_eq!(outcome(&ran(out)), told.map(|(flag, summary)| (flag, summary.to_owned())));
        }
    }
}
