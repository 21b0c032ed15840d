//! `pull`: a fetch, which has the network and no work tree, and then a merge or rebase, which has the work tree and no network.

use super::{Call, Output, touched};
use crate::allow::Asked;
use crate::command::Command;
use crate::run::{Git, Ran, Route};
use crate::value::{Checked, Rev, Text};
use octo_toolkit::{ToolError, WorkPath};

/// Bytes of what a fetch leaves behind.
const MOST: u64 = 4 << 20;

const OF_FETCH: [&str; 5] = ["--tags", "--prune", "-v", "-q", "--quiet"];
const OF_MERGE: [&str; 10] = [
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

/// The options that a pull hands to its fetch.
pub fn fetch(asked: &Asked) -> Command {
    let command = Command::write("fetch").flags(&["--no-recurse-submodules", "--no-auto-maintenance"]);
    let taken = |option: &&String| OF_FETCH.contains(&option.as_str()) || option.starts_with("--depth=");
    asked
        .options
        .iter()
        .filter(taken)
        .fold(command, |command, option| command.checked(&Checked::new(option.as_str())))
}

impl Call<'_> {
    /// Brings what was fetched into the branch. The repository is looked at anew.
    pub(super) async fn integrate(
        &self,
        asked: &Asked,
        path: &WorkPath,
        fetched: Ran,
    ) -> Result<Output, ToolError> {
        if fetched.code != 0 {
            return Ok(self.told(fetched));
        }
        let git = self.open_to_write(path).await?;
        let (commit, described) = to_merge(&git).await?;
        let (rebase, ff) = self.way(&git, asked).await?;
        let command = if rebase && !git.unborn().await? {
            touched::refuse_protected(&git, &touched::rebased(&git, Some(&commit), None, "HEAD").await?)?;
            Command::write("rebase").flags(&["--no-verify", "--no-gpg-sign"])
        } else {
            let unrelated = asked.has(&["--allow-unrelated-histories"]);
            touched::refuse_protected(&git, &touched::merged(&git, &commit, unrelated).await?)?;
            let taken = |option: &&String| OF_MERGE.contains(&option.as_str()) || option.starts_with("-X");
            let merge =
                Command::write("merge").flags(&["--no-verify", "--no-gpg-sign", "--no-edit"]).flags(ff);
            let merge = asked
                .options
                .iter()
                .filter(taken)
                .fold(merge, |command, option| command.checked(&Checked::new(option.as_str())));
            if asked.has(&["--squash", "--ff-only"]) {
                merge
            } else {
                merge.pair("-m", &Text::value("message", &format!("Merge {described}"))?)
            }
        };
        let command = if asked.has(&["--autostash"]) {
            touched::refuse_protected(&git, &touched::local(&git).await?)?;
            command.flag("--autostash")
        } else {
            command
        };
        let ran = git.run_by(command.word(&Rev::new(&commit)?).keep(self.keep), &Route::Nowhere).await?;
        let diverged = ran.code != 0 && !ff.is_empty() && ran.err.contains("fast-forward");
        let mut output = self.told(Ran {
            code: ran.code,
            out: [fetched.out, ran.out].concat(),
            cut: fetched.cut || ran.cut,
            err: fetched.err + &ran.err,
        });
        output.note =
            diverged.then(|| "The branches have diverged: give --rebase or --no-rebase.".to_owned());
        Ok(output)
    }

    /// Whether to rebase, and how to merge, by the arguments or else the settings.
    async fn way(&self, git: &Git, asked: &Asked) -> Result<(bool, &'static [&'static str]), ToolError> {
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

/// The commit to merge and what it is, by what the fetch wrote down.
async fn to_merge(git: &Git) -> Result<(String, String), ToolError> {
    let path = git.repo.git_dir.join("FETCH_HEAD");
    let read = git.fs.run(move |fs| {
        let place = fs.place(&WorkPath::from(path.to_string_lossy().as_ref()))?;
        fs.read(&place, MOST).map(|(bytes, _)| bytes)
    });
    let text = String::from_utf8_lossy(&read.await?).into_owned();
    let all: Vec<(String, String)> = text.lines().filter_map(chosen).collect();
    match all.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(ToolError::not_found("The branch follows no branch of this remote.")
            .hint("Give the remote and its branch, or set one with branch --set-upstream-to.")),
        _ => Err(ToolError::invalid("Several branches were fetched to be merged.")
            .hint("Pull one branch at a time.")),
    }
}

/// `id TAB (not-for-merge) TAB description`.
fn chosen(line: &str) -> Option<(String, String)> {
    let mut fields = line.splitn(3, '\t');
    let (id, mark, described) = (fields.next()?, fields.next()?, fields.next()?);
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id && mark.is_empty()).then(|| (id.to_owned(), described.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn what_is_to_be_merged_is_read() {
        let line = "1a2b\t\tbranch 'main' of https://example.org/x";
        assert_eq!(
            chosen(line).unwrap(),
            ("1a2b".to_owned(), "branch 'main' of https://example.org/x".to_owned())
        );
        for other in ["1a2b\tnot-for-merge\tbranch 'x' of y", "--x\t\tbranch", "", "1a2b"] {
            assert_eq!(chosen(other), None, "{other}");
        }
    }
}
