//! Converts git's error messages to errors with a hint.

use crate::program::run_git::GitOutput;
use octo_toolkit::{Kind, ToolError};

/// Patterns in git's messages, with error kind and hint. The first match wins.
const ERROR_PATTERNS: &[(&str, Kind, &str)] = &[
    ("index.lock", Kind::Conflict, "Another git command is running or was interrupted; try again."),
    ("Another git process", Kind::Conflict, "Another git command is running; try again."),
    ("does not have any commits yet", Kind::NotFound, "The branch has no commits yet."),
    ("unknown revision", Kind::NotFound, "List branches with git_branches, commits with git_log_structured."),
    ("bad revision", Kind::NotFound, "List branches with git_branches, commits with git_log_structured."),
    (
        "Needed a single revision",
        Kind::NotFound,
        "List branches with git_branches, commits with git_log_structured.",
    ),
    (
        "invalid object name",
        Kind::NotFound,
        "List branches with git_branches, commits with git_log_structured.",
    ),
    ("bad object", Kind::NotFound, "List branches with git_branches, commits with git_log_structured."),
    (
        "Not a valid object name",
        Kind::NotFound,
        "List branches with git_branches, commits with git_log_structured.",
    ),
    ("did not match any file", Kind::NotFound, "Check git_status for the paths that git knows."),
    ("no such path", Kind::NotFound, "Check git_status for the paths that git knows."),
    ("does not exist", Kind::NotFound, "Check the path and the ref."),
    ("exists on disk, but not in", Kind::NotFound, "The file is not in that commit."),
    ("beyond a symbolic link", Kind::Denied, "Use the file's real path."),
    ("is outside repository", Kind::Denied, "Use files inside the repository."),
    ("invalid path", Kind::Denied, "Use files inside the repository, not .git."),
    ("could not read Username", Kind::Unauthorized, SSH_KEY_HINT),
    ("terminal prompts disabled", Kind::Unauthorized, SSH_KEY_HINT),
    ("Authentication failed", Kind::Unauthorized, SSH_KEY_HINT),
    ("Permission denied (publickey", Kind::Unauthorized, SSH_KEY_HINT),
    (
        "Host key verification failed",
        Kind::Denied,
        "The host's key has changed or is unknown; ask the operator.",
    ),
    ("CONNECT tunnel failed, response 403", Kind::Denied, FORBIDDEN_HOST_HINT),
    ("Could not resolve host", Kind::Unavailable, "The remote cannot be reached; check its address."),
    (
        "Could not read from remote",
        Kind::Unavailable,
        "The remote cannot be reached, or the key is not allowed there.",
    ),
    ("non-fast-forward", Kind::Conflict, "Fetch and merge or rebase first."),
    ("fetch first", Kind::Conflict, "Fetch and merge or rebase first."),
    ("CONFLICT", Kind::Conflict, "Resolve the conflicts that git_status shows, then continue or abort."),
    ("would be overwritten", Kind::Conflict, "Commit or stash the local changes first."),
    ("already exists", Kind::Conflict, "Choose another name."),
    ("transport '", Kind::Denied, "Remotes are https, ssh or a repository in the workspace."),
];

const FORBIDDEN_HOST_HINT: &str =
    "The host of the remote is not allowed; the operator can allow it with net.allow.";
const SSH_KEY_HINT: &str = "Use an ssh address and add the key of ssh_public_key to the forge.";

/// The error of a failed run.
pub fn to_tool_error(ran: &GitOutput) -> ToolError {
    let said = relevant_lines(ran);
    let (kind, hint) = ERROR_PATTERNS
        .iter()
        .find(|(words, ..)| said.contains(words) || ran.stderr.contains(words))
        .map_or((Kind::Invalid, "Check git_status for the current state."), |(_, kind, hint)| (*kind, *hint));
    ToolError::new(kind, format!("git failed: {said}")).hint(hint).detail(&ran.stderr)
}

/// The relevant lines, without git's advice.
fn relevant_lines(ran: &GitOutput) -> String {
    let text = if ran.stderr.trim().is_empty() { ran.text() } else { ran.stderr.clone() };
    let lines = text.lines().filter(|line| !line.starts_with("hint:") && !line.trim().is_empty());
    let lines: Vec<&str> = lines.take(8).collect();
    let said = redact_credentials(&lines.join("\n"));
    said.chars().take(1_000).collect()
}

/// Removes the credentials between `://` and `@`.
pub fn redact_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c == '/' || c.is_whitespace() || c == '\'').unwrap_or(after.len());
        let (host, tail) = after.split_at(end);
        match host.rsplit_once('@') {
            Some((user, host)) if user != "git" => {
                out.push_str("***@");
                out.push_str(host);
            }
            _ => out.push_str(host),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(err: &str) -> ToolError {
        to_tool_error(&GitOutput {
            exit_code: 128,
            stdout: Vec::new(),
            truncated: false,
            stderr: err.to_owned(),
        })
    }

    #[test]
    fn complaints_have_kinds_and_hints() {
        let rows = [
            (
                "fatal: ambiguous argument 'x': unknown revision or path not in the working tree.",
                Kind::NotFound,
            ),
            ("fatal: bad revision 'x'", Kind::NotFound),
            ("fatal: pathspec 'x' did not match any files", Kind::NotFound),
            ("fatal: Unable to create '/r/.git/index.lock': File exists.", Kind::Conflict),
            ("fatal: pathspec 'l/x' is beyond a symbolic link", Kind::Denied),
            ("fatal: transport 'ext' not allowed", Kind::Denied),
            ("fatal: could not read Username for 'https://h': terminal prompts disabled", Kind::Unauthorized),
            ("error: patch failed: src/transport.rs:1", Kind::Invalid),
            ("something else", Kind::Invalid),
        ];
        for (err, kind) in rows {
            let error = failed(err);
            assert_eq!(error.kind, kind, "{err}");
            assert!(error.hint.is_some());
        }
    }

    #[test]
    fn passwords_in_addresses_are_taken_out() {
        for (text, clean) in [
            ("https://u:p@h/x", "https://***@h/x"),
            ("a ssh://git@h/x b", "a ssh://git@h/x b"),
            ("https://h/a@b", "https://h/a@b"),
            ("to 'https://u:p@h' and https://t:q@i/", "to 'https://***@h' and https://***@i/"),
        ] {
            assert_eq!(redact_credentials(text), clean);
        }
    }
}
