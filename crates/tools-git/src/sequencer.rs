//! State of a stopped rebase, cherry-pick or revert. Its files are untrusted, and some of them name programs; such a
//! sequence is not continued here.

use crate::git_config;
use crate::program::run_git::GitRepo;
use octo_toolkit::{Kind, ToolError, WorkPath};

/// Maximum bytes of one of its files.
const MAX_STATE_BYTES: u64 = 16 << 20;

/// Steps that start no program and move no branch except the rebased one.
const SAFE_STEPS: [&str; 21] = [
    "pick", "p", "revert", "edit", "e", "reword", "r", "fixup", "f", "squash", "s", "label", "l", "reset",
    "t", "merge", "m", "break", "b", "drop", "d",
];

/// Options of a cherry-pick or revert that start no program. A strategy does, unless it is built into git.
const SAFE_OPTIONS: [&str; 11] = [
    "options.allow-empty",
    "options.allow-empty-message",
    "options.allow-ff",
    "options.default-msg-cleanup",
    "options.drop-redundant-commits",
    "options.edit",
    "options.keep-redundant-commits",
    "options.mainline",
    "options.no-commit",
    "options.record-origin",
    "options.signoff",
];

const BUILT_IN_STRATEGIES: [&str; 2] = ["ort", "recursive"];

/// The remaining commits; refuses a sequence that could start a program.
pub async fn remaining_commits(git: &GitRepo, command: &str) -> Result<Vec<String>, ToolError> {
    let list = match command {
        "rebase" => {
            if text(git, "rebase-apply/apply-opt").await?.is_some()
                || text(git, "rebase-apply/next").await?.is_some()
            {
                return Err(unsafe_sequence_error(command, "patches"));
            }
            for (name, what) in [("strategy_opts", "strategy options"), ("gpg_sign_opt", "a signing program")]
            {
                if text(git, &format!("rebase-merge/{name}"))
                    .await?
                    .is_some_and(|text| !text.trim().is_empty())
                {
                    return Err(unsafe_sequence_error(command, what));
                }
            }
            let strategy = text(git, "rebase-merge/strategy").await?.unwrap_or_default();
            if !strategy.trim().is_empty() && !BUILT_IN_STRATEGIES.contains(&strategy.trim()) {
                return Err(unsafe_sequence_error(command, "a custom merge strategy"));
            }
            text(git, "rebase-merge/git-rebase-todo").await?
        }
        _ => {
            let options = text(git, "sequencer/opts").await?.unwrap_or_default();
            for entry in git_config::parse(&options)? {
                let built_in =
                    entry.key == "options.strategy" && BUILT_IN_STRATEGIES.contains(&entry.value.as_str());
                if !built_in && !SAFE_OPTIONS.contains(&entry.key.as_str()) {
                    return Err(unsafe_sequence_error(command, &format!("the option {}", entry.key)));
                }
            }
            text(git, "sequencer/todo").await?
        }
    };
    commits(&list.unwrap_or_default())
        .map_err(|step| unsafe_sequence_error(command, &format!("the step {step}")))
}

/// The commit that --abort returns to.
pub async fn original_head(git: &GitRepo, command: &str) -> Result<Option<String>, ToolError> {
    let names: &[&str] = match command {
        "rebase" => &["rebase-merge/orig-head", "rebase-apply/orig-head"],
        _ => &["sequencer/head"],
    };
    for name in names {
        if let Some(text) = text(git, name).await? {
            let id = text.trim();
            if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(unsafe_sequence_error(command, "an origin that is not a commit"));
            }
            return Ok(Some(id.to_owned()));
        }
    }
    Ok(None)
}

fn commits(list: &str) -> Result<Vec<String>, String> {
    let mut commits = Vec::new();
    for line in list.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(step) = words.next().filter(|word| !word.starts_with('#')) else { continue };
        if step != "noop" && !SAFE_STEPS.contains(&step) {
            return Err(step.to_owned());
        }
        let is_id = |word: &&str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        commits.extend(words.find(is_id).map(str::to_owned));
    }
    Ok(commits)
}

fn unsafe_sequence_error(command: &str, what: &str) -> ToolError {
    ToolError::denied(format!("This {command} has {what} and cannot be continued here."))
        .hint("Finish it in a terminal, or cancel it with --abort.")
}

async fn text(git: &GitRepo, name: &str) -> Result<Option<String>, ToolError> {
    let path = git.repo.git_dir.join(name);
    let read = git.fs.run(move |fs| {
        let place = fs.place(&WorkPath::from(path.to_string_lossy().as_ref()))?;
        fs.read(&place, MAX_STATE_BYTES).map(|(bytes, _)| bytes)
    });
    match read.await {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::commits;

    #[test]
    fn lists_hold_commits_and_no_commands() {
        let list = "pick 1a2b3c4 Subject\n\n# exec x\nmerge -C abcdef0 label # Merge\nnoop\nfixup -C 99887766 x\nbreak\n";
        assert_eq!(commits(list).unwrap(), ["1a2b3c4", "abcdef0", "99887766"]);
        for bad in ["exec x", "\t x y", "update-ref refs/heads/a", "u refs/heads/a", "new-step"] {
            assert!(commits(&format!("pick 1a2b3c4\n{bad}\n")).is_err(), "{bad}");
        }
    }
}
