//! `git log` in a NUL-separated format.

use schemars::JsonSchema;
use serde::Serialize;

/// Fields end with NUL and a record starts with one; the output of `--shortstat` follows the last field.
pub const FORMAT: &str = "--format=%x00%H%x00%h%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s%x00%b%x00";

const FIELD_COUNT: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Commit {
    /// The full id.
    pub hash: String,
    /// The abbreviated id.
    pub short_hash: String,
    /// Name of the author.
    pub author: String,
    /// Mail address of the author.
    pub email: String,
    /// When it was written, ISO 8601.
    pub date: String,
    /// First line of the message.
    pub message: String,
    /// The rest of the message.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub body: String,
    /// Ids of the parents; two for a merge.
    pub parents: Vec<String>,
    /// Branches and tags that point here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub refs: Vec<String>,
    /// Files changed; 0 for a merge.
    pub files_changed: u64,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

pub fn parse(bytes: &[u8]) -> Vec<Commit> {
    let text = String::from_utf8_lossy(bytes);
    let pieces: Vec<&str> = text.split('\0').skip(1).collect();
    pieces.chunks(FIELD_COUNT).filter_map(commit).collect()
}

fn commit(fields: &[&str]) -> Option<Commit> {
    let [hash, short, parents, author, email, date, refs, subject, body, stat] = fields else {
        return None;
    };
    let words = |text: &str, by: &str| -> Vec<String> {
        text.split(by).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    Some(Commit {
        hash: (*hash).to_owned(),
        short_hash: (*short).to_owned(),
        author: (*author).to_owned(),
        email: (*email).to_owned(),
        date: (*date).to_owned(),
        message: (*subject).to_owned(),
        body: body.trim_end().to_owned(),
        parents: words(parents, " "),
        refs: words(refs, ", "),
        files_changed: count(stat, "file"),
        insertions: count(stat, "insertion"),
        deletions: count(stat, "deletion"),
    })
}

/// The number before a word in ` 2 files changed, 1 insertion(+)`.
fn count(stat: &str, word: &str) -> u64 {
    let part = stat
        .split(',')
        .map(str::trim)
        .find(|part| part.split(' ').nth(1).is_some_and(|w| w.starts_with(word)));
    part.and_then(|part| part.split(' ').next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_whole() {
        let text = "\0aaaa\0aa\0p1 p2\0A Name\0a@b\x002026-11-15T05:19:31+01:00\0HEAD -> main, tag: v1\0Merge\0\0\n\
            \0bbbb\0bb\0\0B\0b@b\x002026-11-15T05:10:39Z\0\0one\0line\n\nmore\n\0\n\n 2 files changed, 1 insertion(+), 3 deletions(-)\n";
        let commits = parse(text.as_bytes());
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0].parents, ["p1", "p2"]);
        assert_eq!(commits[0].refs, ["HEAD -> main", "tag: v1"]);
        assert_eq!(
            (commits[0].message.as_str(), commits[0].body.as_str(), commits[0].files_changed),
            ("Merge", "", 0)
        );
        assert_eq!(commits[1].body, "line\n\nmore");
        assert_eq!((commits[1].files_changed, commits[1].insertions, commits[1].deletions), (2, 1, 3));
        assert!(commits[1].parents.is_empty() && commits[1].refs.is_empty());
    }

    #[test]
    fn nothing_and_halves_are_left_out() {
        assert_eq!(parse(b""), []);
        assert_eq!(parse(b"\0abc\0ab\0"), []);
    }
}
