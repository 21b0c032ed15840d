//! Commands that access another repository.

use super::{GitCall, Output, command_builder, pull};
use crate::git_push;
use crate::program::git_command::GitCommand;
use crate::program::run_git::{GitOutput, GitRepo};
use crate::program::safe_arg::{BranchName, RemoteName, Rev, TrustedArg};
use crate::remote_access::{
    Direction, RemoteConnection, RemoteResolver, check_unsafe_keys, remote_urls, rewritten_error,
};
use crate::subcommands::{CommandKind, ParsedCommand};
use octo_toolkit::{ToolError, WorkPath};

/// The other repository: a configured remote, or an address.
enum RemoteTarget {
    Remote(RemoteName),
    Address(String),
}

impl GitCall<'_> {
    /// Fetch, pull, push, ls-remote: always with the remote specified, so that git does not choose one.
    pub(super) async fn run_remote(
        &self,
        asked: &ParsedCommand,
        path: &WorkPath,
    ) -> Result<Output, ToolError> {
        let git = self.open_to_write(path).await?;
        let direction = if asked.kind() == CommandKind::Push { Direction::Push } else { Direction::Fetch };
        let asker = RemoteResolver::for_repo(&git, (self.ssh, self.net));
        let (other, refs) = self.other(&git, asked, direction).await?;
        let way = match &other {
            RemoteTarget::Remote(name) => asker.to_remote(&git, name, direction).await?,
            RemoteTarget::Address(address) => to_address(&git, &asker, address).await?,
        };
        let pulls = asked.subcommand.name == "pull";
        let command = if pulls { pull::fetch(asked) } else { command_builder::start(asked) };
        let mut command = serve(command, &way, direction).with_access(way.access);
        command = match other {
            RemoteTarget::Remote(name) => command.positional(&name),
            RemoteTarget::Address(_) => command.positional(&way.address),
        };
        for text in refs {
            command = command.positional(&refspec(text)?);
        }
        self.cx.progress(1, None, "connecting to the remote repository");
        let ran = git.run_with_route(command.max_output(self.keep), &way.route).await?;
        if pulls {
            return self.integrate(asked, path, ran).await;
        }
        let mut output = self.to_output(ran);
        if refs.iter().any(|text| text.starts_with(['+', ':'])) && direction == Direction::Push {
            output.warning = Some("Commits that only the remote had may be lost there.".to_owned());
        }
        Ok(output)
    }

    /// The specified remote, or the branch's upstream.
    async fn other<'a>(
        &self,
        git: &GitRepo,
        asked: &'a ParsedCommand,
        direction: Direction,
    ) -> Result<(RemoteTarget, &'a [String]), ToolError> {
        if asked.paths.as_ref().is_some_and(|paths| !paths.is_empty()) {
            return Err(ToolError::invalid(format!("git {} accepts no paths.", asked.subcommand.name)));
        }
        let Some((first, refs)) = asked.positionals.split_first() else {
            return Ok((RemoteTarget::Remote(default_remote(git, direction).await?), &[]));
        };
        match RemoteName::new(first) {
            Ok(name) if remote_urls(git, &name, direction).is_ok() => Ok((RemoteTarget::Remote(name), refs)),
            Ok(name) if !first.contains(['/', '.']) => {
                remote_urls(git, &name, direction).map(|_| (RemoteTarget::Remote(name), refs))
            }
            _ => Ok((RemoteTarget::Address(first.clone()), refs)),
        }
    }

    pub(super) async fn dry_run_push(
        &self,
        asked: &ParsedCommand,
        path: &WorkPath,
    ) -> Result<Output, ToolError> {
        let git = GitRepo::open(self.fs, self.exec, self.cx, path).await?;
        let (other, refs) = self.other(&git, asked, Direction::Push).await?;
        refs.iter().try_for_each(|text| refspec(text).map(drop))?;
        let source =
            refs.first().map(|text| text.trim_start_matches('+').split(':').next().unwrap_or_default());
        let branch = match source.map(BranchName::new) {
            Some(Ok(branch)) => Some(branch),
            _ => git.branch().await?.and_then(|name| BranchName::new(&name).ok()),
        };
        let mut lines = String::new();
        if let (RemoteTarget::Remote(remote), Some(branch)) = (&other, &branch) {
            let would = git_push::dry_run(&git, remote, branch, self.cx).await?;
            for commit in would.commits.unwrap_or_default() {
                lines.push_str(&format!("{} {}\n", commit.short_hash, commit.message));
            }
        }
        let mut output = self.to_output(GitOutput {
            exit_code: 0,
            stdout: lines.into_bytes(),
            truncated: false,
            stderr: String::new(),
        });
        output.dry_run = true;
        output.note = Some(self.cx.append_remedy(git_push::PUSH_DISABLED, &git_push::push_remedy()));
        Ok(output)
    }
}

async fn to_address(
    git: &GitRepo,
    asker: &RemoteResolver<'_>,
    address: &str,
) -> Result<RemoteConnection, ToolError> {
    check_unsafe_keys(git)?;
    if git.config.rewrites_urls {
        return Err(rewritten_error());
    }
    asker.to_address(address).await
}

/// Sets the program that serves the other end; the repository's settings for that are never used.
fn serve(command: GitCommand, way: &RemoteConnection, direction: Direction) -> GitCommand {
    match direction {
        Direction::Fetch => command.set("--upload-pack", &way.upload_pack),
        Direction::Push => command.set("--receive-pack", &way.receive_pack),
    }
}

async fn default_remote(git: &GitRepo, direction: Direction) -> Result<RemoteName, ToolError> {
    let branch = git.branch().await?.unwrap_or_default();
    let mut keys = vec![format!("branch.{branch}.remote")];
    if direction == Direction::Push {
        keys = vec![format!("branch.{branch}.pushremote"), "remote.pushdefault".to_owned(), keys.remove(0)];
    }
    let named = keys.iter().find_map(|key| git.setting(key)).unwrap_or("origin");
    RemoteName::new(named)
}

/// `+from:to`, each side a name that is not an option.
fn refspec(text: &str) -> Result<TrustedArg, ToolError> {
    let bare = text.strip_prefix('+').unwrap_or(text);
    let mut sides = bare.splitn(2, ':');
    let sound = |side: &str| side.is_empty() || Rev::new(side).is_ok();
    if bare.is_empty() || !sides.by_ref().all(sound) || text.starts_with('-') {
        return Err(ToolError::invalid(format!("{text:?} is not a branch or refspec.")));
    }
    Ok(TrustedArg::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::safe_arg::SafeArg;

    #[test]
    fn refspecs_are_names_on_both_sides() {
        for good in ["main", "+main", "a:b", "+refs/heads/*:refs/remotes/o/*", ":gone", "HEAD"] {
            assert_eq!(refspec(good).unwrap().as_str(), good);
        }
        for bad in ["", "+", "-f", "--exec=x", "a:-b", "+-x", "a\nb", "a\0"] {
            assert!(refspec(bad).is_err(), "{bad:?}");
        }
    }
}
