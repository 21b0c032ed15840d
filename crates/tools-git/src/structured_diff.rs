//! Diffs as files and hunks, within limits: omitted hunks are counted and can be requested by file.

use crate::program::git_command::GitCommand;
use crate::program::git_output::diff_output::{self, FileDiff};
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{Number, Pathspec, Rev};
use octo_toolkit::{ModelText, ToolError, counted, json_len};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum characters of hunks per reply: about fifteen thousand tokens.
const MAX_DIFF_BYTES: usize = 60_000;
/// Maximum characters of a line; longer ones are generated and uninformative.
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum bytes of a reply, a file and a hunk besides paths, headers and lines.
const REPLY_OVERHEAD_BYTES: usize = 300;
const FILE_OVERHEAD_BYTES: usize = 140;
const HUNK_OVERHEAD_BYTES: usize = 30;
pub const DEFAULT_MAX_HUNKS: u64 = 200;
pub const DEFAULT_CONTEXT: u64 = 3;

/// Options that make the output independent of the repository's settings.
pub const DIFF_OPTIONS: [&str; 15] = [
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "--full-index",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--inter-hunk-context=0",
    "-O/dev/null",
    "--raw",
    "--numstat",
    "--patch",
];

/// What to compare.
pub struct DiffRequest {
    pub rev: Option<Rev>,
    pub staged: bool,
    pub paths: Vec<Pathspec>,
    pub context: u64,
    pub max_hunks: u64,
    /// Maximum bytes of the diff in the reply.
    pub reply_budget: usize,
}

