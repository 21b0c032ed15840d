//! Errors of hunks that do not apply.

use super::apply_hunks::FileLines;
use super::hunk_locator::{LocateError, locate};
use super::unified_parser::{Hunk, LineKind};
use crate::content::fuzzy_match::{self, Divergence};
use crate::content::text_lines;
use octo_toolkit::{Kind, ToolError};

pub fn explain_hunk(
    file: &FileLines<'_>,
    hunk: &Hunk,
    (number, count): (usize, usize),
    lost: &LocateError,
    path: &str,
) -> ToolError {
    let which = format!("Hunk {number} of {count} for `{path}`");
    let conflict = |message: String| ToolError::new(Kind::Conflict, message);
    if let LocateError::Ambiguous(first, second) = lost {
        return conflict(format!(
            "{which} matches in several places, for example at lines {} and {}; nothing was changed.",
            first + 1,
            second + 1
        ))
        .hint("Add more lines of context, or the right line number after @@.");
    }
    let side =
        |not| hunk.lines_except(not).map(|line| text_lines::without_ending(&line.text)).collect::<Vec<_>>();
    let (old, new) = (side(LineKind::Add), side(LineKind::Remove));
    let unknown = |anchor: &&String| !file.without_endings.iter().any(|line| line.trim() == anchor.trim());
    if let Some(anchor) = hunk.anchors.iter().find(unknown) {
        return conflict(format!(
            "{which} has the anchor {}, which is not in the file.",
            text_lines::quote_line(anchor)
        ))
        .hint("Use a line of the file as anchor, or none.");
    }
    if old.is_empty() {
        return conflict(format!("{which} only adds lines and does not specify where; nothing was changed."))
            .hint("Add a line of context, or a line number within the file after @@.");
    }
    let likely: Vec<usize> =
        [hunk.new_start, hunk.old_start].into_iter().flatten().map(|start| start.saturating_sub(1)).collect();
    if !new.is_empty() && new != old && locate(&file.without_endings, &new, &likely, 0).is_ok() {
        return conflict(format!("{which} seems to be already applied; nothing was changed."))
            .hint("Omit it from the patch, or set reverse to true to revert it.");
    }
    let near = fuzzy_match::find_nearest(&file.without_endings, &old);
    let differs =
        near.and_then(|near| near.divergence).or_else(|| divergence_at_stated_line(file, hunk, &old));
    let hint = match differs {
        Some(differs) => format!(
            "{} Read the file around there with fs_read_text and create a new patch.",
            differs.describe("the patch")
        ),
        None => "Read the file with fs_read_text and create a new patch.".to_owned(),
    };
    conflict(format!("{which} does not apply; nothing was changed.")).hint(hint)
}

fn divergence_at_stated_line(file: &FileLines<'_>, hunk: &Hunk, old: &[&str]) -> Option<Divergence> {
    let start = hunk.old_start?.saturating_sub(1);
    let there = file.without_endings.get(start..).unwrap_or_default();
    let (offset, wanted) = old.iter().enumerate().find(|(offset, line)| there.get(*offset) != Some(line))?;
    Some(Divergence {
        line: start.saturating_add(offset + 1),
        found: there.get(offset).map(|line| (*line).to_owned()),
        expected: (*wanted).to_owned(),
    })
}
