//! `git diff --raw --numstat -p -z`: list of files, their counts, then the hunks, all from one run.

use super::status_output::FileChange;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// Path, relative to the top of the repository.
    pub path: String,
    /// What happened to the file.
    pub status: FileChange,
    /// Previous path, if renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// True for a file that is not text; it has no hunks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub binary: bool,
    /// The changed parts.
    pub hunks: Vec<Hunk>,
    /// Number of omitted hunks of this file; use paths to see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks_omitted: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hunk {
    /// Line numbers before and after, such as @@ -1,3 +1,4 @@, and the function that it is in.
    pub header: String,
    /// Lines with a leading blank, + or -.
    pub lines: Vec<String>,
}

/// The three parts, in git's order. Truncated output loses its last, incomplete hunk.
pub fn parse(bytes: &[u8], cut: bool) -> Vec<FileDiff> {
    let (mut files, rest) = raw(bytes);
    let (counts, patch) = numstat(rest);
    for file in &mut files {
        if let Some((added, deleted)) = counts.get(&file.path) {
            file.binary = added.is_none();
            file.additions = added.unwrap_or(0);
            file.deletions = deleted.unwrap_or(0);
        }
    }
    let text = String::from_utf8_lossy(patch);
    let mut sections = sections(&text);
    if cut && let Some(last) = sections.last_mut() {
        last.pop();
    }
    // Unmerged paths are listed without a section.
    let with_section = files.iter_mut().filter(|file| file.status != FileChange::Unmerged);
    for (file, hunks) in with_section.zip(sections) {
        file.hunks = hunks;
    }
    let merged: Vec<String> = files
        .iter()
        .filter(|file| file.status != FileChange::Unmerged)
        .map(|file| file.path.clone())
        .collect();
    files.retain(|file| file.status != FileChange::Unmerged || !merged.contains(&file.path));
    files
}

/// The next item up to a NUL, and the rest.
fn piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `:mode mode id id STATUS\0path\0`, with two paths for renames; more colons for the result of a merge.
fn raw(bytes: &[u8]) -> (Vec<FileDiff>, &[u8]) {
    let mut files = Vec::new();
    let mut rest = bytes;
    loop {
        let line = rest.strip_prefix(b"\n").unwrap_or(rest);
        let Some((head, after)) = piece(line).filter(|(head, _)| head.starts_with(b":")) else {
            return (files, line);
        };
        let letters = lossy(head.rsplit(|byte| *byte == b' ').next().unwrap_or_default());
        let combined = head.starts_with(b"::");
        let status = letters.chars().next().and_then(FileChange::from_letter).unwrap_or(FileChange::Modified);
        let status = if combined { FileChange::Unmerged } else { status };
        let Some((first, mut after)) = piece(after) else {
            return (files, &[]);
        };
        let (mut path, mut old_path) = (lossy(first), None);
        if matches!(status, FileChange::Renamed | FileChange::Copied) {
            let Some((second, more)) = piece(after) else {
                return (files, &[]);
            };
            old_path = Some(std::mem::replace(&mut path, lossy(second)));
            after = more;
        }
        rest = after;
        files.push(FileDiff {
            path,
            status,
            old_path,
            additions: 0,
            deletions: 0,
            binary: false,
            hunks: Vec::new(),
            hunks_omitted: None,
        });
    }
}

type LineCounts = HashMap<String, (Option<u64>, Option<u64>)>;

/// `added\tdeleted\tpath\0`, or `added\tdeleted\t\0old\0new\0`; dashes for binary files. An empty item ends the list.
fn numstat(bytes: &[u8]) -> (LineCounts, &[u8]) {
    let mut counts = LineCounts::new();
    let mut rest = bytes;
    while let Some((head, after)) = piece(rest) {
        rest = after;
        let line = lossy(head);
        let mut fields = line.splitn(3, '\t');
        let (Some(added), Some(deleted), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            break;
        };
        let mut path = path.to_owned();
        if path.is_empty() {
            let Some((new, after)) = piece(rest).and_then(|(_, after)| piece(after)) else {
                break;
            };
            path = lossy(new);
            rest = after;
        }
        counts.insert(path, (added.parse().ok(), deleted.parse().ok()));
    }
    (counts, rest)
}

/// Hunks of each file. Lines are counted by the hunk's header, so that content cannot look like a header.
fn sections(text: &str) -> Vec<Vec<Hunk>> {
    let mut sections: Vec<Vec<Hunk>> = Vec::new();
    let (mut old, mut new) = (0u64, 0u64);
    for line in text.split_terminator('\n') {
        let open = old > 0 || new > 0;
        let hunk = sections.last_mut().and_then(|section| section.last_mut());
        match (hunk, line.chars().next()) {
            (Some(hunk), first) if open => {
                old = old.saturating_sub(u64::from(first != Some('+') && first != Some('\\')));
                new = new.saturating_sub(u64::from(first != Some('-') && first != Some('\\')));
                hunk.lines.push(line.to_owned());
            }
            (Some(hunk), Some('\\')) => hunk.lines.push(line.to_owned()),
            _ if line.starts_with("diff --") => sections.push(Vec::new()),
            _ if line.starts_with("@@ ") => {
                (old, new) = lengths(line);
                let hunk = Hunk { header: line.to_owned(), lines: Vec::new() };
                if let Some(section) = sections.last_mut() {
                    section.push(hunk);
                }
            }
            _ => {}
        }
    }
    sections
}

