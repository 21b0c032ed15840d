//! `git for-each-ref` in a NUL-separated format.

use schemars::JsonSchema;
use serde::Serialize;

/// Fields of one ref, each terminated by NUL; git adds a line break after the last.
pub const FORMAT: &str = "--format=%(refname)%00%(objectname)%00%(HEAD)%00%(upstream:short)%00%(upstream:track,nobracket)%00%(committerdate:iso-strict)%00%(contents:subject)%00%(symref)%00";

const FIELD_COUNT: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Branch {
    /// Name, such as main or origin/main.
    pub name: String,
    /// The commit that it points to.
    pub sha: String,
    /// True for the branch that is checked out.
    pub current: bool,
    /// True for a remote's branch, as last fetched.
    pub remote: bool,
    /// The branch's upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Commits that the upstream lacks.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// True if the upstream was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub gone: bool,
    /// Date of its last commit, ISO 8601.
    pub date: String,
    /// First line of its last commit's message.
    pub subject: String,
}

pub fn parse(bytes: &[u8]) -> Vec<Branch> {
    let text = String::from_utf8_lossy(bytes);
    let pieces: Vec<&str> = text.split('\0').collect();
    pieces.chunks(FIELD_COUNT).filter_map(branch).collect()
}

fn branch(fields: &[&str]) -> Option<Branch> {
    let [name, sha, head, upstream, track, date, subject, symref] = fields else {
        return None;
    };
    if !symref.is_empty() {
        return None;
    }
    let name = name.trim_start();
    let remote = name.strip_prefix("refs/remotes/");
    let count = |word: &str| {
        let part = track.split(", ").find_map(|part| part.strip_prefix(word));
        part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    Some(Branch {
        name: remote.or_else(|| name.strip_prefix("refs/heads/")).unwrap_or(name).to_owned(),
        sha: (*sha).to_owned(),
        current: *head == "*",
        remote: remote.is_some(),
        upstream: Some((*upstream).to_owned()).filter(|upstream| !upstream.is_empty()),
        ahead: count("ahead"),
        behind: count("behind"),
        gone: *track == "gone",
        date: (*date).to_owned(),
        subject: (*subject).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_read_and_aliases_left_out() {
        let text = "refs/heads/main\0aa\0*\0origin/main\0ahead 2, behind 1\x002026-11-15T05:19:31Z\0two\0\0\n\
            refs/heads/--format=%H\0bb\0 \0origin/x\0gone\x002026\0one\0\0\n\
            refs/remotes/origin/HEAD\0aa\0 \0\0\x002026\0two\0refs/remotes/origin/main\0\n\
            refs/remotes/origin/main\0cc\0 \0\0\x002026\0two\0\0\n";
        let told: Vec<_> = parse(text.as_bytes())
            .into_iter()
            .map(|b| (b.name, b.current, b.remote, b.upstream, b.ahead, b.behind, b.gone))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            told,
            [
                ("main".to_owned(), true, false, some("origin/main"), 2, 1, false),
                ("--format=%H".to_owned(), false, false, some("origin/x"), 0, 0, true),
                ("origin/main".to_owned(), false, true, None, 0, 0, false),
            ]
        );
        assert_eq!(parse(b""), []);
    }
}
