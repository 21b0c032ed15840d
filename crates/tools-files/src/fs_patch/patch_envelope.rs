//! Parser of the `*** Begin Patch` format: one section for each file, hunks with anchors instead of line numbers.

use super::unified_parser::{FilePatch, Hunk, LineKind, PatchLine};
use octo_toolkit::ToolError;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

pub fn is_envelope(patch: &str) -> bool {
    patch.trim_start().starts_with(BEGIN)
}

pub fn parse(patch: &str) -> Result<Vec<FilePatch>, ToolError> {
    let mut files: Vec<FilePatch> = Vec::new();
    let body = patch.trim_start().strip_prefix(BEGIN).unwrap_or(patch);
    for line in body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).skip(1) {
        if line.trim() == END {
            break;
        }
        if let Some(file) = section(line.trim()) {
            files.push(file);
            continue;
        }
        let Some(file) = files.last_mut() else {
            if line.trim().is_empty() {
                continue;
            }
            return Err(unreadable(line));
        };
        parse_line(file, line)?;
    }
    files.iter_mut().flat_map(|file| &mut file.hunks).for_each(normalize_hunk);
    files.iter_mut().for_each(|file| file.hunks.retain(|hunk| !hunk.lines.is_empty()));
    match files.iter().all(|file| file.creates || file.deletes || file.renames || !file.hunks.is_empty()) {
        true if !files.is_empty() => Ok(files),
        _ => Err(ToolError::invalid("The patch changes nothing.").hint(
            "Use sections such as *** Update File: path, then @@ and lines that start with a space, + or -.",
        )),
    }
}

fn section(line: &str) -> Option<FilePatch> {
    let named = |prefix| line.strip_prefix(prefix).map(|name: &str| name.trim().to_owned());
    if let Some(name) = named("*** Add File: ") {
        let hunk = Hunk { old_start: Some(0), new_start: Some(1), ..Hunk::default() };
        return Some(FilePatch { new: Some(name), creates: true, hunks: vec![hunk], ..new_file_patch() });
    }
    if let Some(name) = named("*** Delete File: ") {
        return Some(FilePatch { old: Some(name), deletes: true, ..new_file_patch() });
    }
    named("*** Update File: ").map(|name| FilePatch {
        old: Some(name.clone()),
        new: Some(name),
        ..new_file_patch()
    })
}

/// This format contains neither replaced or deleted content nor information about a missing final newline.
fn new_file_patch() -> FilePatch {
    FilePatch { ignores_old_content: true, ..FilePatch::default() }
}

fn parse_line(file: &mut FilePatch, line: &str) -> Result<(), ToolError> {
    if let Some(name) = line.strip_prefix("*** Move to: ") {
        file.new = Some(name.trim().to_owned());
        file.renames = file.new != file.old;
        return Ok(());
    }
    if line.trim_end() == "*** End of File" {
        file.hunks.last_mut().into_iter().for_each(|hunk| hunk.at_end = true);
        return Ok(());
    }
    if let Some(anchor) = line.strip_prefix("@@").filter(|_| !file.creates) {
        let anchor = anchor.strip_prefix(' ').unwrap_or(anchor).trim_end().to_owned();
        // An anchor without lines narrows the next one.
        let outer = file.hunks.pop_if(|hunk| hunk.lines.is_empty()).unwrap_or_default();
        let anchors = outer.anchors.into_iter().chain((!anchor.is_empty()).then_some(anchor)).collect();
        file.hunks.push(Hunk { anchors, ..Hunk::default() });
        return Ok(());
    }
    let mut rest = line.chars();
    let mark = match rest.next() {
        Some('+') => LineKind::Add,
        Some('-') if !file.creates => LineKind::Remove,
        Some(' ') | None if !file.creates => LineKind::Keep,
        None => return Ok(()),
        Some(_) => return Err(unreadable(line)),
    };
    if file.hunks.is_empty() {
        file.hunks.push(Hunk::default());
    }
    let line = PatchLine { kind: mark, text: rest.as_str().to_owned(), no_newline: false };
    file.hunks.last_mut().into_iter().for_each(|hunk| hunk.lines.push(line.clone()));
    Ok(())
}

/// Drops trailing empty lines of a hunk, which belong to the format. A hunk that only adds lines appends them.
fn normalize_hunk(hunk: &mut Hunk) {
    while hunk.lines.last().is_some_and(|line| line.kind == LineKind::Keep && line.text.is_empty()) {
        hunk.lines.pop();
    }
    hunk.at_end |= hunk.lines.iter().all(|line| line.kind == LineKind::Add);
}

fn unreadable(line: &str) -> ToolError {
    ToolError::invalid(format!("Unexpected line in the patch: {}.", crate::content::text_lines::quote_line(line))).hint(
        "After *** Begin Patch come sections *** Add File: path, *** Update File: path or *** Delete File: path.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_file_patches() {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** Delete File: b.txt\n*** Update File: \
                     c.txt\n*** Move to: d.txt\n@@ fn main()\n keep\n-old\n+new\n*** End of File\n*** End Patch\n";
        assert!(is_envelope(patch));
        let files = parse(patch).unwrap();
        let [add, delete, update] = files.as_slice() else { panic!("{files:?}") };
        assert!(add.creates && add.hunks[0].lines.len() == 2);
        assert!(delete.deletes && delete.ignores_old_content);
        assert!(update.renames && update.new.as_deref() == Some("d.txt"));
        assert_eq!(update.hunks[0].anchors, ["fn main()"]);
        assert!(update.hunks[0].at_end);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for body in ["", "*** Update File: a\n", "junk\n", "*** Add File: a\nno plus\n"] {
            assert!(parse(&format!("*** Begin Patch\n{body}*** End Patch")).is_err(), "{body:?}");
        }
    }
}