impl Default for DiffRequest {
    fn default() -> Self {
        Self {
            rev: None,
            staged: false,
            paths: Vec::new(),
            context: DEFAULT_CONTEXT,
            max_hunks: DEFAULT_MAX_HUNKS,
            reply_budget: MAX_DIFF_BYTES,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Stats {
    /// Files that differ.
    pub files_changed: usize,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct DiffOutput {
    /// The files that differ, each with its hunks.
    pub files: Vec<FileDiff>,
    /// Totals over all files.
    pub stats: Stats,
    /// True if hunks were omitted; their files have the number.
    pub truncated: bool,
    /// How to get what was omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Totals, then each file with its hunks as in a patch.
pub fn write_diff(text: ModelText, diff: &DiffOutput) -> ModelText {
    let Stats { files_changed, insertions, deletions } = diff.stats;
    let cut = if diff.truncated { " (truncated)" } else { "" };
    let text = text
        .line(format_args!(
            "{} changed, +{insertions} -{deletions}{cut}",
            counted(files_changed, "file", "files")
        ))
        .field_if("next", diff.next.as_ref());
    diff.files.iter().fold(text, |text, file| {
        let text = text.line(file_line(file));
        file.hunks.iter().fold(text, |text, hunk| text.line(&hunk.header).lines(&hunk.lines))
    })
}

fn file_line(file: &FileDiff) -> String {
    let from = file.old_path.as_ref().map_or(String::new(), |old| format!("{old} -> "));
    let binary = if file.binary { ", binary" } else { "" };
    let omitted = file.hunks_omitted.map_or(String::new(), |count| format!(", {count} hunks omitted"));
    let letter = file.status.letter();
    format!("=== {letter} {from}{}, +{} -{}{binary}{omitted}", file.path, file.additions, file.deletions)
}

pub async fn find(git: &GitRepo, ask: DiffRequest) -> Result<DiffOutput, ToolError> {
    let mut command = GitCommand::read("diff").flags(&DIFF_OPTIONS).flag("-z");
    command = command.set("--unified", &Number::from_u64(ask.context.min(100)));
    if ask.staged {
        command = command.flag("--cached");
    } else if ask.rev.is_none() {
        // A file with conflicts is compared with our side, in the same format as all others.
        command = command.flag("--ours");
    }
    if let Some(rev) = &ask.rev {
        command = command.positional(rev);
    }
    let ran = git.run(command.paths(ask.paths)).await?;
    let files = diff_output::parse(&ran.stdout, ran.truncated);
    let hunks = usize::try_from(ask.max_hunks).unwrap_or(usize::MAX);
    Ok(bound(files, hunks, ask.reply_budget.min(MAX_DIFF_BYTES), ran.truncated))
}

fn bound(mut files: Vec<FileDiff>, mut hunks: usize, room: usize, cut: bool) -> DiffOutput {
    let stats = Stats {
        files_changed: files.len(),
        insertions: files.iter().map(|file| file.additions).sum(),
        deletions: files.iter().map(|file| file.deletions).sum(),
    };
    // Every file is listed, with or without its hunks.
    let names: usize = files.iter().map(|file| FILE_OVERHEAD_BYTES + 2 * json_len(&file.path)).sum();
    let mut room = room.saturating_sub(REPLY_OVERHEAD_BYTES + names);
    let mut left_out = Vec::new();
    for file in &mut files {
        let all = file.hunks.len();
        let mut kept = 0;
        for hunk in &mut file.hunks {
            hunk.lines.iter_mut().for_each(shorten);
            let size = HUNK_OVERHEAD_BYTES
                + json_len(&hunk.header)
                + hunk.lines.iter().map(|line| json_len(line) + 3).sum::<usize>();
            if kept >= hunks || size > room {
                break;
            }
            room -= size;
            kept += 1;
        }
        hunks -= kept;
        file.hunks.truncate(kept);
        if kept < all {
            // Nothing follows after the first hunk that does not fit, so that the order stays that of the diff.
            (room, hunks) = (0, 0);
            file.hunks_omitted = Some(all - kept);
            left_out.push(file.path.clone());
        }
    }
    let truncated = cut || !left_out.is_empty();
    let next = truncated.then(|| match left_out.first() {
        Some(path) => {
            format!("Repeat with paths [\"{path}\"], less context, or `git` diff for plain text.")
        }
        None => "Repeat with fewer paths.".to_owned(),
    });
    DiffOutput { files, stats, truncated, next }
}

fn shorten(line: &mut String) {
    if let Some((at, _)) = line.char_indices().nth(MAX_LINE_CHARS) {
        line.truncate(at);
        line.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::git_output::diff_output::Hunk;
    use crate::program::git_output::status_output::FileChange;

    fn file(path: &str, hunks: usize, size: usize) -> FileDiff {
        let hunk = Hunk { header: "@@".to_owned(), lines: vec!["x".repeat(1_000); size] };
        FileDiff {
            path: path.to_owned(),
            status: FileChange::Modified,
            old_path: None,
            additions: 2,
            deletions: 1,
            binary: false,
            hunks: vec![hunk; hunks],
            hunks_omitted: None,
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let found = bound(vec![file("a", 2, 10), file("b", 5, 10), file("c", 1, 1)], 200, 60_000, false);
        let told: Vec<_> = found.files.iter().map(|f| (f.hunks.len(), f.hunks_omitted)).collect();
        assert_eq!(told, [(2, None), (3, Some(2)), (0, Some(1))]);
        assert!(found.truncated && found.next.unwrap().contains("\"b\""));
        assert_eq!((found.stats.files_changed, found.stats.insertions, found.stats.deletions), (3, 6, 3));
    }

    #[test]
    fn exactly_as_many_as_wanted_is_not_truncated() {
        assert!(!bound(vec![file("a", 3, 1)], 3, 60_000, false).truncated);
        assert!(bound(vec![file("a", 3, 1)], 2, 60_000, false).truncated);
        assert!(bound(vec![file("a", 3, 1)], 0, 60_000, false).files[0].hunks.is_empty());
        assert!(bound(Vec::new(), 3, 60_000, true).truncated);
    }

    #[test]
    fn the_text_is_a_patch() {
        let mut renamed = file("b", 1, 1);
        renamed.old_path = Some("a".to_owned());
        renamed.hunks[0].lines = vec!["-x".to_owned(), "+\"y\"".to_owned()];
        let diff = bound(vec![renamed], 1, 60_000, false);
        let text = write_diff(ModelText::new(), &diff).finish();
        let wanted = "1 file changed, +2 -1\n=== M a -> b, +2 -1\n@@\n-x\n+\"y\"";
        assert_eq!(text.as_deref(), Some(wanted));
    }

    #[test]
    fn long_lines_are_shortened() {
        let mut line = "é".repeat(5_000);
        shorten(&mut line);
        assert_eq!(line.chars().count(), MAX_LINE_CHARS + 1);
    }
}
