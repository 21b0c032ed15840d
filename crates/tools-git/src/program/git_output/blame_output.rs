//! `git blame --porcelain`.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlameLine {
    /// Line number in the file, from 1.
    pub line_number: u64,
    /// Short id of the commit that wrote it; zeros if not committed yet.
    pub commit: String,
    /// Name of the author.
    pub author: String,
    /// When it was written, ISO 8601.
    pub date: String,
    /// The line.
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitShare {
    /// Short id of the commit.
    pub commit: String,
    /// Name of the author.
    pub author: String,
    /// When it was written, ISO 8601.
    pub date: String,
    /// First line of its message.
    pub summary: String,
    /// Lines of the file that it wrote.
    pub lines: u64,
}

#[derive(Default, Clone)]
struct CommitInfo {
    author: String,
    seconds: i64,
    zone: String,
    summary: String,
}

/// The lines, and the commits by their number of lines.
pub fn parse(bytes: &[u8]) -> (Vec<BlameLine>, Vec<CommitShare>) {
    let text = String::from_utf8_lossy(bytes);
    let mut known: HashMap<String, CommitInfo> = HashMap::new();
    let mut wrote: Vec<(String, u64)> = Vec::new();
    let mut lines: Vec<(u64, String, String)> = Vec::new();
    let (mut id, mut number) = (String::new(), 0);
    for line in text.split_terminator('\n') {
        if let Some(content) = line.strip_prefix('\t') {
            lines.push((number, id.clone(), content.to_owned()));
            match wrote.iter_mut().find(|(commit, _)| *commit == id) {
                Some((_, count)) => *count += 1,
                None => wrote.push((id.clone(), 1)),
            }
            continue;
        }
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            name.clone_into(&mut id);
            number = value.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
            continue;
        }
        let about = known.entry(id.clone()).or_default();
        match name {
            "author" => value.clone_into(&mut about.author),
            "author-time" => about.seconds = value.parse().unwrap_or(0),
            "author-tz" => value.clone_into(&mut about.zone),
            "summary" => value.clone_into(&mut about.summary),
            _ => {}
        }
    }
    wrote.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let about = |id: &str| known.get(id).cloned().unwrap_or_default();
    let shares = wrote.iter().map(|(id, lines)| {
        let known = about(id);
        let date = date(&known);
        CommitShare { commit: short(id), author: known.author, date, summary: known.summary, lines: *lines }
    });
    let shares = shares.collect();
    let lines = lines.into_iter().map(|(line_number, id, content)| {
        let known = about(&id);
        let date = date(&known);
        BlameLine { line_number, commit: short(&id), author: known.author, date, content }
    });
    (lines.collect(), shares)
}

fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

/// Seconds and `+0130` as ISO 8601; anything invalid is UTC.
fn date(known: &CommitInfo) -> String {
    let digits: i32 = known.zone.parse().unwrap_or(0);
    let offset = Offset::from_seconds((digits / 100 * 60 + digits % 100) * 60).unwrap_or(Offset::UTC);
    let at = Timestamp::from_second(known.seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(TimeZone::fixed(offset)).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURED: &str = "5601fd009b627c17257dea51354b497965c9e9d9 1 1 2\nauthor A B\nauthor-mail <a@b>\n\
        author-time 1794719439\nauthor-tz -0130\ncommitter c\nsummary one\nboundary\nfilename n.txt\n\talpha\n\
        5601fd009b627c17257dea51354b497965c9e9d9 2 2\n\t\tbeta\n\
        b0b9a4213882cc57b2d858a6443af10e7dab6e68 4 3 1\nauthor C\nauthor-time 1794719971\nauthor-tz +0000\nsummary two\n\
        previous 5601fd009b627c17257dea51354b497965c9e9d9 n.txt\nfilename n.txt\n\tsummary x\n";

    #[test]
    fn lines_know_their_commits() {
        let (lines, shares) = parse(CAPTURED.as_bytes());
        let told: Vec<_> = lines
            .iter()
            .map(|l| (l.line_number, l.commit.as_str(), l.author.as_str(), l.content.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, "5601fd009b62", "A B", "alpha"),
                (2, "5601fd009b62", "A B", "\tbeta"),
                (3, "b0b9a4213882", "C", "summary x")
            ]
        );
        assert_eq!(lines[0].date, "2026-11-15T03:40:39-01:30");
        let told: Vec<_> = shares.iter().map(|s| (s.commit.as_str(), s.summary.as_str(), s.lines)).collect();
        assert_eq!(told, [("5601fd009b62", "one", 2), ("b0b9a4213882", "two", 1)]);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
