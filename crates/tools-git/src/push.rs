//! `git_push`.

use crate::command::Command;
use crate::parse::log::{self, Commit};
use crate::remote::{Asker, Direction, addresses};
use crate::run::{Git, Ran};
use crate::value::{BranchName, Checked, Number, RemoteName, Rev, Word};
use crate::{Far, Settings, fault, given, url};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub const OFF: &str =
    "Nothing was pushed: pushing is off. The setting git.allow_push (OCTOPROX_GIT_ALLOW_PUSH) turns it on.";
const TOLD: u64 = 50;

/// Pushes a branch to the remote's branch of the same name, never by force, and says whether that changed it; where
/// pushing is off, tells which commits would go. Prefer git_status first for ahead and behind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the remote.
    #[serde(default = "given::origin")]
    remote: String,
    /// The branch; without it the one that is checked out.
    #[serde(default)]
    branch: Option<String>,
    /// The repository, or a folder in it.
    #[serde(default = "given::here")]
    repo_path: WorkPath,
    /// Make the branch follow the remote's from now on.
    #[serde(default)]
    set_upstream: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The remote.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// True when the remote's branch has changed.
    pub updated: bool,
    /// What the remote said of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The commits that would go, newest first, at most 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<Vec<Commit>>,
    /// True when this is only what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub dry_run: bool,
    /// Why nothing was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub struct Push(pub Settings);

impl Tool for Push {
    const NAME: &'static str = "git_push";
    const TITLE: &'static str = "Push a branch";
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Far;

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
            Git::open_to_write(&fs, &exec, cx, &input.repo_path, &self.0.identity()).await?
        } else {
            Git::open(&fs, &exec, cx, &input.repo_path).await?
        };
        let branch = branch(&git, named).await?;
        if !self.0.allow_push {
            return would(&git, &remote, &branch).await;
        }
        let way = Asker::of(&git, (&ssh, &net)).to_remote(&git, &remote, Direction::Push).await?;
        let full = Rev::branch(&branch);
        let mut command = Command::write("push")
            .flags(&["--porcelain", "--no-verify", "--no-signed", "--no-recurse-submodules"])
            .set("--receive-pack", &way.receive_pack)
            .word(&remote)
            .word(&Checked::new(format!("{0}:{0}", full.as_str())))
            .reach(way.reach);
        if input.set_upstream {
            command = command.flag("--set-upstream");
        }
        cx.progress(1, None, "pushing");
        let ran = git.run_by(command, &way.route).await?;
        let (flag, summary) = outcome(&ran).ok_or_else(|| fault::of(&ran))?;
        if ran.code != 0 {
            return Err(fault::of(&ran).detail(summary));
        }
        Ok(Output {
            remote: input.remote,
            branch: branch.as_str().to_owned(),
            updated: flag != '=',
            summary: Some(fault::scrub(&summary)),
            commits: None,
            dry_run: false,
            note: None,
        })
    }
}

async fn branch(git: &Git, named: Option<BranchName>) -> Result<BranchName, ToolError> {
    if let Some(named) = named {
        return Ok(named);
    }
    let current = git.branch().await?.ok_or_else(|| {
        ToolError::invalid("No branch is checked out.")
            .hint("Give the branch to push; git_branches lists them.")
    })?;
    BranchName::new(&current)
}

/// What a push would send, as far as is known without asking the remote.
pub async fn would(git: &Git, remote: &RemoteName, branch: &BranchName) -> Result<Output, ToolError> {
    let addresses = addresses(git, remote, Direction::Push).unwrap_or_default();
    for address in &addresses {
        url::parse(address)?;
    }
    let note = if addresses.is_empty() {
        format!("{OFF} The remote {} is not configured yet.", remote.as_str())
    } else {
        OFF.to_owned()
    };
    let command = Command::read("log")
        .flags(&[
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--shortstat",
            "--decorate=short",
            log::FORMAT,
        ])
        .set("--max-count", &Number::of(TOLD))
        .flag("--not")
        .set("--remotes", remote)
        .flag("--not")
        .word(&Rev::branch(branch))
        .paths(Vec::new());
    let commits = log::parse(&git.run(command).await?.out);
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
fn outcome(ran: &Ran) -> Option<(char, String)> {
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
        let ran = |out: &str| Ran { code: 0, out: out.as_bytes().to_vec(), cut: false, err: String::new() };
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
