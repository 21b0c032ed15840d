//! Commands that reach another repository.

use super::{Call, Output, fill, pull};
use crate::allow::{Asked, Does};
use crate::command::Command;
use crate::push;
use crate::remote::{Asker, Direction, Way, addresses, refuse_faults, rewritten};
use crate::run::{Git, Ran};
use crate::value::{BranchName, Checked, RemoteName, Rev};
use octo_toolkit::{ToolError, WorkPath};

/// The other end: a configured remote, or an address.
enum Other {
    Remote(RemoteName),
    Address(String),
}

impl Call<'_> {
    /// Fetch, pull, push, ls-remote: always with the remote named, so that git does not choose one by itself.
    pub(super) async fn reach(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let git = self.open_to_write(path).await?;
        let direction = if asked.does() == Does::Pushes { Direction::Push } else { Direction::Fetch };
        let asker = Asker::of(&git, (self.ssh, self.net));
        let (other, refs) = self.other(&git, asked, direction).await?;
        let way = match &other {
            Other::Remote(name) => asker.to_remote(&git, name, direction).await?,
            Other::Address(address) => to_address(&git, &asker, address).await?,
        };
        let pulls = asked.row.name == "pull";
        let command = if pulls { pull::fetch(asked) } else { fill::start(asked) };
        let mut command = serve(command, &way, direction).reach(way.reach);
        command = match other {
            Other::Remote(name) => command.word(&name),
            Other::Address(_) => command.word(&way.address),
        };
        for text in refs {
            command = command.word(&refspec(text)?);
        }
        self.cx.progress(1, None, "talking to the other repository");
        let ran = git.run_by(command.keep(self.keep), &way.route).await?;
        if pulls {
            return self.integrate(asked, path, ran).await;
        }
        let mut output = self.told(ran);
        if refs.iter().any(|text| text.starts_with(['+', ':'])) && direction == Direction::Push {
            output.warning = Some("Commits that only the remote had may be lost there.".to_owned());
        }
        Ok(output)
    }

    /// The remote that is named, or the one that the branch follows.
    async fn other<'a>(
        &self,
        git: &Git,
        asked: &'a Asked,
        direction: Direction,
    ) -> Result<(Other, &'a [String]), ToolError> {
        if asked.paths.as_ref().is_some_and(|paths| !paths.is_empty()) {
            return Err(ToolError::invalid(format!("git {} takes no paths.", asked.row.name)));
        }
        let Some((first, refs)) = asked.words.split_first() else {
            return Ok((Other::Remote(usual(git, direction).await?), &[]));
        };
        match RemoteName::new(first) {
            Ok(name) if addresses(git, &name, direction).is_ok() => Ok((Other::Remote(name), refs)),
            Ok(name) if !first.contains(['/', '.']) => {
                addresses(git, &name, direction).map(|_| (Other::Remote(name), refs))
            }
            _ => Ok((Other::Address(first.clone()), refs)),
        }
    }

    pub(super) async fn would_push(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let git = Git::open(self.fs, self.exec, self.cx, path).await?;
        let (other, refs) = self.other(&git, asked, Direction::Push).await?;
        refs.iter().try_for_each(|text| refspec(text).map(drop))?;
        let source =
            refs.first().map(|text| text.trim_start_matches('+').split(':').next().unwrap_or_default());
        let branch = match source.map(BranchName::new) {
            Some(Ok(branch)) => Some(branch),
            _ => git.branch().await?.and_then(|name| BranchName::new(&name).ok()),
        };
        let mut lines = String::new();
        if let (Other::Remote(remote), Some(branch)) = (&other, &branch) {
            let would = push::would(&git, remote, branch).await?;
            for commit in would.commits.unwrap_or_default() {
                lines.push_str(&format!("{} {}\n", commit.short_hash, commit.message));
            }
        }
        let mut output = self.told(Ran { code: 0, out: lines.into_bytes(), cut: false, err: String::new() });
        output.dry_run = true;
        output.note = Some(push::OFF.to_owned());
        Ok(output)
    }
}

async fn to_address(git: &Git, asker: &Asker<'_>, address: &str) -> Result<Way, ToolError> {
    refuse_faults(git)?;
    if git.guard.rewrites {
        return Err(rewritten());
    }
    asker.to(address).await
}

/// Says who answers at the other end; what the repository's settings say about that never counts.
fn serve(command: Command, way: &Way, direction: Direction) -> Command {
    match direction {
        Direction::Fetch => command.set("--upload-pack", &way.upload_pack),
        Direction::Push => command.set("--receive-pack", &way.receive_pack),
    }
}

async fn usual(git: &Git, direction: Direction) -> Result<RemoteName, ToolError> {
    let branch = git.branch().await?.unwrap_or_default();
    let mut keys = vec![format!("branch.{branch}.remote")];
    if direction == Direction::Push {
        keys = vec![format!("branch.{branch}.pushremote"), "remote.pushdefault".to_owned(), keys.remove(0)];
    }
    let named = keys.iter().find_map(|key| git.setting(key)).unwrap_or("origin");
    RemoteName::new(named)
}

/// `+from:to`, each side a name that is no option.
fn refspec(text: &str) -> Result<Checked, ToolError> {
    let bare = text.strip_prefix('+').unwrap_or(text);
    let mut sides = bare.splitn(2, ':');
    let sound = |side: &str| side.is_empty() || Rev::new(side).is_ok();
    if bare.is_empty() || !sides.by_ref().all(sound) || text.starts_with('-') {
        return Err(ToolError::invalid(format!("{text:?} is not a branch or refspec.")));
    }
    Ok(Checked::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Word;

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
