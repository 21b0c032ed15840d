//! `pull`: a fetch with network access and no work tree, then a merge or rebase with the work tree and no network
//! access.

use super::{GitCall, Output, affected_files};
use crate::program::git_command::GitCommand;
use crate::program::run_git::{GitOutput, GitRepo, RemoteRoute};
use crate::program::safe_arg::{Rev, Text, TrustedArg};
use crate::subcommands::ParsedCommand;
use octo_toolkit::{ToolError, WorkPath};

/// Maximum bytes of FETCH_HEAD.
const MAX_FETCH_HEAD_BYTES: u64 = 4 << 20;

const FETCH_OPTIONS: [&str; 5] = ["--tags", "--prune", "-v", "-q", "--quiet"];
const MERGE_OPTIONS: [&str; 10] = [
    "--ff",
    "--no-ff",
    "--ff-only",
    "--squash",
    "--no-squash",
    "--stat",
    "--no-stat",
    "-q",
    "--quiet",
    "--allow-unrelated-histories",
];

/// Options that a pull passes to its fetch.
pub fn fetch(asked: &ParsedCommand) -> GitCommand {
    let command = GitCommand::write("fetch").flags(&["--no-recurse-submodules", "--no-auto-maintenance"]);
    let taken = |option: &&String| FETCH_OPTIONS.contains(&option.as_str()) || option.starts_with("--depth=");
    asked
        .options
        .iter()
        .filter(taken)
        .fold(command, |command, option| command.checked_option(&TrustedArg::new(option.as_str())))
}

impl GitCall<'_> {
    /// Integrates what was fetched into the branch. The repository is opened again.
    pub(super) async fn integrate(
        &self,
        asked: &ParsedCommand,
        path: &WorkPath,
        fetched: GitOutput,
    ) -> Result<Output, ToolError> {
        if fetched.exit_code != 0 {
            return Ok(self.to_output(fetched));
        }
        let git = self.open_to_write(path).await?;
        let (commit, described) = to_merge(&git).await?;
        let (rebase, ff) = self.integration_mode(&git, asked).await?;
        let command = if rebase && !git.has_no_commits().await? {
            affected_files::refuse_protected(
                &git,
                &affected_files::rebase_files(&git, Some(&commit), None, "HEAD").await?,
            )?;
            GitCommand::write("rebase").flags(&["--no-verify", "--no-gpg-sign"])
        } else {
            let unrelated = asked.has(&["--allow-unrelated-histories"]);
            affected_files::refuse_protected(
                &git,
                &affected_files::merge_files(&git, &commit, unrelated).await?,
            )?;
            let taken =
                |option: &&String| MERGE_OPTIONS.contains(&option.as_str()) || option.starts_with("-X");
            let merge =
                GitCommand::write("merge").flags(&["--no-verify", "--no-gpg-sign", "--no-edit"]).flags(ff);
            let merge = asked
                .options
                .iter()
                .filter(taken)
                .fold(merge, |command, option| command.checked_option(&TrustedArg::new(option.as_str())));
            if asked.has(&["--squash", "--ff-only"]) {
                merge
            } else {
                merge.pair("-m", &Text::value("message", &format!("Merge {described}"))?)
            }
        };
        let command = if asked.has(&["--autostash"]) {
            affected_files::refuse_protected(&git, &affected_files::uncommitted_files(&git).await?)?;
            command.flag("--autostash")
        } else {
            command
        };
        let ran = git
            .run_with_route(
                command.positional(&Rev::new(&commit)?).max_output(self.keep),
                &RemoteRoute::NoRemote,
            )
            .await?;
        let diverged = ran.exit_code != 0 && !ff.is_empty() && ran.stderr.contains("fast-forward");
        let mut output = self.to_output(GitOutput {
            exit_code: ran.exit_code,
            stdout: [fetched.stdout, ran.stdout].concat(),
            truncated: fetched.truncated || ran.truncated,
            stderr: fetched.stderr + &ran.stderr,
        });
        output.note = diverged.then(|| "The branches have diverged: use --rebase or --no-rebase.".to_owned());
        Ok(output)
    }

    /// Whether to rebase, and how to merge, according to the arguments or else the settings.
    async fn integration_mode(
        &self,
        git: &GitRepo,
        asked: &ParsedCommand,
    ) -> Result<(bool, &'static [&'static str]), ToolError> {
        if asked.has(&["--rebase", "-r"]) {
            return Ok((true, &[]));
        }
        if asked.has(&["--no-rebase", "--ff", "--no-ff", "--ff-only", "--squash"]) {
            return Ok((false, &[]));
        }
        let branch = git.branch().await?.unwrap_or_default();
        let rebase = git.setting(&format!("branch.{branch}.rebase")).or_else(|| git.setting("pull.rebase"));
        let is_off =
            |value: &str| ["false", "no", "off", "0", ""].contains(&value.to_ascii_lowercase().as_str());
        Ok(match (rebase, git.setting("pull.ff")) {
            (Some(value), _) if !is_off(value) => (true, &[]),
            (_, Some("only")) => (false, &["--ff-only"]),
            (_, Some(value)) if is_off(value) => (false, &["--no-ff"]),
            (None, None) => (false, &["--ff-only"]),
            _ => (false, &[]),
        })
    }
}

/// Commit to merge and its description, from FETCH_HEAD.
async fn to_merge(git: &GitRepo) -> Result<(String, String), ToolError> {
    let path = git.repo.git_dir.join("FETCH_HEAD");
    let read = git.fs.run(move |fs| {
        let place = fs.place(&WorkPath::from(path.to_string_lossy().as_ref()))?;
        fs.read(&place, MAX_FETCH_HEAD_BYTES).map(|(bytes, _)| bytes)
    });
    let text = String::from_utf8_lossy(&read.await?).into_owned();
    let all: Vec<(String, String)> = text.lines().filter_map(parse_fetch_head_line).collect();
    match all.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(ToolError::not_found("The branch has no upstream on this remote.")
            .hint("Specify the remote and its branch, or set one with branch --set-upstream-to.")),
        _ => Err(ToolError::invalid("Several branches were fetched for merging.")
            .hint("Pull one branch at a time.")),
    }
}

/// `id TAB (not-for-merge) TAB description`.
fn parse_fetch_head_line(line: &str) -> Option<(String, String)> {
    let mut fields = line.splitn(3, '\t');
    let (id, mark, described) = (fields.next()?, fields.next()?, fields.next()?);
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && mark.is_empty()).then(|| (id.to_owned(), described.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::parse_fetch_head_line;

    #[test]
    fn what_is_to_be_merged_is_read() {
        let line = "1a2b\t\tbranch 'main' of https://example.org/x";
        assert_eq!(
            parse_fetch_head_line(line).unwrap(),
            ("1a2b".to_owned(), "branch 'main' of https://example.org/x".to_owned())
        );
        for other in ["1a2b\tnot-for-merge\tbranch 'x' of y", "--x\t\tbranch", "", "1a2b"] {
            assert_eq!(parse_fetch_head_line(other), None, "{other}");
        }
    }
}