/// Number of lines of a hunk before and after.
fn lengths(header: &str) -> (u64, u64) {
    let mut ranges = header.split(' ').skip(1).map(|range| match range.split_once(',') {
        Some((_, length)) => length.parse().unwrap_or(0),
        None => 1,
    });
    (ranges.next().unwrap_or(0), ranges.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURED: &[u8] = b":100644 100644 66f8e35 0000000 M\0bin\0:100644 100644 de98044 0000000 M\0m.txt\0\
        :100644 100755 b68fde2 0000000 M\0mode.sh\0:000000 100644 0000000 8ba3a16 A\0n.txt\0\
        :100644 100644 9ea6f52 9ea6f52 R080\0old.txt\0new.txt\0:100644 100644 d905d9d 0000000 M\0sp ace\"q.txt\0\
        -\t-\tbin\x001\t1\tm.txt\x000\t0\tmode.sh\x001\t0\tn.txt\x000\t0\t\0old.txt\0new.txt\x001\t0\tsp ace\"q.txt\0\0\
diff --git a/bin b/bin\nindex 1..2 100644\nBinary files a/bin and b/bin differ\n\
diff --git a/m.txt b/m.txt\nindex 1..2 100644\n--- a/m.txt\n+++ b/m.txt\n\
@@ -1,3 +1,3 @@ fn main()\n a\n--- b\n+++ c\n c\n\\ No newline at end of file\n\
diff --git a/mode.sh b/mode.sh\nold mode 100644\nnew mode 100755\n\
diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0..8\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n\
diff --git a/old.txt b/new.txt\nsimilarity index 80%\nrename from old.txt\nrename to new.txt\n\
diff --git \"a/sp ace\\\"q.txt\" \"b/sp ace\\\"q.txt\"\nindex 1..2 100644\n--- x\n+++ y\n@@ -1 +1,2 @@\n e\n+f\n\
@@ -9,0 +11,1 @@\n+diff --git a/x b/x\n";

    #[test]
    fn files_counts_and_hunks_come_together() {
        let files = parse(CAPTURED, false);
        let told: Vec<_> = files
            .iter()
            .map(|f| (f.path.as_str(), f.status, f.additions, f.deletions, f.binary, f.hunks.len()))
            .collect();
        assert_eq!(
            told,
            [
                ("bin", FileChange::Modified, 0, 0, true, 0),
                ("m.txt", FileChange::Modified, 1, 1, false, 1),
                ("mode.sh", FileChange::Modified, 0, 0, false, 0),
                ("n.txt", FileChange::Added, 1, 0, false, 1),
                ("new.txt", FileChange::Renamed, 0, 0, false, 0),
                ("sp ace\"q.txt", FileChange::Modified, 1, 0, false, 2),
            ]
        );
        assert_eq!(files[4].old_path.as_deref(), Some("old.txt"));
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let files = parse(CAPTURED, false);
        let lines = [" a", "--- b", "+++ c", " c", "\\ No newline at end of file"];
        assert_eq!(files[1].hunks[0].lines, lines);
        assert_eq!(files[1].hunks[0].header, "@@ -1,3 +1,3 @@ fn main()");
        assert_eq!(files[5].hunks[1].lines, ["+diff --git a/x b/x"]);
    }

    #[test]
    fn an_unmerged_path_is_told_once() {
        let bytes = b":000000 000000 0 0 U\0conf\0:100644 100644 1 0 M\0conf\0:000000 000000 0 0 U\0gone\0\
            0\t0\tconf\x002\t0\tconf\0\0* Unmerged path conf\ndiff --git a/conf b/conf\n--- a\n+++ b\n@@ -1 +1,2 @@\n a\n+b\n";
        let files = parse(bytes, false);
        let told: Vec<_> = files.iter().map(|f| (f.path.as_str(), f.status, f.hunks.len())).collect();
        assert_eq!(told, [("conf", FileChange::Modified, 1), ("gone", FileChange::Unmerged, 0)]);
        let combined = parse(b"\n::100644 100644 100644 1 2 0 MM\0conf\0\0", false);
        assert_eq!(combined[0].status, FileChange::Unmerged);
    }

    #[test]
    fn a_cut_answer_has_only_whole_hunks() {
        let end = CAPTURED.len() - 12;
        let files = parse(&CAPTURED[..end], true);
        assert_eq!(files[5].hunks.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, cut: bool) {
            let _ = parse(&bytes, cut);
        }

        #[test]
        fn no_cut_makes_it_panic(end in 0..CAPTURED.len()) {
            let _ = parse(&CAPTURED[..end], true);
        }
    }
}
