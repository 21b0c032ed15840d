//! `git status --porcelain=v2 --branch --show-stash -z`.

use super::split_nul;
use schemars::JsonSchema;
use serde::Serialize;

/// How a path has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum FileChange {
    Added,
    Modified,
    Deleted,
    Renamed,
    Copied,
    TypeChanged,
    Unmerged,
}

impl FileChange {
    /// As in git's short format.
    pub fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Renamed => 'R',
            Self::Copied => 'C',
            Self::TypeChanged => 'T',
            Self::Unmerged => 'U',
        }
    }

    pub fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'A' => Self::Added,
            'M' => Self::Modified,
            'D' => Self::Deleted,
            'R' => Self::Renamed,
            'C' => Self::Copied,
            'T' => Self::TypeChanged,
            'U' => Self::Unmerged,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusEntry {
    /// Path, relative to the top of the repository.
    pub path: String,
    /// What happened to it.
    pub status: FileChange,
    /// Previous path, if renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Absent before the first commit.
    pub head: Option<String>,
    /// Absent if HEAD is detached.
    pub branch: Option<String>,
    pub upstream: Option<String>,
    pub ahead: u64,
    pub behind: u64,
    pub stashes: u64,
    pub staged: Vec<StatusEntry>,
    pub unstaged: Vec<StatusEntry>,
    pub conflicts: Vec<StatusEntry>,
    pub untracked: Vec<String>,
}

pub fn parse(bytes: &[u8]) -> Status {
    let mut status = Status::default();
    let mut pieces = split_nul(bytes).into_iter();
    while let Some(piece) = pieces.next() {
        let (kind, rest) = piece.split_once(' ').unwrap_or((&piece, ""));
        match kind {
            "#" => header(&mut status, rest),
            "1" => changed(&mut status, rest, 6, None),
            "2" => changed(&mut status, rest, 7, pieces.next()),
            "u" => {
                let path = rest.splitn(10, ' ').nth(9).unwrap_or_default().to_owned();
                status.conflicts.push(StatusEntry { path, status: FileChange::Unmerged, old_path: None });
            }
            "?" => status.untracked.push(rest.to_owned()),
            _ => {}
        }
    }
    status
}

fn header(status: &mut Status, rest: &str) {
    let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
    match name {
        "branch.oid" if value != "(initial)" => status.head = Some(value.to_owned()),
        "branch.head" if value != "(detached)" => status.branch = Some(value.to_owned()),
        "branch.upstream" => status.upstream = Some(value.to_owned()),
        "branch.ab" => {
            let mut counts =
                value.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().unwrap_or(0));
            status.ahead = counts.next().unwrap_or(0);
            status.behind = counts.next().unwrap_or(0);
        }
        "stash" => status.stashes = value.parse().unwrap_or(0),
        _ => {}
    }
}

/// One entry may be staged and changed again since; `before` fields are between the letters and the path.
fn changed(status: &mut Status, rest: &str, before: usize, old_path: Option<String>) {
    let path = rest.splitn(before + 2, ' ').nth(before + 1).unwrap_or_default();
    let mut letters = rest.chars();
    let (index, tree) =
        (letters.next().and_then(FileChange::from_letter), letters.next().and_then(FileChange::from_letter));
    let entry = |change: FileChange| StatusEntry {
        path: path.to_owned(),
        status: change,
        old_path: old_path.clone().filter(|_| matches!(change, FileChange::Renamed | FileChange::Copied)),
    };
    status.staged.extend(index.map(entry));
    status.unstaged.extend(tree.map(entry));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_read() {
        let id = "9ea6f52a1bbec0e512ecd88ea6f9c9b62fbd1135";
        let lines = [
            format!("# branch.oid {id}"),
            "# branch.head main".to_owned(),
            "# branch.upstream origin/main".to_owned(),
            "# branch.ab +2 -1".to_owned(),
            "# stash 3".to_owned(),
            format!("1 .M N... 100644 100644 100644 {id} {id} sp ace\"q.txt"),
            format!("1 MD N... 100644 100644 000000 {id} {id} both"),
            format!("2 R. N... 100644 100644 100644 {id} {id} R100 new.txt"),
            "old.txt".to_owned(),
            format!("u UU N... 100644 100644 100644 100644 {id} {id} {id} conf"),
            "? new folder/".to_owned(),
            "! ignored".to_owned(),
        ];
        let status = parse(format!("{}\0", lines.join("\0")).as_bytes());
        assert_eq!(
            (status.branch.as_deref(), status.upstream.as_deref()),
            (Some("main"), Some("origin/main"))
        );
        assert_eq!((status.ahead, status.behind, status.stashes), (2, 1, 3));
        let told = |entries: &[StatusEntry]| -> Vec<(String, FileChange, Option<String>)> {
            entries.iter().map(|e| (e.path.clone(), e.status, e.old_path.clone())).collect()
        };
        assert_eq!(
            told(&status.staged),
            [
                ("both".to_owned(), FileChange::Modified, None),
                ("new.txt".to_owned(), FileChange::Renamed, Some("old.txt".to_owned()))
            ]
        );
        assert_eq!(
            told(&status.unstaged),
            [
                ("sp ace\"q.txt".to_owned(), FileChange::Modified, None),
                ("both".to_owned(), FileChange::Deleted, None)
            ]
        );
        assert_eq!(told(&status.conflicts), [("conf".to_owned(), FileChange::Unmerged, None)]);
        assert_eq!(status.untracked, ["new folder/"]);
    }

    #[test]
    fn a_new_and_a_detached_repository_have_their_words() {
        let fresh = parse(b"# branch.oid (initial)\0# branch.head main\0");
        assert_eq!((fresh.head, fresh.branch.as_deref()), (None, Some("main")));
        let loose = parse(b"# branch.oid abc\0# branch.head (detached)\0");
        assert_eq!((loose.head.as_deref(), loose.branch), (Some("abc"), None));
    }

    #[test]
    fn garbage_is_read_as_nothing() {
        for bytes in [&b""[..], b"\0\0", b"1", b"2 R", b"u UU", b"# branch.ab x", b"\xff\xfe"] {
            let _ = parse(bytes);
        }
    }
}
