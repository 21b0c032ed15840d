//! Destination of a move or copy: an obstacle is refused with the next call as a hint, or reported as overwritten.

use octo_toolkit::fs::{EntryKind, Write};
use octo_toolkit::{Fs, Kind, RootedPath, ToolError};

/// Describes what will be lost at the destination. Checked again by the grant when the change is made.
pub fn check_destination(
    fs: &Fs<Write>,
    from: &RootedPath,
    to: &RootedPath,
    overwrite: bool,
) -> Result<Option<String>, ToolError> {
    let source = fs.link_stat(from)?;
    let present = match fs.link_stat(to) {
        Ok(stat) => stat,
        Err(error) if error.kind == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let path = to.display();
    let conflict = |message: String| ToolError::new(Kind::Conflict, message);
    if present.kind == EntryKind::Folder && source.kind != EntryKind::Folder {
        let name = from.relative().file_name().unwrap_or_default();
        let inside = to.join(name).display();
        return Err(conflict(format!("`{path}` is a directory."))
            .hint(format!("To put it in there, use destination {inside:?}.")));
    }
    if present.kind != EntryKind::Folder && source.kind == EntryKind::Folder {
        return Err(conflict(format!("`{path}` is not a directory, so a directory cannot replace it."))
            .hint("Use another destination, or delete it first with fs_delete."));
    }
    if !overwrite {
        return Err(conflict(format!("`{path}` already exists; nothing was changed."))
            .hint("Use another destination, or set overwrite to true to replace it."));
    }
    Ok(Some(match present.kind {
        EntryKind::Folder => format!("Replaced the directory `{path}`."),
        _ => format!("Replaced `{path}`, which had {} bytes.", present.size),
    }))
}

/// Error for a missing parent directory of a destination.
pub fn missing_parent_error(error: ToolError, to: &RootedPath) -> ToolError {
    let above = to.display();
    match above.rsplit_once('/') {
        Some((above, _)) if error.kind == Kind::NotFound => {
            ToolError::not_found(format!("The directory `{above}` does not exist."))
                .hint(format!("Call fs_mkdir {{\"path\": \"{above}\"}} first, or use another path."))
        }
        _ => error,
    }
}
