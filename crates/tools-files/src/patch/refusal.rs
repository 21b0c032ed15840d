//! Why a hunk does not fit, and what to do about it.

use super::apply::File;
use super::locate::{Lost, locate};
use super::parse::{Hunk, Mark};
use crate::lines;
use crate::near::{self, Divergence};
use octo_toolkit::{Kind, ToolError};

pub fn explain(
    file: &File<'_>,
    hunk: &Hunk,
    (number, count): (usize, usize),
    lost: &Lost,
    path: &str,
) -> ToolError {
    let which = format!("Hunk {number} of {count} for `{path}`");
    let conflict = |message: String| ToolError::new(Kind::Conflict, message);
    if let Lost::Several(first, second) = lost {
        return conflict(format!(
            "{which} fits in several places, at lines {} and {} for example; nothing was changed.",
            first + 1,
            second + 1
        ))
        .hint("Give it more lines of context, or the right line number after @@.");
    }
    let side = |not| hunk.side(not).map(|line| lines::bare(&line.text)).collect::<Vec<_>>();
    let (old, new) = (side(Mark::Add), side(Mark::Remove));
    let unknown = |anchor: &&String| !file.bare.iter().any(|line| line.trim() == anchor.trim());
    if let Some(anchor) = hunk.anchors.iter().find(unknown) {
        return conflict(format!(
            "{which} has the anchor {}, which is not in the file.",
            lines::shown(anchor)
        ))
        .hint("Use a line of the file as anchor, or none.");
    }
    if old.is_empty() {
        return conflict(format!("{which} only adds lines and does not say where; nothing was changed."))
            .hint("Add a line of context, or a line number within the file after @@.");
    }
    let likely: Vec<usize> =
        [hunk.new_start, hunk.old_start].into_iter().flatten().map(|start| start.saturating_sub(1)).collect();
    if !new.is_empty() && new != old && locate(&file.bare, &new, &likely, 0).is_ok() {
        return conflict(format!("{which} seems to be already applied; nothing was changed."))
            .hint("Leave it out of the patch; with reverse true it would be taken back.");
    }
    let near = near::nearest(&file.bare, &old);
    let differs = near.and_then(|near| near.differs).or_else(|| at_stated(file, hunk, &old));
    let hint = match differs {
        Some(differs) => format!(
            "{} Read the file around there with fs_read_text and make the patch anew.",
            differs.told("the patch")
        ),
        None => "Read the file with fs_read_text and make the patch anew.".to_owned(),
    };
    conflict(format!("{which} does not fit; nothing was changed.")).hint(hint)
}

fn at_stated(file: &File<'_>, hunk: &Hunk, old: &[&str]) -> Option<Divergence> {
    let start = hunk.old_start?.saturating_sub(1);
    let there = file.bare.get(start..).unwrap_or_default();
    let (offset, wanted) = old.iter().enumerate().find(|(offset, line)| there.get(*offset) != Some(line))?;
    Some(Divergence {
        line: start.saturating_add(offset + 1),
        found: there.get(offset).map(|line| (*line).to_owned()),
        wanted: (*wanted).to_owned(),
    })
}
